"""Columns out of Arrow and records as Arrow, with nulls, slices and chunks; what lies right is not copied."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from logstore.columns.any_columns import record_columns
from logstore.columns.arrow_batches import binary_array, record_batch
from logstore.columns.batch_table import ByteArray, scan
from logstore.columns.header_columns import columns_of_table
from logstore.columns.record_building import build_batch
from logstore.columns.record_columns import BytesColumn, RecordColumns
from logstore.columns.record_table import BatchRecords, RecordTable
from logstore.errors import UsageError
from logstore.layout.record import headers_bytes
from logstore.model import Codec
from tests.naive import record_headers

pa = pytest.importorskip("pyarrow")

WANTED = [b"a", None, b"", b"longer than twelve bytes"]
TEXTS = ["a", None, "", "longer than twelve bytes"]
HEADER_ROWS = [[("a", b"1")], None, [], [("b", None), ("c", b"3")]]


def values(column: BytesColumn | None) -> list[bytes | None]:
    assert column is not None
    return [column.value(row) for row in range(len(column))]


def data_of(array: Any) -> ByteArray:
    return np.frombuffer(array.buffers()[-1], np.uint8)


def structs(rows: list[Any]) -> list[Any]:
    return [None if row is None else [{"key": key, "value": value} for key, value in row] for row in rows]


@pytest.mark.parametrize(
    "array",
    [
        pa.array(WANTED),
        pa.array(WANTED, pa.large_binary()),
        pa.array(TEXTS),
        pa.array(TEXTS, pa.large_string()),
        pa.array(WANTED, pa.binary_view()),
        pa.array(TEXTS, pa.string_view()),
        pa.array([b"before", *WANTED, b"behind"]).slice(1, 4),
        pa.array([b"before", *WANTED], pa.large_binary()).slice(1),
        pa.array([*WANTED, b"behind"], pa.binary_view()).slice(0, 4),
        pa.chunked_array([WANTED]),
        pa.chunked_array([WANTED[:2], WANTED[2:]]),
        pa.chunked_array([[b"x", *WANTED[:2]], WANTED[2:]]).slice(1),
        pa.array(WANTED).dictionary_encode(),
        pa.array([b"x", *WANTED], pa.binary_view()).dictionary_encode()[1:],
        pa.chunked_array([pa.array(rows, pa.string_view()).dictionary_encode() for rows in (TEXTS[:2], TEXTS[2:])]),
    ],
    ids=str,
)
def test_every_kind_of_byte_strings_becomes_a_column(array: Any) -> None:
    columns = record_columns(values=array)
    assert values(columns.values) == WANTED
    assert build_batch(columns).tobytes() == build_batch(record_columns(values=WANTED)).tobytes()


def test_fixed_sizes_empties_and_nulls_become_columns() -> None:
    fixed = pa.array([b"ab", None, b"cd", b"ef"], pa.binary(2))
    assert values(record_columns(values=fixed).values) == [b"ab", None, b"cd", b"ef"]
    assert values(record_columns(values=fixed[1:3]).values) == [None, b"cd"]
    assert values(record_columns(values=pa.nulls(2)).values) == [None, None]
    for kind in (pa.binary(), pa.large_string(), pa.binary_view(), pa.binary(3)):
        assert values(record_columns(values=pa.array([], kind)).values) == []
    assert values(record_columns(values=pa.chunked_array([], pa.binary())).values) == []


@pytest.mark.parametrize("kind", [pa.binary(), pa.string(), pa.large_binary(), pa.binary(2)], ids=str)
def test_bytes_of_one_chunk_are_not_copied(kind: Any) -> None:
    array = pa.array([b"xx", b"ab", b"cd"], kind)
    for given in (array, array[1:], pa.chunked_array([array])):
        column = record_columns(values=given).values
        assert np.shares_memory(column.data, data_of(array))


def test_chunks_of_dictionaries_may_have_more_words_than_each_can_count() -> None:
    words = [b"%d" % number for number in range(200)]
    kind = pa.dictionary(pa.int8(), pa.binary())
    chunks = [pa.array(words[start : start + 100]).dictionary_encode().cast(kind) for start in (0, 100)]
    assert values(record_columns(values=pa.chunked_array(chunks)).values) == words


def test_a_column_keeps_its_buffer() -> None:
    column = record_columns(values=pa.array([b"kept" * 1000])).values
    assert values(column) == [b"kept" * 1000]


@pytest.mark.parametrize("array", [pa.array([1]), pa.array([["a"]]), pa.array([1.5]), pa.array([True])], ids=str)
def test_other_kinds_are_refused(array: Any) -> None:
    with pytest.raises(UsageError, match="Keys and values are bytes; expected binary, string or fixed_size_binary"):
        record_columns(keys=array)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([1, -1]), [1, -1]),
        (pa.array([1, 2], pa.uint8()), [1, 2]),
        (pa.array([1500, 2999], pa.timestamp("us")), [1, 2]),
        (pa.array([3], pa.timestamp("s", "Europe/Paris")), [3000]),
        (pa.array([2], pa.date32()), [172_800_000]),
        (pa.array([7, 8, 7]).dictionary_encode(), [7, 8, 7]),
        (pa.chunked_array([[1], [2, 3]]).slice(1), [2, 3]),
        (pa.array([]), []),
    ],
    ids=str,
)
def test_times_become_milliseconds(array: Any, expected: list[int]) -> None:
    times = record_columns(timestamps=array).timestamps
    assert times.tolist() == expected


def test_times_that_are_none_are_refused() -> None:
    with pytest.raises(UsageError, match="A timestamp is null"):
        record_columns(timestamps=pa.array([1, None]))
    durations, beyond_64_bits = pa.array([1], pa.duration("s")), pa.array([2**60], pa.timestamp("s"))
    others = pa.array(["5"]), pa.array([5.0]), pa.array([True]), pa.array([2**63], pa.uint64())
    for array in (*others, durations, beyond_64_bits):
        with pytest.raises(UsageError, match="not milliseconds since 1970"):
            record_columns(timestamps=array)


@pytest.mark.parametrize(
    "array",
    [
        pa.array(
            structs([[("x", b"0")], *HEADER_ROWS]), pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))
        ),
        pa.array(
            structs([[], *HEADER_ROWS]), pa.large_list(pa.struct({"key": pa.binary(), "value": pa.large_binary()}))
        ),
        pa.array([[("x", b"0")], *HEADER_ROWS], pa.map_(pa.string(), pa.binary())),
    ],
    ids=str,
)
def test_lists_of_structs_and_maps_become_headers(array: Any) -> None:
    expected = [record_headers.encode([(key.encode(), value) for key, value in row or ()]) for row in HEADER_ROWS]
    assert values(record_columns(headers=array[1:]).headers) == expected
    assert values(record_columns(headers=pa.chunked_array([array[1:3], array[3:]])).headers) == expected


def test_headers_are_found_by_name() -> None:
    array = pa.array([[{"value": b"1", "key": "a"}]])
    assert values(record_columns(headers=array).headers) == [record_headers.encode([(b"a", b"1")])]


@pytest.mark.parametrize("rows", [[], [None, None], [[], None]], ids=str)
def test_rows_without_headers_need_no_type(rows: list[Any]) -> None:
    assert values(record_columns(headers=pa.array(rows)).headers) == [b"\x00"] * len(rows)


def test_a_null_list_has_no_headers_whatever_it_covers() -> None:
    pairs = pa.array(structs([[("a", b"1"), ("b", b"2")]])[0])
    array = pa.ListArray.from_arrays(pa.array([0, 1, 2]), pairs, mask=pa.array([False, True]))
    assert values(record_columns(headers=array).headers) == [record_headers.encode([(b"a", b"1")]), b"\x00"]


def test_headers_of_other_kinds_are_refused() -> None:
    pair = pa.struct({"key": pa.string(), "value": pa.binary()})
    for array in (pa.array([["a"]]), pa.array([[{"key": "a"}]]), pa.array(["a"])):
        with pytest.raises(UsageError, match="Headers are lists of keys and values"):
            record_columns(headers=array)
    for null in ([{"key": None, "value": b""}], [None]):
        with pytest.raises(UsageError, match="Invalid null header key found in headers"):
            record_columns(headers=pa.array([null], pa.list_(pair)))


ROWS = [
    (
        b"key %d" % row if row % 3 else None,
        b"value " * row if row % 4 else None,
        -1 if row == 2 else 1_700_000_000_000 + row,
        [("hé", b"x"), ("n", None)] if row in (3, 8) else (),
    )
    for row in range(12)
]


def table_of(rows: list[Any], codec: Codec = Codec.NONE) -> RecordTable:
    data = build_batch(RecordColumns.from_records(rows), base_offset=100, codec=codec)
    (records,) = BatchRecords(data, scan(data), 0).chunks()
    return records


def expected_row(row: int) -> dict[str, Any]:
    key, value, time, headers = ROWS[row]
    return {
        "offset": 100 + row,
        "timestamp": None if time == -1 else time,
        "key": key,
        "value": value,
        "headers": [{"key": name, "value": content} for name, content in headers],
    }


def rows_of(batch: Any) -> list[dict[str, Any]]:
    batch.validate(full=True)
    times = batch.column("timestamp").view(pa.int64()).to_pylist()
    return [row | {"timestamp": time} for row, time in zip(batch.to_pylist(), times, strict=True)]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4], ids=["plain", "lz4"])
@pytest.mark.parametrize("is_view", [False, True], ids=["binary", "views"])
def test_records_become_a_batch(codec: Codec, is_view: bool) -> None:
    records = table_of(ROWS, codec)
    assert rows_of(record_batch(records, is_view=is_view)) == [expected_row(row) for row in range(12)]
    for some in ([2, 3, 9], [0], [8, 1], []):
        part = RecordTable(records.data, records.matrix[:, np.array(some, np.int64)], len(some))
        assert rows_of(record_batch(part, is_view=is_view)) == [expected_row(row) for row in some]


def test_a_batch_outlives_the_table_that_is_written_over() -> None:
    records = table_of(ROWS)
    batch = record_batch(records)
    records.matrix[:] = 0
    assert rows_of(batch) == [expected_row(row) for row in range(12)]


def test_views_read_from_the_file_itself() -> None:
    records = table_of(ROWS)
    batch = record_batch(records, is_view=True)
    data = np.frombuffer(batch.column("value").buffers()[-1], np.uint8)
    assert np.shares_memory(data, records.data)
    assert batch.schema.field("value").type == pa.binary_view()


def test_broken_header_keys_are_text_as_java_reads_them() -> None:
    records = table_of([(None, b"v", 5, [(b"\xff\xfeok", b"raw\xff")])])
    assert rows_of(record_batch(records))[0]["headers"] == [{"key": "\ufffd\ufffdok", "value": b"raw\xff"}]


def test_columns_to_append_again_keep_broken_header_keys() -> None:
    headers = [(b"\xff\xfeok", b"raw\xff")]
    records = table_of([(None, b"v", 5, headers)])
    as_stored, as_java = (columns_of_table(records, as_java=flag).headers for flag in (False, True))
    assert as_stored.value(0) == headers_bytes(headers)
    assert as_java.value(0) == headers_bytes([("\ufffd\ufffdok", b"raw\xff")])


def test_arrow_columns_that_came_out_go_in_again() -> None:
    data = build_batch(RecordColumns.from_records(ROWS[3:]), base_offset=100)
    (records,) = BatchRecords(data, scan(data), 0).chunks()
    for is_view in (False, True):
        batch = record_batch(records, is_view=is_view)
        columns = record_columns(
            keys=batch.column("key"),
            values=batch.column("value"),
            timestamps=batch.column("timestamp"),
            headers=batch.column("headers"),
        )
        assert build_batch(columns, base_offset=100).tobytes() == data.tobytes()


def test_a_table_that_does_not_fit_is_refused() -> None:
    records = table_of(ROWS)
    for is_view in (False, True):
        short = RecordTable(records.data[:80], records.matrix, records.count)
        with pytest.raises(UsageError, match="does not fit its data"):
            record_batch(short, is_view=is_view)
    with pytest.raises(UsageError, match="at most 2 GiB"):
        binary_array(records.data, np.zeros(2, np.int64), np.full(2, 2**30 + 1))
