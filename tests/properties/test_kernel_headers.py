"""Headers from columns to records and back against slow twins: good ones, and ranges and bytes that lie."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.columns.header_columns import HeaderColumns
from logstore.columns.record_columns import BytesColumn
from logstore.kernels.encode.fields import SLACK_SIZE
from logstore.kernels.table import headers as fields
from tests.naive import record_headers
from tests.properties.kernel_inputs import damaged, headers
from tests.support.kernel_forms import run_both
from tests.support.sampling import examples

UNTOUCHED = -77

rows_of_headers = st.lists(headers, min_size=1, max_size=4)
lies = st.sampled_from([0, 1, 2, -1, 5, 2**63 - 1, -(2**63)]) | st.integers(-2, 8)
pairs_of_lies = st.lists(st.tuples(lies, lies), min_size=2, max_size=2)


def encode(columns: HeaderColumns, out_capacity: int) -> tuple[int, int, list[bytes]]:
    """Status, the row it stopped at, and the headers of the rows before it."""
    state = np.full(fields.STATE_COUNT, UNTOUCHED, np.int64)
    state[fields.ROW_COUNT], state[fields.HEADER_COUNT] = len(columns), len(columns.keys)
    state[fields.KEY_DATA_SIZE], state[fields.VALUE_DATA_SIZE] = columns.keys.data.size, columns.values.data.size
    state[fields.OUT_CAPACITY] = out_capacity
    out = np.full(out_capacity + SLACK_SIZE, 0x55, np.uint8)
    ends = np.full(len(columns), UNTOUCHED, np.int64)
    keys, values = ((column.data, column.starts, column.ends) for column in (columns.keys, columns.values))
    status = run_both(fields.encode_headers, state, columns.starts, columns.ends, *keys, *values, out, ends)
    stop = len(columns) if status == fields.OK else int(state[fields.ROW])
    bounds = [0, *ends[:stop].tolist()]
    return status, stop, [out[a:b].tobytes() for a, b in pairwise(bounds)]


@settings(max_examples=examples(100))
@given(rows_of_headers)
def test_headers_are_written_as_the_twin_does(rows: list[list[record_headers.Header]]) -> None:
    columns = HeaderColumns.of_lists(rows)
    expected = [record_headers.encode(each) for each in rows]
    size = sum(map(len, expected))
    assert encode(columns, size) == (fields.OK, len(rows), expected)
    status, stop, written = encode(columns, size - 1)
    assert (status, written) == (fields.OUT_FULL, expected[:stop])


@settings(max_examples=examples(100))
@given(pairs_of_lies, pairs_of_lies, pairs_of_lies, st.integers(0, 60))
def test_ranges_that_lie_are_found_and_never_followed(
    of_rows: Sequence[tuple[int, int]],
    of_keys: Sequence[tuple[int, int]],
    of_values: Sequence[tuple[int, int]],
    out_capacity: int,
) -> None:
    data = np.arange(5, dtype=np.uint8)
    ranges = [np.array(pairs, np.int64).T.copy() for pairs in (of_rows, of_keys, of_values)]
    columns = HeaderColumns(*ranges[0], BytesColumn(data, *ranges[1]), BytesColumn(data, *ranges[2]))
    status, stop, written = encode(columns, out_capacity)
    assert len(written) == stop
    if status == fields.OK:
        expected = [_row(columns, start, end) for start, end in of_rows]
        assert written == expected


def _row(columns: HeaderColumns, start: int, end: int) -> bytes:
    return record_headers.encode([(columns.keys.value(i) or b"", columns.values.value(i)) for i in range(start, end)])


Row = tuple[int, int]  # where the first header is, and how many there are


def expected_of(data: bytes, rows: Sequence[Row], capacity: int) -> tuple[int, int, list[record_headers.Header]]:
    """Status, the row it stops at, and the headers of the rows before it."""
    found: list[record_headers.Header] = []
    for number, (position, count) in enumerate(rows):
        if not 0 <= position <= len(data):
            return fields.BAD_RANGE, number, found
        if count > capacity - len(found):
            return fields.OUT_FULL, number, found
        row = record_headers.decode(data, position, count)
        if row is None:
            return fields.BAD_RANGE, number, found
        found += row
    return fields.OK, len(rows) - 1, found


def decoded(data: bytes, rows: Sequence[Row], capacity: int) -> tuple[int, int, list[record_headers.Header]]:
    """What the kernel finds."""
    state = np.full(fields.STATE_COUNT, UNTOUCHED, np.int64)
    state[fields.ROW_COUNT] = len(rows)
    buffer = np.frombuffer(data, np.uint8)
    matrix = np.full((fields.COLUMN_COUNT, capacity), UNTOUCHED, np.int64)
    positions, counts = (np.array([row[part] for row in rows], np.int64) for part in (0, 1))
    status = run_both(fields.decode_headers, state, buffer, buffer.size, positions, counts, matrix, capacity)
    stop = int(state[fields.ROW])
    header_count = sum(max(count, 0) for _, count in rows[: stop + (status == fields.OK)])
    keys = BytesColumn(buffer, matrix[fields.KEY_START], matrix[fields.KEY_END])
    values = BytesColumn(buffer, matrix[fields.VALUE_START], matrix[fields.VALUE_END])
    found = [(keys.value(index) or b"", values.value(index)) for index in range(header_count)]
    if status == fields.OK:
        assert state[fields.HAS_OTHER_THAN_ASCII] == int(not all(key.isascii() for key, _ in found))
    return status, stop, found


@settings(max_examples=examples(100))
@given(rows_of_headers)
def test_headers_are_found_where_they_were_written(rows: list[list[record_headers.Header]]) -> None:
    parts = [record_headers.encode(each) for each in rows]
    ends = np.cumsum([len(part) for part in parts]).tolist()
    places = [(end - len(part) + 1, len(each)) for end, part, each in zip(ends, parts, rows, strict=True)]
    together = [header for each in rows for header in each]
    assert decoded(b"".join(parts), places, len(together)) == (fields.OK, len(rows) - 1, together)


encoded_headers = headers.map(record_headers.encode)
places = st.tuples(st.integers(-1, 30) | lies, st.integers(-1, 3))


@settings(max_examples=examples(200))
@given(encoded_headers | damaged(encoded_headers), st.lists(places, min_size=1, max_size=3), st.integers(0, 6))
def test_headers_that_lie_are_found_as_the_twin_finds_them(data: bytes, rows: list[Row], capacity: int) -> None:
    assert decoded(data, rows, capacity) == expected_of(data, rows, capacity)
