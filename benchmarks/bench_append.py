"""Appends of an idempotent producer to a running log, 100 bytes a record: calls of 1 to 1000, and columns.

Kafka's side is `MemoryRecords.withIdempotentRecords` and `appendAsLeader`, the records being in memory; its columns
are appends of 1000 records, as many of them as there are records. Both sides of these begin a new log each time, so
that neither writes to memory that the system has yet to find, or waits for what it wrote before.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.bench_kernels import NO_DATA, PRODUCER_COUNTS, table_of
from benchmarks.peers.kafka import WarmKafka
from benchmarks.support.data import scaled, steps, values
from benchmarks.support.floors import appending, decompressing, reading, writing
from benchmarks.support.logs import kinds_of_batches, opened, written
from benchmarks.support.measure import Floor, Growth, Measured, Side
from logstore.columns.record_building import build_batch
from logstore.columns.record_columns import BytesColumn, RecordColumns
from logstore.config.topic import parse_config
from logstore.folds.producer_update import AppendOrigin, ProducerUpdate
from logstore.layout.batch import HEADER_SIZE as BATCH_HEADER_SIZE
from logstore.log.append.analyze import analyze
from logstore.log.append.rules import ValidationRules
from logstore.log.append.validate import validate
from logstore.log.partition_log import PartitionLog
from logstore.model import Codec

VALUE_SIZE = 100
RECORD_SIZE = 107  # of a record of such a value, on average
CHECKED = [(1, Codec.NONE), (1000, Codec.NONE), (1000, Codec.LZ4), (1000, Codec.ZSTD)]
KAFKA_CALLS = {1: 20_000, 10: 10_000, 100: 2_000, 1000: 300}  # a round, by records a call
NOW_MS = 1_700_000_000_000
RULES = ValidationRules.of(parse_config({}), "t-0")
COLUMN_RECORD_COUNT = scaled(20_000, 1_000_000)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[PartitionLog]:
    log = opened(tmp_path / "t-0")
    yield log
    log.close()


def kafkas_appends(kafka: WarmKafka, place: Path, record_count: int, call_count: int) -> Side:
    """Return a side: seconds of one append of `record_count` records, of `call_count` to a new log."""
    sizes = {"records": record_count, "count": call_count, "valueSize": VALUE_SIZE}

    def side() -> float:
        shutil.rmtree(place, ignore_errors=True)
        order = {"op": "append", "dir": str(place), **sizes}
        return kafka.seconds(**order, call_count=call_count, expected_count=call_count * record_count)

    return side


def bare_write(place: Path, record_count: int = 1) -> Floor:
    """Return the floor of an append: one write of a batch of `record_count` records."""
    return writing(place / "floor", BATCH_HEADER_SIZE + record_count * RECORD_SIZE, 500)


def kinds_and_lengths(log: PartitionLog) -> tuple[Any, ...]:
    """Return the kinds of batches, the number of records, and the bytes of their values."""
    sizes = [chunk.value_size for chunk in log.records().chunks()]
    return kinds_of_batches(Path(log.state.directory.path)), sum(map(len, sizes)), int(sum(map(np.sum, sizes)))


@pytest.mark.parametrize("record_count", KAFKA_CALLS)
def test_append_records(
    measured: Measured, kafka: WarmKafka, log: PartitionLog, record_count: int, tmp_path: Path
) -> None:
    batch = values(record_count)
    call_count = scaled(20, KAFKA_CALLS[record_count])
    sequence = 0

    def append() -> int:
        nonlocal sequence
        log.append_records(batch, base_sequence=sequence, producer_id=7, producer_epoch=0)
        sequence += record_count
        return record_count

    size = BATCH_HEADER_SIZE + record_count * RECORD_SIZE
    measured(
        append,
        title=f"append, {record_count:,} records a call",
        size=size,
        count=record_count,
        peers={"Kafka": kafkas_appends(kafka, tmp_path / "kafka", record_count, call_count)},
        floor=(writing if record_count < 1000 else appending)(tmp_path / "floor", size, 500),
        written_size=size,
        growth=Growth("records of an append", "append", record_count),
        hashed=lambda count: (count, *written(log, record_count)),
    )
    assert log.log_end_offset == sequence


def test_append_columns(measured: Measured, kafka: WarmKafka, tmp_path: Path) -> None:
    count = COLUMN_RECORD_COUNT
    data = np.frombuffer(b"".join(values(26)) * (count // 26 + 1), np.uint8)[: count * VALUE_SIZE]
    column = BytesColumn.of_offsets(data, np.arange(count + 1) * VALUE_SIZE)
    columns = RecordColumns(count, None, column)
    call_count = count // 1000
    kafkas = kafkas_appends(kafka, tmp_path / "kafka", 1000, call_count)
    logs: list[PartitionLog] = []

    def begin() -> None:
        for log in logs:
            log.close()
        shutil.rmtree(tmp_path / "ours", ignore_errors=True)
        (tmp_path / "ours").mkdir()
        logs[:] = [opened(tmp_path / "ours" / "t-0")]

    def append() -> int:
        return logs[0].append_columns(columns, base_sequence=0, producer_id=7, producer_epoch=0).record_count

    size = count * RECORD_SIZE
    appended_count = measured(
        append,
        title=f"columns of {count:,} records; Kafka: appends of 1000",
        size=size,
        count=count,
        peers={"Kafka": lambda: kafkas() * call_count},
        floor=appending(tmp_path / "floor", size),
        written_size=size,
        prepare=begin,
        hashed=lambda _: (logs[0].log_end_offset, *kinds_and_lengths(logs[0])),
    )
    assert appended_count == logs[0].log_end_offset == count
    logs[0].close()


@pytest.mark.parametrize("producer_count", PRODUCER_COUNTS)
def test_append_beside_producers(measured: Measured, log: PartitionLog, producer_count: int, tmp_path: Path) -> None:
    """Append one record of each producer in turn: the cost may grow with cache misses, and with nothing else."""
    update = ProducerUpdate(log.state.producers.state, AppendOrigin.CLIENT)
    update.step(NO_DATA, table_of(producer_count, producer_count), 0, producer_count)
    update.commit()
    log.append_records(values(1))
    numbers = itertools.count(1)
    batch = values(1)

    def append() -> int:
        number = next(numbers)
        producer_id, sequence = number * 7919 % producer_count, 1 + (number - 1) // producer_count
        log.append_records(batch, producer_id=producer_id, producer_epoch=0, base_sequence=sequence)
        return 1

    title = f"append of a record beside {producer_count:,} producers"
    growth, floor = Growth("producers", "append", producer_count), bare_write(tmp_path)
    measured(append, title=title, count=1, floor=floor, growth=growth, hashed=lambda _: written(log, 1))
    assert len(log.state.producers.state) == producer_count


@pytest.mark.parametrize("segment_count", steps(1, 30, 100, 300, 1000))
def test_append_behind_segments(measured: Measured, log: PartitionLog, segment_count: int, tmp_path: Path) -> None:
    """The cost must not grow with the number of segments."""
    batch = values(1)
    for _ in range(segment_count - 1):
        log.append_records(batch)
        log.roll()

    def append() -> int:
        log.append_records(batch)
        return 1

    title = f"append of a record behind {segment_count:,} segments"
    growth, floor = Growth("segments", "append", segment_count), bare_write(tmp_path)
    measured(append, title=title, count=1, floor=floor, growth=growth, hashed=lambda _: written(log, 1))
    assert len(log.state.segments) == segment_count


@pytest.mark.parametrize(("count", "codec"), CHECKED, ids=lambda each: str(getattr(each, "kafka_name", each)))
def test_append_checks(measured: Measured, count: int, codec: Codec) -> None:
    """Measure the checks of the slow path before it writes; the fast path checks while it appends."""
    columns = RecordColumns.from_records((None, b"%0100d" % index, NOW_MS, []) for index in range(count))
    data = build_batch(columns, codec=codec, producer_id=7, producer_epoch=0, base_sequence=0)

    def check() -> int:
        analyzed = analyze(data, origin=AppendOrigin.CLIENT, leader_epoch=0, rules=RULES)
        call = {"origin": AppendOrigin.CLIENT, "base_offset": 100, "leader_epoch": 0, "now_ms": NOW_MS, "rules": RULES}
        return int(validate(analyzed, **call).table.last_offset[-1])

    title = f"check of an append of {count:,} records, {codec.kafka_name}"
    floor = reading(data) if codec is Codec.NONE else decompressing(codec, [data[BATCH_HEADER_SIZE:].tobytes()])
    assert measured(check, title=title, size=data.size, count=count, floor=floor) == 99 + count
