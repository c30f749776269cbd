"""Floors do what their names say, and what was written to a log is found again."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest
import zstandard
from isal.igzip_lib import IsalError

from benchmarks import floors
from benchmarks.bench_codec import COMPRESSED, ENCODERS, record_stream
from benchmarks.floors import Floor, run_shared
from benchmarks.library_floors import compressing, decompressing
from benchmarks.logs import opened, values
from benchmarks.machine_calls import write_each
from benchmarks.segments import write_segment
from benchmarks.written import kinds_of_batches, last_values, sizes_of_one, tables, written
from logstore.codec.gzip import HEADER_SIZE
from logstore.model import Codec


def assert_measures(floor: Floor) -> None:
    assert 0 < floor.side() < 1, floor.name


def test_floors_of_memory_measure_something(tmp_path: Path) -> None:
    data, positions = np.ones(1_000_003, np.uint8), np.arange(0, 1_000_000, 16_384)
    path = tmp_path / "file"
    path.write_bytes(data)
    for floor in (
        *(floors.reading(part) for part in (data, data[3:], data[:64], np.ones((2, 3), np.int64))),
        floors.reading(data, 2),
        floors.checking(data),
        floors.checking(data, 2),
        floors.mapped(path, 2),
        floors.touching(data, positions),
        floors.touching_file(path, positions),
        floors.copying(1_000_000),
        floors.copying(10),
        floors.library("zlib", bytes, 10),
    ):
        assert_measures(floor)


def test_threads_share_all_inputs_and_a_floor_says_how_many_there_are() -> None:
    seen: list[int] = []
    both = threading.Barrier(2, timeout=10)

    def see(number: int) -> None:
        if number < 2:
            both.wait()  # so neither has taken all
        seen.append(number)

    run_shared(see, range(7), 2)
    assert sorted(seen) == list(range(7))
    assert floors.library_over("isal", see, [3], 2).name == "isal, 2 threads"


def test_floors_that_write_leave_no_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    several = floors.writing_each(path, [172, 78], 10)
    assert several.name == "2 bare writes"
    for floor in (floors.writing(path, 4096, 10), several, floors.appending(path, 3 << 20, 2)):
        assert_measures(floor)
    assert_measures(floors.writing_in_parts(path, (3 << 20) + 5))
    assert list(tmp_path.iterdir()) == []


def test_machine_code_writes_each_of_the_sizes_so_many_times(tmp_path: Path) -> None:
    path, data = tmp_path / "file", np.arange(200, dtype=np.uint8)
    with path.open("wb", buffering=0) as file:
        write_each(file.fileno(), data, np.array([3, 2]), 2)
    assert path.read_bytes() == bytes([0, 1, 2, 0, 1] * 2)
    descriptor = os.open(path, os.O_RDONLY)
    with pytest.raises(OSError, match="were written instead of 5"):
        write_each(descriptor, data, np.array([3, 2]), 1)
    os.close(descriptor)


@pytest.mark.parametrize("codec", COMPRESSED, ids=lambda codec: codec.kafka_name)
def test_a_library_is_given_the_streams_and_takes_them(codec: Codec) -> None:
    content = record_stream(20_000)
    stream = ENCODERS[codec](content)
    assert_measures(decompressing(codec, [stream, stream]))
    assert_measures(compressing(codec, content))


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.ZSTD], ids=["gzip", "zstd"])
def test_a_library_that_does_not_decompress_is_no_floor(codec: Codec, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = bytearray(ENCODERS[codec](record_stream(20_000)))
    monkeypatch.setattr("benchmarks.library_floors._size_of", lambda codec, stream: 20_000)
    stream[HEADER_SIZE + 30 :] = bytes(len(stream) - HEADER_SIZE - 30)
    with pytest.raises((IsalError, zstandard.ZstdError)):
        decompressing(codec, [bytes(stream)]).side()


def test_what_was_written_is_found_whenever_it_was(tmp_path: Path) -> None:
    log = opened(tmp_path / "t-0")
    append = lambda count: log.append_records(values(count))  # noqa: E731
    assert len(sizes_of_one(tmp_path, lambda: append(3))) == 1
    assert len(sizes_of_one(tmp_path, lambda: [append(3), append(3)])) == 2
    found = written(log, 3)
    assert found[1] == values(3)
    assert found[0].shape[1] == 1  # all batches are alike
    append(2)
    assert kinds_of_batches(tmp_path / "t-0").shape[1] == 2
    assert last_values(log, 5) == values(3) + values(2)
    log.close()


def test_a_log_that_holds_something_else_is_not_hashed(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020d}.log"
    write_segment(path, 40_000)
    assert [len(table) for table in tables(tmp_path)] == [2]
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="something else"):
        tables(tmp_path)
