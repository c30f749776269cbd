"""Segments to measure on are in the page cache as from the disk, and two processes decode all of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks.decoding import decode_all
from benchmarks.peers.two_processes import two_processes
from benchmarks.segments import READ_SIZE, read_again, write_segment

SEGMENT = "00000000000000000000.log"


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="this system cannot be asked to forget a file's pages")
def test_a_segment_is_read_from_the_disk_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: asked.append(("sync", os.fstat(descriptor).st_size)))
    monkeypatch.setattr(os, "posix_fadvise", lambda descriptor, *advice: asked.append(("advise", advice[-1])))
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_bytes(b"1" * (READ_SIZE - 1))
    read_again(small)
    assert asked == []
    large.write_bytes(b"1" * READ_SIZE)
    read_again(large)
    assert asked == [("sync", READ_SIZE), ("advise", os.POSIX_FADV_DONTNEED)]
    assert large.read_bytes() == b"1" * READ_SIZE


def test_a_segment_is_written_and_then_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    monkeypatch.setattr("benchmarks.segments.read_again", lambda path: sizes.append(path.stat().st_size))
    write_segment(tmp_path / SEGMENT, 100_000)
    assert sizes == [(tmp_path / SEGMENT).stat().st_size]


def test_two_processes_decode_a_segment_together(tmp_path: Path) -> None:
    path = tmp_path / "t-0" / SEGMENT
    path.parent.mkdir()
    record_count = write_segment(path, 100_000)
    with two_processes(path, record_count) as side:
        assert side() > 0
    halves = sorted(tmp_path.glob(f"half*/{SEGMENT}"))
    counts = [decode_all(half) for half in halves]
    assert min(counts) > 0
    assert sum(counts) == record_count
    assert b"".join(half.read_bytes() for half in halves) == path.read_bytes()


def test_a_record_that_is_not_decoded_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t-0" / SEGMENT
    path.parent.mkdir()
    count = write_segment(path, 100_000)
    expected = rf"decoded {count} records instead of {count + 1}$"
    with two_processes(path, count + 1) as side, pytest.raises(RuntimeError, match=expected):
        side()
