"""Reading pieces of a file that another process may change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from logstore.disk.file_range import FileRange
from logstore.errors import DataDirectoryError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "x.log"
    path.write_bytes(b"0123456789")
    return path


def test_pieces_end_where_the_file_ends(file: Path) -> None:
    with FileRange(str(file)) as opened:
        assert (opened.size, opened.read(3, 4).tobytes(), opened.read(8, 4).tobytes()) == (10, b"3456", b"89")
        assert opened.read(10, 4).size == 0
        with pytest.raises(DataDirectoryError) as told:
            opened.read_exactly(7, 4)
    assert str(file) in str(told.value)
    assert (told.value.expected, told.value.found) == ("11 bytes", 10)


def test_what_is_appended_is_seen_and_the_size_at_opening_stays(file: Path) -> None:
    with FileRange(str(file)) as opened, file.open("ab") as writer:
        writer.write(b"ab")
        writer.flush()
        assert (opened.size, opened.current_size, opened.read(9, 9).tobytes()) == (10, 12, b"9ab")


def test_a_closed_file_has_no_descriptor(file: Path) -> None:
    before = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    opened = FileRange(str(file))
    opened.close()
    opened.close()
    with pytest.raises(DataDirectoryError):
        opened.read(0, 1)
    if before is not None:
        assert set(os.listdir("/proc/self/fd")) <= before
