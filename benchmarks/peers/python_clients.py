"""How the Python clients of the extra `bench` parse and build batches: kafka-python in Python, aiokafka in C."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from benchmarks.measured import Side, timed
from benchmarks.peers.optional import module
from logstore.columns.batch_table import scan
from logstore.columns.record_table import BatchRecords

PARSERS = {"kafka-python": "kafka.record.memory_records", "aiokafka": "aiokafka.record.memory_records"}
BUILDERS = {"kafka-python": "kafka.record.default_records", "aiokafka": "aiokafka.record.default_records"}


def parse_all(parser: str, content: bytes) -> int:
    """The number of records, each made an object, in batches one after the other."""
    records = module(PARSERS[parser]).MemoryRecords(content)
    count = 0
    while records.has_next():
        for _ in records.next_batch():
            count += 1
    return count


def length_of_values(parser: str, content: bytes) -> int:
    """Bytes of all values, as a parser finds them."""
    records = module(PARSERS[parser]).MemoryRecords(content)
    length = 0
    while records.has_next():
        length += sum(len(record.value) for record in records.next_batch())
    return length


def parsed(parser: str, content: bytes, record_count: int, value_length: int) -> Side:
    """Seconds of `parse_all`.

    RuntimeError when it does not come to `record_count`, or values, outside the time, to so many bytes.
    """
    is_checked = False

    def side() -> float:
        nonlocal is_checked
        if not is_checked and (found := length_of_values(parser, content)) != value_length:
            raise RuntimeError(f"{parser} found values of {found} bytes instead of {value_length}")
        is_checked = True
        start = time.perf_counter()
        count = parse_all(parser, content)
        seconds = time.perf_counter() - start
        if count != record_count:
            raise RuntimeError(f"{parser} found {count} records instead of {record_count}")
        return seconds

    return side


def build_one(builder: str, values: Sequence[bytes], timestamp_ms: int) -> bytes:
    """An uncompressed batch of values without keys."""
    made = module(BUILDERS[builder]).DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 30)
    for offset, value in enumerate(values):
        made.append(offset, timestamp_ms, None, value, [])
    return bytes(made.build())


def built(builder: str, values: Sequence[bytes], timestamp_ms: int) -> Side:
    """Seconds of `build_one`; RuntimeError when its batch is not right, or holds something else."""

    def side() -> float:
        batch = np.frombuffer(build_one(builder, values, timestamp_ms), np.uint8)
        (chunk,) = BatchRecords(batch, scan(batch, check_crc=True), 0).chunks()
        if [chunk.value(row) for row in range(len(chunk))] != list(values):
            raise RuntimeError(f"{builder} built a batch of something else")
        return timed(build_one, builder, values, timestamp_ms)()

    return side
