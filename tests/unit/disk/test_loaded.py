"""A file loaded in parts is the file that is mapped, and an error where it was cut meanwhile."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from logstore.disk.loaded import LoadedFile
from logstore.disk.mapped import MappedFile
from logstore.errors import DataDirectoryError
from logstore.view.walk import Damage, Run, walk
from tests.support.golden import Golden

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
