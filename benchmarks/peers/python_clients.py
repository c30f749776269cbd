"""Python packages that do the same, of the extra `bench`: confluent-kafka with a local broker, kafka-python, aiokafka
and crc32c."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.support.measure import PeerAbsentError, Side, timed
from logstore.columns.batch_table import scan
from logstore.columns.record_table import BatchRecords

CONSUMED_COUNT = 500  # records a call of `consume`, as `max.poll.records`
PARSERS = {"kafka-python": "kafka.record.memory_records", "aiokafka": "aiokafka.record.memory_records"}
BUILDERS = {"kafka-python": "kafka.record.default_records", "aiokafka": "aiokafka.record.default_records"}


def module(name: str) -> Any:
    """Import a module.

    Raises:
        PeerAbsentError: it is not installed; what of it is missing, and how to get it.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # what it uses of Python is not ours to mend
            return importlib.import_module(name)
    except ImportError as error:
        raise PeerAbsentError(f"{error}; `make bench` installs it (the extra `bench`)") from error


def confluent_sends(
    bootstrap: Callable[[], str],
    topic: Callable[[], str],
    value: bytes,
    call_count: int,
    key: bytes | None = None,
    headers: list[tuple[str, bytes]] | None = None,
) -> Side:
    """Return a side: seconds of one `produce` call with its share of the flush at the end; idempotent, defaults else.

    One producer for all rounds, as its users have: to connect and to ask for a producer id takes longer than a round.
    The side raises RuntimeError when the topic's only partition has not as many records more afterwards.
    """

    @cache
    def producer() -> Any:
        new = module("confluent_kafka").Producer({"bootstrap.servers": bootstrap(), "enable.idempotence": True})
        new.produce(topic(), b"first")
        new.flush()
        return new

    @cache
    def asking() -> Any:
        quiet = {"log_level": 0}  # it is still there when the broker is not
        return module("confluent_kafka").Consumer({"bootstrap.servers": bootstrap(), "group.id": "ends", **quiet})

    def end_offset(name: str) -> int:
        _, end = asking().get_watermark_offsets(module("confluent_kafka").TopicPartition(name, 0), timeout=10)
        return int(end)

    def side() -> float:
        name, one = topic(), producer()
        first_offset = end_offset(name)
        start = perf_counter()
        for _ in range(call_count):
            try:
                one.produce(name, value, key, headers=headers)
            except BufferError:  # its queue is full: wait as its users do
                one.poll(1)
                one.produce(name, value, key, headers=headers)
        missing = one.flush()
        seconds = perf_counter() - start
        arrived = end_offset(name) - first_offset
        if missing or arrived != call_count:
            raise RuntimeError(f"{missing} records were not sent, {arrived} arrived instead of {call_count}")
        return seconds / call_count

    return side


def confluent_consumes(bootstrap: Callable[[], str], topic: Callable[[], str], record_count: int) -> Side:
    """Return a side: seconds of one record of `consume`, from the start of the topic's only partition; defaults else.

    One consumer for all rounds, which seeks to the start before each.
    The side raises RuntimeError when not as many records come.
    """

    @cache
    def consumer() -> Any:
        kafka = module("confluent_kafka")
        new = kafka.Consumer({"bootstrap.servers": bootstrap(), "group.id": "bench", "enable.auto.commit": False})
        new.assign([kafka.TopicPartition(topic(), 0, 0)])
        if not new.consume(1, 10):
            raise RuntimeError("nothing was consumed in 10 s")
        return new

    def side() -> float:
        one, count = consumer(), 0
        one.seek(module("confluent_kafka").TopicPartition(topic(), 0, 0))
        start = perf_counter()
        while count < record_count:
            found = one.consume(min(CONSUMED_COUNT, record_count - count), 10)
            if not found:
                raise RuntimeError(f"{count} of {record_count} records were consumed")
            count += sum(each.value() is not None for each in found)
        return (perf_counter() - start) / record_count

    return side


def parse_all(parser: str, content: bytes) -> int:
    """Make an object of each record, batch by batch, and return how many there are."""
    records = module(PARSERS[parser]).MemoryRecords(content)
    count = 0
    while records.has_next():
        for _ in records.next_batch():
            count += 1
    return count


def length_of_values(parser: str, content: bytes) -> int:
    """Return the bytes of all values, as a parser finds them."""
    records = module(PARSERS[parser]).MemoryRecords(content)
    length = 0
    while records.has_next():
        length += sum(len(record.value) for record in records.next_batch())
    return length


def parsed(parser: str, content: bytes, record_count: int, value_length: int) -> Side:
    """Return a side: seconds of `parse_all`.

    RuntimeError when it does not come to `record_count`, or values, outside the time, to so many bytes.
    """
    is_checked = False

    def side() -> float:
        nonlocal is_checked
        if not is_checked and (found := length_of_values(parser, content)) != value_length:
            raise RuntimeError(f"{parser} found values of {found} bytes instead of {value_length}")
        is_checked = True
        start = perf_counter()
        count = parse_all(parser, content)
        seconds = perf_counter() - start
        if count != record_count:
            raise RuntimeError(f"{parser} found {count} records instead of {record_count}")
        return seconds

    return side


def build_one(builder: str, values: Sequence[bytes], timestamp_ms: int) -> bytes:
    """Build an uncompressed batch of values without keys."""
    made = module(BUILDERS[builder]).DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1 << 30)
    for offset, value in enumerate(values):
        made.append(offset, timestamp_ms, None, value, [])
    return bytes(made.build())


def built(builder: str, values: Sequence[bytes], timestamp_ms: int) -> Side:
    """Return a side: seconds of `build_one`; RuntimeError when its batch is not right, or holds something else."""

    def side() -> float:
        batch = np.frombuffer(build_one(builder, values, timestamp_ms), np.uint8)
        (chunk,) = BatchRecords(batch, scan(batch, check_crc=True), 0).chunks()
        if [chunk.value(row) for row in range(len(chunk))] != list(values):
            raise RuntimeError(f"{builder} built a batch of something else")
        return timed(build_one, builder, values, timestamp_ms)()

    return side


def crc32c_package(data: Any) -> Side:
    """Return a side: seconds of its checksum of the data."""

    def side() -> float:
        function: Callable[[Any], int] = module("crc32c").crc32c
        return timed(function, data)()

    return side
