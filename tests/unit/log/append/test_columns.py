"""Columns are appended as the batches that they are built into, one append after the other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from logstore.columns.batch_table import scan
from logstore.columns.record_building import build_batches
from logstore.columns.record_columns import RecordColumns
from logstore.errors import (
    InvalidRecordError,
    InvalidTimestampError,
    LogstoreError,
    OutOfOrderSequenceError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
)
from logstore.log import log_appends
from logstore.log.partition_log import PartitionLog
from logstore.model import Codec
from tests.support.dice import Dice
from tests.support.encoder import SOME_TIME
from tests.support.logs import open_partition_log

BATCH_SIZE = 300
CONFIGS = [
    {},
    {"message.timestamp.type": "LogAppendTime"},
    {"compression.type": "zstd"},
    {"internal.segment.bytes": "700", "index.interval.bytes": "1"},
    {"internal.segment.bytes": "2000", "segment.index.bytes": "24", "index.interval.bytes": "0"},
    {"segment.ms": "3"},
]


def some_columns(seed: str, count: int = 60) -> RecordColumns:
    dice = Dice(seed)
    rows = [
        (dice.take(3), dice.take(dice.below(80)), SOME_TIME + dice.below(20), [(b"h", None)] if dice.chance(20) else [])
        for _ in range(count)
    ]
    return RecordColumns.from_records(rows)


def files(log: PartitionLog) -> dict[str, bytes]:
    log.close()
    return {path.name: path.read_bytes() for path in Path(log.state.directory.path).iterdir()}


def append_each(log: PartitionLog, columns: RecordColumns, **fields: Any) -> None:
    """The batches one by one, as a producer sends them."""
    codec = log.state.rules.target_codec(Codec.NONE)
    built = build_batches(columns, batch_size=BATCH_SIZE, codec=codec, level=log.state.rules.level(codec), **fields)
    for position, size in zip(built.table.position.tolist(), built.table.size.tolist(), strict=True):
        batch = built.data[position : position + size].copy()
        batch[:8] = 0
        log.append_as_leader(batch, leader_epoch=4)


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@pytest.mark.parametrize("producer", [{}, {"producer_id": 7, "producer_epoch": 2, "base_sequence": 2**31 - 20}])
def test_columns_are_appended_as_their_batches(
    tmp_path: Path, config: dict[str, str], producer: dict[str, int]
) -> None:
    columns = some_columns(str(config))
    whole, each = (open_partition_log(tmp_path / name, config, time_ms=SOME_TIME + 5) for name in ("whole-0", "each-0"))
    info = whole.append_columns(columns, batch_size=BATCH_SIZE, leader_epoch=4, **producer)
    append_each(each, columns, **producer)
    assert (info.first_offset, info.last_offset, info.record_count, info.is_duplicate) == (0, 59, 60, False)
    assert whole.log_end_offset == each.log_end_offset == 60
    assert info.max_timestamp == (SOME_TIME + 5 if "message.timestamp.type" in config else columns.timestamps.max())
    found, expected = files(whole), files(each)
    assert found == expected
    assert len(found[f"{0:020}.log"]) > 200


def test_repeated_columns_are_not_written_again(tmp_path: Path) -> None:
    log = open_partition_log(tmp_path / "t-0")
    producer = {"producer_id": 7, "producer_epoch": 0}
    first = log.append_columns(some_columns("a", 4), batch_size=BATCH_SIZE, base_sequence=0, **producer)
    again = log.append_columns(some_columns("a", 4), batch_size=BATCH_SIZE, base_sequence=0, **producer)
    assert not first.is_duplicate
    assert (again.is_duplicate, again.record_count, again.first_offset, again.last_offset) == (True, 0, 0, 3)
    assert log.log_end_offset == 4


def test_batches_behind_a_repetition_get_their_place(tmp_path: Path) -> None:
    """Three records alone, then again as the first of two batches."""
    columns = RecordColumns.from_records([(None, b"v" * 90, SOME_TIME, ()) for _ in range(4)])
    producer = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "batch_size": BATCH_SIZE}
    whole, each = open_partition_log(tmp_path / "whole-0"), open_partition_log(tmp_path / "each-0")
    first = whole.append_columns(columns.take(slice(0, 2)), **producer)
    second = whole.append_columns(columns, **producer)
    assert (first.last_offset, second.first_offset, second.last_offset, second.record_count) == (1, 0, 3, 2)
    each.append_columns(columns, **producer)
    assert files(whole)[f"{0:020}.log"] == files(each)[f"{0:020}.log"]


def small_ones_and_a_large_one() -> RecordColumns:
    return RecordColumns.from_records([(None, b"v" * size, SOME_TIME, ()) for size in [90] * 50 + [2000]])


@pytest.mark.parametrize(
    ("config", "columns", "error"),
    [
        ({"cleanup.policy": "compact"}, RecordColumns(3), InvalidRecordError),
        (
            {"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"},
            RecordColumns.from_records([(b"k", b"v", SOME_TIME, ()), (None, b"v", SOME_TIME, ())]),
            InvalidRecordError,
        ),
        ({"message.timestamp.before.max.ms": "1"}, some_columns("old"), InvalidTimestampError),
        ({"message.timestamp.after.max.ms": "1"}, some_columns("new"), InvalidTimestampError),
        ({"max.message.bytes": "100"}, some_columns("large"), RecordTooLargeError),
        ({"max.message.bytes": "1000"}, small_ones_and_a_large_one(), RecordTooLargeError),
    ],
    ids=["no key", "one without a key, dated by the log", "too old", "too new", "too large", "too large at the end"],
)
def test_nothing_is_written_of_records_that_are_refused(
    tmp_path: Path, config: dict[str, str], columns: RecordColumns, error: type[LogstoreError]
) -> None:
    log = open_partition_log(tmp_path / "t-0", config, time_ms=SOME_TIME + 5)
    with pytest.raises(error):
        log.append_columns(columns, batch_size=BATCH_SIZE)
    assert (log.log_end_offset, log.size, log.state.failure.error) == (0, 0, None)


@pytest.mark.parametrize("limit", ["internal.segment.bytes", "max.message.bytes"])
def test_no_batch_is_made_larger_than_a_segment_or_a_message_may_be(tmp_path: Path, limit: str) -> None:
    log = open_partition_log(tmp_path / "t-0", {limit: "700"})
    log.append_columns(some_columns("small ones", 100), batch_size=1 << 20)
    sizes = [size for segment in log.state.segments for size in scan(segment.data).size.tolist()]
    assert (log.log_end_offset, sum(sizes)) == (100, log.size)
    assert 500 < max(sizes) <= 700
    log.close()


def test_a_record_larger_than_a_segment_is_refused(tmp_path: Path) -> None:
    log = open_partition_log(tmp_path / "t-0", {"internal.segment.bytes": "700"})
    with pytest.raises(RecordBatchTooLargeError):
        log.append_columns(small_ones_and_a_large_one(), batch_size=1 << 20)
    assert log.log_end_offset == 50
    log.close()


def test_a_gap_in_sequences_is_refused(tmp_path: Path) -> None:
    log = open_partition_log(tmp_path / "t-0")
    log.append_columns(some_columns("a"), producer_id=7, producer_epoch=0, base_sequence=0)
    with pytest.raises(OutOfOrderSequenceError, match=r"61 \(incoming seq. number\), 59 \(current end"):
        log.append_columns(some_columns("b"), producer_id=7, producer_epoch=0, base_sequence=61)
    assert log.log_end_offset == 60


def test_no_records_are_no_append(tmp_path: Path) -> None:
    log = open_partition_log(tmp_path / "t-0")
    assert log.append_columns(RecordColumns(0)).record_count == 0
    assert log.append_columns(RecordColumns(2)).last_offset == 1
    assert np.unique(log.state.segments.last.data).size > 1


def test_batches_go_the_fast_path_once_the_first_has_gone_the_slow_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_partition_log(tmp_path / "t-0")
    slow: list[int] = []

    append = log_appends.append_slowly

    def counted(*arguments: Any) -> Any:
        slow.append(log.log_end_offset)
        return append(*arguments)

    monkeypatch.setattr(log_appends, "append_slowly", counted)
    columns = some_columns("quick", 200)
    log.append_columns(columns, producer_id=7, producer_epoch=0, base_sequence=0, batch_size=BATCH_SIZE)
    assert log.log_end_offset == 200
    assert slow == [0]
    log.close()
