"""Batches built from columns and from Python records: equal bytes, sealed headers, and what cannot be built."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from logstore.columns.batch_fields import BatchFieldArguments
from logstore.columns.batch_table import scan
from logstore.columns.record_building import (
    CACHE_LINE_SIZE,
    build_batch,
    build_batches,
    build_batches_in_turn,
    build_marker,
)
from logstore.columns.record_columns import BytesColumn, RecordColumns
from logstore.columns.record_encoding import RecordEncoder
from logstore.columns.record_table import BatchRecords
from logstore.errors import InvalidTimestampError, LogstoreError, RecordTooLargeError, UsageError
from logstore.kernels.scan import batches as fields
from logstore.layout.batch import DELETE_HORIZON_FLAG, LOG_APPEND_TIME_FLAG
from logstore.model import Codec, ControlRecordType, TimestampType
from tests.naive.building import Row, batch_bytes, split
from tests.support.built import build_batch_from_records
from tests.support.encoder import SOME_TIME, Batch

# Of org.apache.kafka 4.3.1, leader epoch 3.
THREE_RECORDS = (
    "0000000000000000 0000005a 00000003 02 aabf9032 0000 00000002 0000018bcfe56800 0000018bcfe56805 ffffffffffffffff "
    "ffff ffffffff 00000003 14000000046b3104763100 16000a02010a6e6f6b657900 22000604046b330104046831027804683201"
)
ABORT_MARKER = (
    "0000000000000006 00000042 00000003 02 1ad2edc4 0030 00000000 0000018bcfe56814 0000018bcfe56814 0000000000000007 "
    "0001 ffffffff 00000001 20 00 00 00 08 00000000 0c 000000000004 00"
)
HUGE = np.zeros(1 << 31, np.uint8)  # never touched, so it takes no memory


def unhex(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


def some_records(count: int) -> list[Any]:
    return [
        (
            None if row % 5 == 0 else b"key %d" % row,
            None if row % 7 == 0 else b"v" * (row * 37 % 300),
            SOME_TIME + (row * 7919) % 1000 - 500,
            [("trace", b"%d" % row), ("n", None)] if row % 11 == 0 else (),
        )
        for row in range(count)
    ]


def test_a_batch_is_kafkas_to_the_byte() -> None:
    rows: list[Any] = [
        (b"k1", b"v1", 1_700_000_000_000, ()),
        (None, b"nokey", 1_700_000_000_005, ()),
        (b"k3", None, 1_700_000_000_003, [("h1", b"x"), ("h2", None)]),
    ]
    expected = unhex(THREE_RECORDS)
    assert build_batch_from_records(rows, partition_leader_epoch=3).tobytes() == expected


@pytest.mark.parametrize("count", [1, 2, 100, 700])
@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.kafka_name)
def test_what_is_built_is_read(count: int, codec: Codec) -> None:
    records = some_records(count)
    header: dict[str, Any] = {
        "base_offset": 2**40,
        "codec": codec,
        "producer_id": 7,
        "producer_epoch": 3,
        "base_sequence": 2**31 - 2,
        "is_transactional": True,
        "partition_leader_epoch": 9,
    }
    built = build_batch_from_records(records, **header)
    assert built.flags.writeable
    table = scan(built, check_crc=True)
    assert (table.is_valid.tolist(), table.record_count.tolist()) == ([1], [count])
    found = [
        (chunk.key(row), chunk.value(row), int(chunk.timestamp[row]), [(k.decode(), v) for k, v in chunk.headers(row)])
        for chunk in BatchRecords(built, table, 0).chunks()
        for row in range(len(chunk))
    ]
    assert found == [(key, value, time, list(headers)) for key, value, time, headers in records]


def test_columns_without_timestamps_have_none() -> None:
    columns = RecordColumns(2, values=BytesColumn.of_values([b"a", b"b"]))
    expected = batch_bytes([Row(None, b"a"), Row(None, b"b")], Batch(0, leader_epoch=-1))
    assert build_batch(columns).tobytes() == expected


def test_times_of_the_log_and_delete_horizons_are_in_the_header() -> None:
    records = some_records(3)
    stamped = build_batch_from_records(records, timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=77)
    table = scan(stamped)
    assert (table.max_timestamp.tolist(), table.attributes.tolist()) == ([77], [LOG_APPEND_TIME_FLAG])
    table = scan(build_batch_from_records(records, delete_horizon_ms=SOME_TIME + 9))
    assert table.row(0)["base_timestamp"] == SOME_TIME + 9
    assert table.attributes.tolist() == [DELETE_HORIZON_FLAG]
    assert table.max_timestamp.tolist() == [max(record[2] for record in records)]


def test_no_records_are_no_bytes() -> None:
    assert build_batch(RecordColumns(0)).size == 0
    built = build_batches(RecordColumns(0), batch_size=100)
    assert (built.data.size, len(built.table)) == (0, 0)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.SNAPPY], ids=["plain", "snappy"])
def test_many_batches_are_what_a_scan_finds_and_each_like_one(codec: Codec) -> None:
    records = some_records(5000)
    columns = RecordColumns.from_records(records)
    rows = [
        Row(key, value, timestamp, [(name.encode(), of) for name, of in headers])
        for key, value, timestamp, headers in records
    ]
    counts = [batch.record_count for batch in split(rows, 400)]
    assert len(counts) > 1024  # more than are measured at once
    header: dict[str, Any] = {"codec": codec, "producer_id": 1, "producer_epoch": 0}
    built = build_batches(columns, batch_size=400, base_offset=50, base_sequence=2**31 - 100, **header)
    found = scan(built.data, check_crc=True)
    assert np.array_equal(found.matrix, built.table.matrix)
    assert found.record_count.tolist() == counts
    assert found.is_valid.all()
    starts = np.cumsum([0, *counts])
    for batch in (0, 1, len(counts) - 1):
        alone = build_batch(
            columns.take(slice(starts[batch], starts[batch + 1])),
            base_offset=50 + int(starts[batch]),
            base_sequence=(2**31 - 100 + int(starts[batch])) % 2**31,
            **header,
        )
        position, size = int(found.position[batch]), int(found.size[batch])
        assert built.data[position : position + size].tobytes() == alone.tobytes()


def test_batches_without_a_producer_have_no_sequences() -> None:
    built = build_batches(RecordColumns.from_records(some_records(50)), batch_size=400)
    assert set(built.table.column(fields.BASE_SEQUENCE).tolist()) == {-1}


GOOD: list[Any] = [(b"k", b"v", 5, ())]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ({"is_transactional": True}, "Cannot write transactional messages without a valid producer ID"),
        ({"producer_id": 5}, "Invalid negative producer epoch"),
        ({"producer_id": 5, "producer_epoch": 0}, "Invalid negative sequence number used"),
        ({"timestamp_type": TimestampType.NO_TIMESTAMP_TYPE}, "TimestampType must be set"),
        ({"codec": Codec.GZIP, "level": 10}, "gzip doesn't support given compression level: 10"),
        ({"level": 3}, "Compression levels are not defined for this compression type: none"),
        ({"producer_id": -2}, "Invalid negative producer epoch"),
        ({"producer_id": 5, "producer_epoch": 32768, "base_sequence": 0}, "producer_epoch has no room"),
        ({"producer_id": 5, "producer_epoch": 0, "base_sequence": 2**31}, "base_sequence has no room"),
        ({"producer_id": 2**63, "producer_epoch": 0, "base_sequence": 0}, "producer_id has no room"),
        ({"partition_leader_epoch": 2**31}, "partition_leader_epoch has no room"),
        ({"base_offset": -1}, "base_offset has no room in a batch; expected 0 to 9223372036854775807, found -1"),
        ({"base_offset": 2**63}, "base_offset has no room"),
        ({"log_append_time": -2}, "log_append_time has no room"),
        ({"delete_horizon_ms": -1}, "delete_horizon_ms has no room"),
    ],
)
def test_headers_that_cannot_be_are_refused(header: dict[str, Any], message: str) -> None:
    for build in (
        lambda: build_batch_from_records(GOOD, **header),
        lambda: build_batches(RecordColumns.from_records(GOOD), batch_size=100, **header),
    ):
        with pytest.raises(UsageError, match=message):
            build()


def test_offsets_end_with_their_64_bits() -> None:
    two = GOOD * 2
    assert scan(build_batch_from_records(two, base_offset=2**63 - 2)).last_offset.tolist() == [2**63 - 1]
    with pytest.raises(UsageError, match="not so many offsets left; found a batch at 9223372036"):
        build_batch_from_records(two, base_offset=2**63 - 1)


@pytest.mark.parametrize(
    ("time", "message"),
    [
        (-2, "Invalid negative timestamp -2"),
        (-(2**63), "Invalid negative timestamp -9223372036854775808"),
        (2**63, "Invalid timestamp 9223372036854775808"),
    ],
)
def test_times_that_cannot_be_are_refused(time: int, message: str) -> None:
    rows = [*GOOD, (b"k", b"v", time, ())]
    with pytest.raises(InvalidTimestampError, match=f"{message}; .*found record 1"):
        build_batch_from_records(rows)


@pytest.mark.parametrize("deltas", [[0, 0], [3, 1], [-1, 0], [0, 2**31]])
def test_offsets_that_do_not_ascend_are_refused(deltas: list[int]) -> None:
    columns = RecordColumns.from_records(GOOD * 2)
    with pytest.raises(UsageError, match="Offsets must increase monotonically"):
        build_batch(columns, offset_deltas=np.array(deltas))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"offset_deltas": np.array([0])}, r"Offset deltas do not fit the records; expected int64\[2\]"),
        ({"offset_deltas": np.array([0, 1], np.int32)}, "Offset deltas do not fit the records"),
    ],
)
def test_arguments_that_do_not_fit_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        build_batch(RecordColumns.from_records(GOOD * 2), **arguments)


def test_a_batch_size_below_one_is_refused() -> None:
    with pytest.raises(UsageError, match="batch_size is too small"):
        build_batches(RecordColumns.from_records(GOOD), batch_size=0)


def test_ranges_out_of_the_data_are_refused() -> None:
    outside = BytesColumn(np.zeros(5, np.uint8), np.array([0, 3]), np.array([5, 6]))
    for columns in (
        RecordColumns(2, keys=outside),
        RecordColumns(2, values=outside),
        RecordColumns(2, headers=outside),
    ):
        with pytest.raises(UsageError, match="headers of record 1 are not within their column's bytes"):
            build_batch(columns)


def test_sizes_beyond_32_bits_are_refused_before_anything_is_allocated() -> None:
    def columns_of(size: int, count: int) -> RecordColumns:
        ends = np.full(count, size)
        return RecordColumns(count, values=BytesColumn(HUGE, np.zeros(count, np.int64), ends))

    with pytest.raises(RecordTooLargeError, match=r"The record is too large .* found 2147483658 bytes"):
        build_batch(columns_of(2**31, 1))
    with pytest.raises(RecordTooLargeError, match="The batch is too large for any log"):
        build_batch(columns_of(2**30, 2))
    with pytest.raises(RecordTooLargeError, match="The batch is too large for any log"):
        build_batches(columns_of(2**31 - 20, 1), batch_size=100)
    for size, batch_size in ((2**30, 100), (2**31 - 100, 2**31 - 1)):
        sizes, _batches = build_batches_in_turn(columns_of(size, 2), batch_size=batch_size, position=lambda: 0)
        assert (sizes > size).tolist() == [True, True]


@pytest.mark.parametrize("end", [0, 4, 9])
def test_columns_that_change_meanwhile_are_noticed(end: int) -> None:
    columns = RecordColumns(1, values=BytesColumn(np.zeros(5, np.uint8), np.array([0]), np.array([3])))
    encoder = RecordEncoder(columns)
    matrix, row_ends = np.zeros((fields.COLUMN_COUNT, 1), np.int64), np.array([1])
    assert encoder.measure(matrix, row_ends, 0)
    columns.values.ends[0] = end
    with pytest.raises(UsageError, match="changed while it was built"):
        encoder.encode(matrix, row_ends, int(matrix[fields.SIZE, 0]))


def test_a_marker_is_kafkas_to_the_byte() -> None:
    marker = build_marker(
        ControlRecordType.ABORT,
        producer_id=7,
        producer_epoch=1,
        coordinator_epoch=4,
        timestamp_ms=1_700_000_000_020,
        base_offset=6,
        partition_leader_epoch=3,
    )
    assert marker.tobytes() == unhex(ABORT_MARKER)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"control_type": ControlRecordType.LEADER_CHANGE}, "Invalid control record type for end transaction marker"),
        ({"producer_id": -1}, "End transaction marker requires a valid producerId"),
        ({"producer_epoch": -1}, "Invalid negative producer epoch"),
        ({"coordinator_epoch": 2**31}, "coordinator_epoch has no room"),
        ({"timestamp_ms": -2}, "Invalid negative timestamp -2"),
    ],
)
def test_markers_that_cannot_be_are_refused(changed: dict[str, Any], message: str) -> None:
    good: dict[str, Any] = {
        "control_type": ControlRecordType.COMMIT,
        "producer_id": 7,
        "producer_epoch": 1,
        "coordinator_epoch": 4,
        "timestamp_ms": 5,
    }
    assert build_marker(**good).size == 78
    with pytest.raises(LogstoreError, match=message):
        build_marker(**(good | changed))


def test_batches_built_in_turn_are_those_built_at_once() -> None:
    rng = np.random.default_rng(7)
    sizes = rng.integers(0, 300, 20_000)
    data = np.frombuffer(rng.bytes(int(sizes.sum())), np.uint8)
    columns = RecordColumns(
        sizes.size,
        None,
        BytesColumn.of_offsets(data, np.concatenate([[0], np.cumsum(sizes)])),
        rng.integers(1000, 2000, sizes.size),
    )
    for batch_size in (500, 16_384, 3 << 20):
        header: BatchFieldArguments = {
            "base_offset": 5,
            "producer_id": 7,
            "producer_epoch": 0,
            "base_sequence": 2**31 - 9,
        }
        whole = build_batches(columns, batch_size=batch_size, **header)
        batch_sizes, in_turn = build_batches_in_turn(columns, batch_size=batch_size, position=lambda: 7, **header)
        parts = [(part.data.tobytes(), part.table.column(fields.BASE_SEQUENCE).tolist()) for part in in_turn]
        assert batch_sizes.tolist() == whole.table.size.tolist()
        assert b"".join(data for data, _ in parts) == whole.data.tobytes()
        assert [each for _, sequences in parts for each in sequences] == whole.table.column(
            fields.BASE_SEQUENCE
        ).tolist()
        assert len(parts) >= 2


@pytest.mark.parametrize(("count", "width"), [(20_000, 3), ((1 << 20) + 100, 0)])
@pytest.mark.parametrize("batch_size", [16_384, 1 << 30])
def test_rows_of_one_width_are_built_like_rows_of_ranges(count: int, width: int, batch_size: int) -> None:
    data = np.arange(count * width + 5, dtype=np.uint8)  # a few bytes of nobody's behind them
    wide = BytesColumn.of_width(data, count, width)
    ranges = BytesColumn(data, wide.starts, wide.ends)
    times = np.full(count, SOME_TIME)
    built = build_batches(RecordColumns(count, wide, wide, timestamp_ms=SOME_TIME), batch_size=batch_size)
    expected = build_batches(RecordColumns(count, ranges, ranges, times), batch_size=batch_size)
    assert np.array_equal(built.table.matrix, expected.table.matrix)
    assert np.array_equal(built.data, expected.data)


def test_batches_lie_to_a_cache_line_as_they_will_in_their_file() -> None:
    columns = RecordColumns(5000, None, BytesColumn.of_values([b"v" * 1000] * 5000))
    position, positions = 1003, []
    _, in_turn = build_batches_in_turn(columns, batch_size=100_000, position=lambda: position)
    for part in in_turn:
        positions.append(position)
        assert (part.data.ctypes.data - position) % CACHE_LINE_SIZE == 0
        position += part.data.size
    assert len({each % CACHE_LINE_SIZE for each in positions}) > 1
