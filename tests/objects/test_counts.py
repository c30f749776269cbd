"""Requests and bytes are counted: a question costs what its answer needs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner

import logstore
from logstore.disk import objects
from logstore.view.partition_reader import PartitionReader
from logstore_tools.commands import logstore as command_line
from tests.conformance.dumping import answer
from tests.support.object_store import ObjectStore, Request

RECORD_COUNT, START_MS = 16_000, 1_700_000_000_000
BESIDE_SIZE_MAX = 64 * 1024  # bytes of a lookup beside the batches that are asked for
URL = "s3://logs/counted"


@pytest.fixture(scope="module")
def log_size(server: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> int:
    """The bytes of a log of some segments that is at `URL`."""
    directory: Path = tmp_path_factory.mktemp("counted") / "data"
    with logstore.open(directory) as store:
        store.create_topic("orders", partitions=1, config={"segment.bytes": 4 * 1024 * 1024})
        producer, value = store.producer(linger_ms=5, batch_size=16_384), os.urandom(1000)
        for number in range(RECORD_COUNT):
            producer.send("orders", value=value, timestamp_ms=START_MS + number)
        producer.close()
    server.put_all(directory, "counted")
    return sum(path.stat().st_size for path in directory.glob("orders-0/*.log"))


def _size(requests: list[Request]) -> int:
    return sum(request.size for request in requests)


def _of_logs(requests: list[Request]) -> list[Request]:
    return [request for request in requests if request.key.startswith("counted/orders-0/0") and ".log" in request.key]


def test_topics_reads_no_log(store: ObjectStore, log_size: int) -> None:
    with store.counted() as requests:
        result = CliRunner().invoke(command_line, ["topics", URL])
    assert (result.exit_code, _of_logs(requests)) == (0, [])
    assert str(log_size) in result.output.replace(",", "")
    assert len(requests) < 30


def test_segments_reads_the_ends_of_logs(store: ObjectStore, log_size: int) -> None:
    with store.counted() as requests:
        result = CliRunner().invoke(command_line, ["segments", URL])
    assert result.exit_code == 0, result.output
    assert 0 < _size(_of_logs(requests)) <= 0.01 * log_size


@pytest.mark.parametrize("offset", [0, 1000, 5000, 9999])
def test_a_lookup_by_offset_takes_three_requests_beside_its_batches(
    offset: int, store: ObjectStore, log_size: int
) -> None:
    reader = PartitionReader(f"{URL}/orders-0")
    with store.counted() as requests:
        (chunk,) = reader.records(offset, end_offset=offset + 1).chunks()
    assert chunk.offset.tolist() == [offset]
    *beside, batches = requests
    assert len(beside) <= 3
    assert _size(beside) <= BESIDE_SIZE_MAX
    assert batches.size <= BESIDE_SIZE_MAX


@pytest.mark.parametrize("number", [0, 3000, 5000, 8000])
def test_a_lookup_by_time_takes_three_requests(number: int, store: ObjectStore, log_size: int) -> None:
    reader = PartitionReader(f"{URL}/orders-0")
    reader.offset_for_timestamp(START_MS + RECORD_COUNT - 1)  # the largest times of all segments are known then
    with store.counted() as requests:
        found = reader.offset_for_timestamp(START_MS + number)
    assert found is not None
    assert found.offset == number
    assert len(requests) <= 3
    assert _size(requests) <= 2 * BESIDE_SIZE_MAX


def test_a_hundredth_of_the_offsets_takes_three_hundredths_of_the_bytes(store: ObjectStore, log_size: int) -> None:
    first, count = 5000, RECORD_COUNT // 100
    reader = PartitionReader(f"{URL}/orders-0")
    with store.counted() as requests:
        chunks = list(reader.records(first, end_offset=first + count).chunks())
    assert sum(map(len, chunks)) == count
    assert _size(requests) <= 0.03 * log_size
    objects.forget_all()
    with store.counted() as requests:
        code, text, _ = answer([f"{URL}/orders-0/*.log", "--offset", f"{first}:{first + count - 1}"])
    assert (code, "\nbaseOffset: " in text) == (0, True)
    assert _size(requests) <= 0.03 * log_size


def test_a_full_read_takes_each_byte_once(store: ObjectStore, log_size: int) -> None:
    with store.counted() as requests:
        result = CliRunner().invoke(command_line, ["verify", f"{URL}/orders-0"])
    assert result.exit_code == 0, result.output
    assert log_size <= _size(_of_logs(requests)) <= 1.02 * log_size
    reader = PartitionReader(f"{URL}/orders-0")
    with store.counted() as requests:
        assert sum(map(len, reader.records().chunks())) == RECORD_COUNT
    assert _size(requests) <= 1.02 * log_size + 8 * BESIDE_SIZE_MAX
