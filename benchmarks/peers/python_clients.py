"""How the Python clients of the extra `bench` parse and build batches: kafka-python in Python, aiokafka in C."""

from __future__ import annotations

import time
from collections.abc import Sequence

from benchmarks.measured import Side, timed
from benchmarks.peers.optional import module

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


def parsed(parser: str, content: bytes, record_count: int) -> Side:
    """Seconds of `parse_all`; RuntimeError when it does not come to `record_count`."""

    def side() -> float:
        module(PARSERS[parser])
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
    """Seconds of `build_one`."""

    def side() -> float:
        module(BUILDERS[builder])
        return timed(build_one, builder, values, timestamp_ms)()

    return side
