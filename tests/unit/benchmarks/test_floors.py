"""Floors measure something, what was written to a log is found again, and files stay in the page cache."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from benchmarks.support import floors
from benchmarks.support.data import COMPRESSED, SEGMENT, record_stream, values
from benchmarks.support.logs import kinds_of_batches, last_values, opened, sizes_of_one, tables, written
from benchmarks.support.page_cache import READ_SIZE, held, make_ready, resident_size
from logstore.codec import compress


@pytest.mark.long
def test_floors_measure_something_and_leave_no_file(tmp_path: Path) -> None:
    data, positions, path = np.ones(1_000_003, np.uint8), np.arange(0, 1_000_000, 16_384), tmp_path / "file"
    path.write_bytes(data)
    content = record_stream(20_000)
    for floor in (
        *(floors.reading(part) for part in (data, data[3:], data[:64], np.ones((2, 3), np.int64))),
        *(floors.decompressing(codec, [compress(codec, memoryview(content))]) for codec in COMPRESSED),
        *(floors.compressing(codec, content) for codec in COMPRESSED),
        floors.mapped(path, 2),
        floors.touching(data, positions),
        floors.touching_file(path, positions),
        floors.copying(10),
        floors.writing(path, 4096, 10),
        floors.writing_each(path, [172, 78], 10),
        floors.appending(path, 3 << 20, 2),
        floors.writing_in_parts(path, (3 << 20) + 5),
    ):
        assert 0 < floor.side() < 1, floor.name
    assert list(tmp_path.iterdir()) == []


def test_what_was_written_is_found_whenever_it_was(tmp_path: Path) -> None:
    log = opened(tmp_path / "t-0")
    append = lambda count: log.append_records(values(count))  # noqa: E731
    assert len(sizes_of_one(tmp_path, lambda: append(3))) == 1
    assert len(sizes_of_one(tmp_path, lambda: [append(3), append(3)])) == 2
    found = written(log, 3)
    assert (found[1], found[0].shape[1]) == (values(3), 1)  # all batches are alike
    append(2)
    assert kinds_of_batches(tmp_path / "t-0").shape[1] == 2
    assert last_values(log, 5) == values(3) + values(2)
    log.close()
    content = bytearray((tmp_path / "t-0" / SEGMENT).read_bytes())
    content[100] ^= 1
    (tmp_path / "t-0" / SEGMENT).write_bytes(content)
    with pytest.raises(ValueError, match="something else"):
        tables(tmp_path / "t-0")


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="a user may not lock that much memory")
def test_a_file_stays_in_the_page_cache_while_it_is_held() -> None:
    with TemporaryDirectory(dir="/var/tmp") as place:  # on a disk, which `tmp_path` may not be
        path, size = Path(place) / "large", 3 * READ_SIZE + 5
        path.write_bytes(b"1" * size)
        forget(path)
        if resident_size(path) == size:
            pytest.skip("this file system keeps every page")
        with held([path]):
            forget(path)
            assert resident_size(path) == size


def forget(path: Path) -> None:
    """Ask the system to drop the file from the page cache."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def test_memory_is_made_ready_without_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    make_ready(10)
    assert list(tmp_path.iterdir()) == []
