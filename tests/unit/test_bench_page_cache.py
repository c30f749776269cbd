"""Files to measure on are in the page cache as from the disk, and stay there."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.page_cache import READ_SIZE, held, read_again, resident_size

SIZE = 3 * READ_SIZE + 5

pytestmark = pytest.mark.skipif(
    not hasattr(os, "posix_fadvise"), reason="this system cannot be asked to forget a file's pages"
)


@pytest.fixture
def path() -> Iterator[Path]:
    """A file that is on the disk, which `tmp_path` may not be, and that nobody has mapped."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as place:
        path = Path(place) / "large"
        path.write_bytes(b"1" * SIZE)
        forget(path)
        if resident_size(path) == SIZE:
            pytest.skip("this file system keeps every page")
        yield path


def forget(path: Path) -> None:
    """Ask for what a system does with memory that nobody reads."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def test_a_file_is_read_from_the_disk_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int]] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: asked.append(("sync", os.fstat(descriptor).st_size)))
    monkeypatch.setattr(os, "posix_fadvise", lambda descriptor, *advice: asked.append(("advise", advice[-1])))
    small = path.with_name("small")
    small.write_bytes(b"1" * (READ_SIZE - 1))
    read_again(small)
    assert asked == []
    read_again(path)
    assert asked == [("sync", SIZE), ("advise", os.POSIX_FADV_DONTNEED)]
    assert path.read_bytes() == b"1" * SIZE


def test_all_of_a_file_is_there_once_it_was_read(path: Path) -> None:
    assert resident_size(path) < SIZE
    read_again(path)
    assert resident_size(path) == SIZE


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="a user may not lock that much memory")
def test_a_file_that_is_held_stays(path: Path) -> None:
    with held([path]):
        assert resident_size(path) == SIZE
        forget(path)
        assert resident_size(path) == SIZE
    forget(path)
    assert resident_size(path) < SIZE


def test_what_is_too_small_is_not_held(path: Path) -> None:
    path.write_bytes(b"")
    with held([path]):
        pass
    assert path.read_bytes() == b""
