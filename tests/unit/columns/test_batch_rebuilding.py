"""Batches built anew with some of their records, one or many, and those that lost all."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from logstore.columns.batch_rebuilding import AS_IT_WAS, empty_batch, rebuild_batches
from logstore.columns.batch_table import BatchTable, BoolArray, ByteArray, scan
from logstore.columns.record_table import BatchRecords, RecordTable
from logstore.columns.record_windows import record_windows
from logstore.errors import InvalidTimestampError, UsageError
from logstore.layout.batch import DELETE_HORIZON_FLAG, LOG_APPEND_TIME_FLAG
from tests.support.encoder import CONTROL, DELETE_HORIZON, LOG_APPEND_TIME, SOME_TIME, TRANSACTIONAL, Batch, Rec

RECORDS = [Rec(b"k%d" % row, b"v" * row, offset_delta=2 * row, timestamp_delta=row) for row in range(4)]


def opened(*batches: Batch) -> tuple[ByteArray, BatchTable]:
    data = np.frombuffer(b"".join(batch.to_bytes() for batch in batches), np.uint8)
    return data, scan(data, check_crc=True)


def records_of(data: ByteArray, table: BatchTable, row: int) -> RecordTable:
    (records,) = BatchRecords(data, table, row).chunks()
    return records


def rebuild_one(records: RecordTable, table: BatchTable, row: int, keep: BoolArray, horizon: int) -> ByteArray:
    return rebuild_batches(records, table, np.array([row]), np.array([len(records)]), keep, np.array([horizon])).data


def rebuilt(batch: Batch, keep: list[bool], horizon: int = AS_IT_WAS) -> tuple[dict[str, int], RecordTable]:
    data, table = opened(batch)
    again = rebuild_one(records_of(data, table, 0), table, 0, np.array(keep), horizon)
    found = scan(again, check_crc=True)
    assert found.is_valid.tolist() == [1]
    return found.row(0), records_of(again, found, 0)


@pytest.mark.parametrize("codec", range(5))
def test_offsets_stay_and_counts_and_times_follow(codec: int) -> None:
    header: dict[str, Any] = {"producer_id": 7, "producer_epoch": 3, "base_sequence": 10, "leader_epoch": 5}
    batch = Batch(
        100, RECORDS, last_offset_delta=9, codec=codec, flags=TRANSACTIONAL, max_timestamp=SOME_TIME, **header
    )
    row, records = rebuilt(batch, [False, True, True, False])
    assert records.offset.tolist() == [102, 104]
    assert records.timestamp.tolist() == [SOME_TIME + 1, SOME_TIME + 2]
    assert records.sequence.tolist() == [12, 14]
    assert [records.key(index) for index in range(2)] == [b"k1", b"k2"]
    assert row["attributes"] == codec | TRANSACTIONAL
    assert (row["base_offset"], row["last_offset_delta"], row["record_count"]) == (100, 9, 2)
    assert (row["base_timestamp"], row["max_timestamp"]) == (SOME_TIME + 1, SOME_TIME + 2)
    assert (row["producer_id"], row["producer_epoch"], row["base_sequence"]) == (7, 3, 10)
    assert row["partition_leader_epoch"] == 5


def test_a_delete_horizon_is_set_kept_or_left_out() -> None:
    keep = [True] * 4
    row, records = rebuilt(Batch(0, RECORDS), keep, SOME_TIME + 1000)
    assert (row["attributes"], row["base_timestamp"]) == (DELETE_HORIZON_FLAG, SOME_TIME + 1000)
    assert records.timestamp.tolist() == [SOME_TIME + index for index in range(4)]
    row, _ = rebuilt(Batch(0, RECORDS, flags=DELETE_HORIZON, base_timestamp=5), keep)
    assert (row["attributes"], row["base_timestamp"]) == (DELETE_HORIZON_FLAG, 5)
    row, _ = rebuilt(Batch(0, RECORDS[1:], flags=DELETE_HORIZON, base_timestamp=-1), keep[1:])
    assert (row["attributes"], row["base_timestamp"]) == (0, 0)


def test_the_time_of_the_log_stays() -> None:
    row, records = rebuilt(Batch(0, RECORDS, flags=LOG_APPEND_TIME, max_timestamp=77), [False, True, False, True])
    assert (row["attributes"], row["max_timestamp"], row["base_timestamp"]) == (LOG_APPEND_TIME_FLAG, 77, 77)
    assert records.timestamp.tolist() == [77, 77]


def test_many_batches_are_built_like_each_alone() -> None:
    batches = [Batch(10 * number, RECORDS, last_offset_delta=6, leader_epoch=number) for number in range(5)]
    data, table = opened(*batches)
    (window,) = record_windows(data, table, np.arange(5))
    assert window.error is None
    keep = np.array([index % 3 != 0 for index in range(20)])
    rows, ends = np.array([0, 1, 2, 3, 4]), np.array([4, 8, 12, 16, 20])
    horizons = np.array([AS_IT_WAS, 5, AS_IT_WAS, 2**40, AS_IT_WAS])
    built = rebuild_batches(window, table, rows, ends, keep, horizons)
    found = scan(built.data, check_crc=True)
    assert np.array_equal(found.matrix, built.table.matrix)
    alone = [
        rebuild_one(records_of(data, table, row), table, row, keep[4 * row : 4 * row + 4], int(horizons[row])).tobytes()
        for row in range(5)
    ]
    assert built.data.tobytes() == b"".join(alone)


def test_headers_are_written_anew() -> None:
    headers = [(b"plain", b"\xff"), (b"\xffbroken", None)]
    _, records = rebuilt(Batch(0, [Rec(b"a"), Rec(b"b", b"", headers, 1)]), [False, True])
    assert records.headers(0) == [(b"plain", b"\xff"), ("\ufffdbroken".encode(), None)]
    _, records = rebuilt(Batch(0, [Rec(b"a"), Rec(b"b", b"", headers, 1)]), [True, False])
    assert records.headers(0) == []


def test_a_batch_that_loses_all_is_not_built() -> None:
    data, table = opened(Batch(0, RECORDS), Batch(10, RECORDS))
    (window,) = record_windows(data, table, np.arange(2))
    assert window.error is None
    keep = np.array([True] * 4 + [False] * 4)
    none = np.full(2, AS_IT_WAS)
    with pytest.raises(UsageError, match="none is kept; found row 1"):
        rebuild_batches(window, table, np.arange(2), np.array([4, 8]), keep, none)
    with pytest.raises(UsageError, match="not those of the batches"):
        rebuild_batches(window, table, np.arange(1), np.array([3]), keep, none[:1])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"flags": TRANSACTIONAL}, "Cannot write transactional messages without a valid producer ID"),
        ({"producer_id": 5}, "Invalid negative producer epoch"),
        ({"producer_id": 5, "producer_epoch": 0}, "Invalid negative sequence number used"),
    ],
)
def test_producer_fields_that_kafka_refuses_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        rebuilt(Batch(0, RECORDS, **fields), [True] * 4)
    rebuilt(Batch(0, RECORDS, flags=CONTROL, producer_id=5, producer_epoch=0), [True] * 4)


def test_a_time_that_kafka_refuses_is_refused() -> None:
    with pytest.raises(InvalidTimestampError, match="Invalid negative timestamp -5"):
        rebuilt(Batch(0, RECORDS, base_timestamp=-5), [True] * 4)


def test_an_empty_batch_says_who_wrote_last() -> None:
    flags = TRANSACTIONAL | LOG_APPEND_TIME | DELETE_HORIZON
    header: dict[str, Any] = {"producer_id": 7, "producer_epoch": 3, "base_sequence": 10, "leader_epoch": 5}
    _, table = opened(Batch(0, RECORDS), Batch(20, RECORDS, 6, codec=2, flags=flags, max_timestamp=77, **header))
    empty = empty_batch(table, 1)
    expected = Batch(20, [], 6, 0, TRANSACTIONAL | LOG_APPEND_TIME, -1, 77, **header)
    assert empty.tobytes() == expected.to_bytes()
    assert empty.flags.writeable
