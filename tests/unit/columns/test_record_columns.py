"""Columns of records to be written: what they are made of, and what is not taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from logstore.columns.any_columns import record_columns
from logstore.columns.header_columns import HeaderColumns
from logstore.columns.record_building import build_batches
from logstore.columns.record_columns import BytesColumn, RecordColumns
from logstore.columns.record_table import RecordTable
from logstore.errors import UsageError
from logstore.kernels.decode import records as decode
from tests.naive import record_headers

DATA = np.frombuffer(b"abcdefgh", np.uint8)


def values(column: BytesColumn | None) -> list[bytes | None]:
    assert column is not None
    return [column.value(row) for row in range(len(column))]


def test_offsets_are_not_copied_and_null_is_not_empty() -> None:
    offsets = np.array([0, 3, 3, 3, 8])
    column = BytesColumn.of_offsets(DATA, offsets, np.array([False, True, False, False]))
    assert values(column) == [b"abc", None, b"", b"defgh"]
    assert column.sizes.tolist() == [3, -1, 0, 5]
    assert np.shares_memory(column.starts, offsets)
    assert np.shares_memory(BytesColumn.of_offsets(DATA, offsets).ends, offsets)
    assert column.data is DATA


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64, ">i8"])
def test_offsets_may_be_any_integers(dtype: Any) -> None:
    assert values(BytesColumn.of_offsets(DATA, np.array([1, 2, 8]).astype(dtype))) == [b"b", b"cdefgh"]


@pytest.mark.parametrize(
    ("data", "offsets", "is_null", "message"),
    [
        (DATA, np.array([]), None, "not an array of integers"),
        (DATA, np.array([0.0, 1.0]), None, "not an array of integers"),
        (DATA, np.array([[0, 1]]), None, "not an array of integers"),
        (DATA, np.array([0, 5, 3]), None, "do not ascend; found row 1"),
        (DATA, np.array([0, 5]), np.array([True, False]), "null mask does not fit"),
        (DATA, np.array([0, 5]), np.array([1]), "null mask does not fit"),
        (DATA[::2], np.array([0, 4]), None, "not one buffer"),
        (DATA.view(np.int8), np.array([0, 4]), None, "not one buffer"),
    ],
)
def test_bad_offsets_are_refused(data: Any, offsets: Any, is_null: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        BytesColumn.of_offsets(data, offsets, is_null)


@pytest.mark.parametrize(
    ("starts", "ends", "message"),
    [
        (np.zeros(2, np.int64), np.zeros(1, np.int64), "a start or an end but not both"),
        (np.zeros(1, np.int32), np.zeros(1, np.int64), "not one array of offsets"),
        (np.zeros(4, np.int64)[::2], np.zeros(2, np.int64), "not one array of offsets"),
    ],
)
def test_bad_ranges_are_refused(starts: Any, ends: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        BytesColumn(DATA, starts, ends)


def test_ranges_out_of_the_data_have_no_sizes() -> None:
    for start, end in ((-1, 2), (0, 9), (2**62, 2**63 - 1)):
        with pytest.raises(UsageError, match="not within its bytes"):
            _ = BytesColumn(DATA, np.array([start]), np.array([end])).sizes


def test_rows_of_one_width_have_the_ranges_of_their_rows() -> None:
    column = BytesColumn.of_width(DATA, 3, 2)
    assert (len(column), column.width) == (3, 2)
    assert (column.starts.tolist(), column.ends.tolist()) == ([0, 2, 4], [2, 4, 6])
    assert column.sizes.tolist() == [2, 2, 2]
    taken = column.take(slice(1, 3))
    assert [taken.value(row) for row in range(2)] == [DATA[2:4].tobytes(), DATA[4:6].tobytes()]
    with pytest.raises(UsageError, match="not within their bytes"):
        BytesColumn.of_width(DATA, 2, DATA.size)


def test_rows_are_taken_without_their_bytes() -> None:
    columns = RecordColumns.from_records(
        [(b"k%d" % row, None if row == 2 else b"v" * row, row, [("h", b"x")] * (row == 1)) for row in range(5)]
    )
    mask = np.array([False, True, True, False, True])
    for rows, expected in ((slice(1, 3), [1, 2]), (mask, [1, 2, 4]), (np.array([4, 1]), [4, 1])):
        taken = columns.take(rows)
        assert taken.count == len(taken) == len(expected)
        assert values(taken.keys) == [b"k%d" % row for row in expected]
        assert values(taken.values) == [None if row == 2 else b"v" * row for row in expected]
        assert values(taken.headers) == [record_headers.encode([(b"h", b"x")] * (row == 1)) for row in expected]
        assert taken.timestamps.tolist() == expected
        assert taken.keys.data is columns.keys.data
    assert RecordColumns(3).take(mask[:3]).count == 2


def test_records_without_time_are_stamped_and_others_left() -> None:
    columns = RecordColumns(2, values=BytesColumn.of_values([b"a", b"b"]))
    stamped = columns.stamped(77)
    assert (stamped.timestamps, stamped.timestamp_ms) == (None, 77)
    assert stamped.take(slice(1)).timestamp_ms == 77
    assert stamped.values is columns.values
    assert stamped.stamped(88) is stamped


def test_all_null_is_no_column() -> None:
    columns = RecordColumns.from_records([(None, None, 5, ()), (None, None, 6, ())])
    assert (columns.keys, columns.values, columns.headers) == (None, None, None)
    assert RecordColumns.from_records([]).count == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"keys": BytesColumn.of_values([b"a"])}, "keys are not as many as the records; expected 2, found 1"),
        ({"timestamps": np.zeros(3, np.int64)}, "timestamps are not as many"),
        ({"timestamps": np.zeros(2, np.int32)}, "not milliseconds since 1970"),
        ({"timestamps": np.zeros(4, np.int64)[::2]}, "not milliseconds since 1970"),
    ],
)
def test_columns_that_do_not_fit_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        RecordColumns(2, **arguments)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([b"a", None, b""], [b"a", None, b""]),
        ((b"ab", bytearray(b"c"), memoryview(b"d")), [b"ab", b"c", b"d"]),
        (np.array([b"ab", b"c", b""]), [b"ab", b"c", b""]),
        (np.array([b"ab", b"c", b"d"])[::2], [b"ab", b"d"]),
        (np.array([b"ab", b"c"], "V2"), [b"ab", b"c\0"]),
        (np.array([b"ab", None], object), [b"ab", None]),
        (DATA.reshape(4, 2), [b"ab", b"cd", b"ef", b"gh"]),
        (DATA.reshape(4, 2)[:, :1], [b"a", b"c", b"e", b"g"]),
        (DATA[:0].reshape(0, 3), []),
        (DATA[:0].reshape(3, 0), [b"", b"", b""]),
        ((DATA, np.array([0, 1, 8])), [b"a", b"bcdefgh"]),
        (BytesColumn.of_values([b"x"]), [b"x"]),
        ([], []),
    ],
)
def test_numpy_and_lists_become_columns(given: Any, expected: list[bytes | None]) -> None:
    columns = record_columns(values=given)
    assert values(columns.values) == expected
    assert columns.count == len(expected)


def test_arrays_in_place_are_not_copied() -> None:
    fixed = np.array([b"ab", b"c"])
    for given, memory in ((fixed, fixed), (DATA.reshape(4, 2), DATA), ((DATA, np.array([0, 8])), DATA)):
        column = record_columns(values=given).values
        assert np.shares_memory(column.data, memory.view(np.uint8))


@pytest.mark.parametrize(
    "given",
    ["text", ["text"], [b"a", 1], np.array(["text"]), np.zeros(3, np.uint8), np.zeros((2, 2)), b"bytes", {1: 2}, 5],
)
def test_values_that_are_no_bytes_are_refused(given: Any) -> None:
    with pytest.raises(UsageError, match="Keys and values are bytes") as refused:
        record_columns(values=given)
    assert "dtype S, V or object" in str(refused.value)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([1, 2], [1, 2]),
        (np.array([1, -1], np.int32), [1, -1]),
        (np.array([5, 6, 7], np.uint64)[::2], [5, 7]),
        (np.array(["1970-01-01T00:00:01.5009"], "datetime64[us]"), [1500]),
    ],
)
def test_timestamps_become_milliseconds(given: Any, expected: list[int]) -> None:
    times = record_columns(timestamps=given).timestamps
    assert times.tolist() == expected


@pytest.mark.parametrize("given", [[1.5], ["1"], [[1]], np.array([2**63], np.uint64), [2**64]])
def test_timestamps_that_are_no_time_are_refused(given: Any) -> None:
    with pytest.raises(UsageError, match="not milliseconds since 1970"):
        record_columns(timestamps=given)


def test_masked_items_are_not_written() -> None:
    objects: Any = np.ma.array([b"a", b"b"], object, mask=[False, True])
    assert values(record_columns(values=objects).values) == [b"a", None]
    with pytest.raises(UsageError, match="found a masked array"):
        record_columns(values=np.ma.array([b"a", b"b"], mask=[False, True]))
    with pytest.raises(UsageError, match="A timestamp is masked"):
        record_columns(timestamps=np.ma.array([1, 2], mask=[False, True]))


def test_empty_lists_are_columns_without_records() -> None:
    columns = record_columns(values=[], keys=(), timestamps=[], headers=[])
    assert (len(columns), build_batches(columns, batch_size=1).data.size) == (0, 0)


def test_columns_of_nothing_and_of_different_lengths_are_refused() -> None:
    with pytest.raises(UsageError, match="There are no columns"):
        record_columns()
    with pytest.raises(UsageError, match="keys are not as many"):
        record_columns(values=[b"a"], keys=[b"a", b"b"])


def test_headers_become_what_a_record_has() -> None:
    rows: list[list[tuple[str | bytes, bytes | None]]] = [[("ü", b"x"), (b"raw", None)], [], [("", b"")]]
    expected = [[("ü".encode(), b"x"), (b"raw", None)], [], [(b"", b"")]]
    columns = record_columns(headers=rows)
    assert values(columns.headers) == [record_headers.encode(each) for each in expected]  # type: ignore[arg-type]
    lists = [[(key.decode() if isinstance(key, bytes) else key, value) for key, value in row] for row in rows]
    again = RecordColumns.from_records([(None, b"v", 5, row) for row in lists])
    assert values(again.headers) == values(columns.headers)


def test_headers_that_cannot_be_are_refused() -> None:
    with pytest.raises(UsageError, match="not Unicode text"):
        record_columns(headers=[[("\ud800", b"")]])
    one, two = np.array([0]), np.array([2])
    keys, items = BytesColumn.of_values([b"a", None]), BytesColumn.of_values([b"1", b"2"])
    with pytest.raises(UsageError, match="Invalid null header key found in headers"):
        HeaderColumns(one, two, keys, items).encoded()
    for starts, ends, column in ((two, one, items), (one, np.array([3]), items), (one, one, items.take([0]))):
        with pytest.raises(UsageError, match="not within their columns"):
            HeaderColumns(starts, ends, items, column).encoded()
    outside = BytesColumn(DATA, one, np.array([9]))
    with pytest.raises(UsageError, match="not within its bytes"):
        HeaderColumns(one, np.array([1]), outside, items.take([0])).encoded()


def test_headers_shared_by_many_records_have_room() -> None:
    pairs = BytesColumn.of_values([b"key"]), BytesColumn.of_values([b"v" * 100])
    shared = HeaderColumns(np.zeros(50, np.int64), np.ones(50, np.int64), *pairs)
    assert values(shared.encoded()) == [record_headers.encode([(b"key", b"v" * 100)])] * 50


def test_headers_of_records_that_are_not_there_are_refused() -> None:
    matrix = np.zeros((decode.COLUMN_COUNT, 1), np.int64)
    matrix[decode.HEADERS_POSITION], matrix[decode.HEADER_COUNT] = 7, 1
    with pytest.raises(UsageError, match="not where its table says; found row 0"):
        HeaderColumns.of_records(RecordTable(DATA, matrix, 1))
