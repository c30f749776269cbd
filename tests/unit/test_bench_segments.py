"""Segments to measure on are read from the disk again, and two processes decode all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.decoding import decode_all
from benchmarks.peers.two_processes import two_processes
from benchmarks.segments import write_segment

SEGMENT = "00000000000000000000.log"


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
