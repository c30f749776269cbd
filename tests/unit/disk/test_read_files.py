"""Reading files that another process may change: in pieces, in parts and mapped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from logstore.disk import mapped
from logstore.disk.file_range import FileRange
from logstore.disk.loaded import LoadedFile
from logstore.disk.mapped import MappedFile, copied_file
from logstore.errors import DataDirectoryError
from logstore.view.walk import Damage, Run, walk
from tests.support.golden import Golden


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


WITHOUT_MEMORY = """
import resource, sys
from logstore.disk.mapped import MappedFile

with open("/proc/self/statm") as statm:
    used = int(statm.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), resource.RLIM_INFINITY))
try:
    MappedFile(sys.argv[1])
except OSError as error:
    print(type(error).__name__, error.java_class, error)
"""


def test_a_lack_of_memory_is_named(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.touch()
    os.truncate(path, 1 << 30)
    done = subprocess.run([sys.executable, "-c", WITHOUT_MEMORY, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("DataDirectoryError java.io.IOException Map failed: Cannot allocate memory")
    assert str(path) in done.stdout
    assert "vm.max_map_count" in done.stdout


def test_a_file_that_is_cut_while_it_is_opened_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(b"12345")
    monkeypatch.setattr(mapped, "_checked_size", lambda status, path: status.st_size + 4)
    with pytest.raises(DataDirectoryError, match=r"became shorter .*expected 9 bytes, found 5"):
        MappedFile(str(path))


def test_a_copied_file_does_not_change(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(b"12345")
    (tmp_path / "1.log").symlink_to(path)
    copied = copied_file(str(tmp_path / "1.log"))
    os.truncate(path, 0)
    assert (copied.data.tobytes(), copied.size) == (b"12345", 5)
    with pytest.raises(DataDirectoryError, match="Is a directory"):
        copied_file(str(tmp_path))


SIZE = 3_000_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file in which each byte says where it is."""
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(np.arange(SIZE, dtype=np.int64).astype(np.uint8).tobytes())
    return path


def test_what_is_loaded_is_what_the_file_has(path: Path) -> None:
    content = np.frombuffer(path.read_bytes(), np.uint8)
    file = LoadedFile(str(path))
    assert (file.size, file.data.size, file.path) == (SIZE, SIZE, str(path))
    for start, end in ((0, 10), (5, 100_000), (100_000, SIZE), (1_000_000, 1_000_010), (2_999_999, SIZE + 5), (0, 7)):
        file.load(start, end)
        assert (file.data[start:end] == content[start:end]).all()
        assert not file.data.flags.writeable
    file.release(0, SIZE)
    assert not file.data[: SIZE // 2].any()
    file.load(17, SIZE)
    assert (file.data[17:] == content[17:]).all()


def test_a_window_behind_another_is_loaded_after_the_first_is_released(path: Path) -> None:
    content = np.frombuffer(path.read_bytes(), np.uint8)
    file = LoadedFile(str(path))
    for start in range(0, SIZE, 100_000):
        file.load(start, start + 150_000)
        assert (file.data[start : start + 150_000] == content[start : start + 150_000]).all()
        file.release(start, start + 100_000)


def test_a_file_that_was_cut_is_an_error(path: Path) -> None:
    file = LoadedFile(str(path))
    file.load(0, 100)
    os.truncate(path, 1_000_000)
    file.load(0, 1_000_000)
    with pytest.raises(DataDirectoryError, match=f"became shorter.*{SIZE} bytes.*1000000"):
        file.load(0, 1_000_001)
    os.truncate(path, 0)
    with pytest.raises(DataDirectoryError, match="became shorter"):
        file.load(2_000_000, 2_000_001)


def test_holes_are_zeros(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    with path.open("wb") as file:
        file.write(b"begin")
        file.seek(2_000_000)
        file.write(b"end")
        file.truncate(SIZE)
    loaded = LoadedFile(str(path))
    loaded.load(0, SIZE)
    assert loaded.data.tobytes() == path.read_bytes()


def test_an_empty_file_and_none_at_all(tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()
    with LoadedFile(str(tmp_path / "empty.log")) as empty:
        empty.load(0, 100)
        empty.release(0, 100)
        assert (empty.size, empty.data.size) == (0, 0)
    for name in ("missing.log", ""):
        with pytest.raises(DataDirectoryError):
            LoadedFile(str(tmp_path / name))


@pytest.mark.parametrize("is_damaged", [False, True])
@pytest.mark.parametrize("name", ["transactions", "records", "killed"])
def test_a_walk_is_the_same_as_through_a_mapping(name: str, is_damaged: bool, golden: Golden, tmp_path: Path) -> None:
    count = 0
    for source in sorted(golden(name).glob("*/*.log")):
        content = bytearray(source.read_bytes())
        for position in range(300, len(content), 1000) if is_damaged else ():
            content[position] ^= 1
        path = tmp_path / source.name
        path.write_bytes(content)
        pieces = [list(map(_told, walk(opened(str(path)), 0))) for opened in (MappedFile, LoadedFile)]
        assert pieces[0] == pieces[1]
        count += len(pieces[0])
    assert count > 5


def _told(piece: Run | Damage) -> object:
    if isinstance(piece, Damage):
        return piece
    rows = [piece.table.row(row) for row in range(piece.first_row, piece.row_end)]
    return rows, piece.data[int(piece.table.position[piece.first_row]) : piece.end].tobytes()
