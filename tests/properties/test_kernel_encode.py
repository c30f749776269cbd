"""The kernels that write batches against slow twins: good columns in any batches, and columns that lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.columns.record_columns import BytesColumn, RecordColumns
from logstore.columns.record_encoding import RecordEncoder
from logstore.kernels.encode import batches as encode
from logstore.kernels.encode import fields as encode_fields
from logstore.kernels.encode import measure as encode_measure
from logstore.kernels.encode import structs as encode_struct
from logstore.kernels.scan import batches as scan
from logstore.layout.batch import HEADER_SIZE
from tests.naive import building
from tests.naive.building import Measured, RefusedError, Row
from tests.properties.kernel_inputs import batch_values, fields, headers, ints, longs, shorts
from tests.support.encoder import DELETE_HORIZON, Batch, record_bytes
from tests.support.kernel_forms import Guarded, GuardedStruct, run_both, run_both_on
from tests.support.sampling import examples

CAPACITY = 40
UNTOUCHED = -77
REASONS = {encode_struct.BAD_TIMESTAMP: "timestamp", encode_struct.BAD_OFFSET_DELTA: "offset delta"}

times = st.integers(0, 9) | st.just(1_700_000_000_000) | st.integers(-2, 2**63 - 1)
rows = st.builds(Row, fields, fields, times, st.just(()) | st.just(()) | headers, st.none())
many_rows = st.lists(rows, min_size=1, max_size=8)
some_bytes = st.none() | st.binary(max_size=70)
equal_rows = st.builds(
    Row, some_bytes, some_bytes, times.filter(lambda time: time >= -1), st.just(()) | headers, st.none()
)
runs = st.lists(st.tuples(rows, st.integers(1, 70), st.just(0) | st.integers(0, 200)), min_size=1, max_size=3)
ascending = st.lists(st.integers(0, 9) | st.integers(0, 2**31 - 1), min_size=8, max_size=8, unique=True).map(sorted)
any_deltas = ascending | st.lists(st.integers(-2, 9) | ints | longs, min_size=8, max_size=8)

Int64Array = npt.NDArray[np.int64]
Outcome = list[Measured] | tuple[int, str]


def columns_of(of: Sequence[Row]) -> RecordColumns:
    return RecordColumns.from_records([(row.key, row.value, row.timestamp, row.headers) for row in of])


def outcome(twin: Callable[[], list[Measured]]) -> Outcome:
    """What the twin finds: batches, or the row that it refuses and why."""
    try:
        return twin()
    except RefusedError as error:
        return error.row, error.why


class Rows:
    """The rows on their way through both kernels, in both forms."""

    def __init__(self, columns: RecordColumns, deltas: Int64Array | None = None) -> None:
        self.encoding = RecordEncoder(columns, deltas).encoding
        self.matrix = np.full((scan.COLUMN_COUNT, CAPACITY), UNTOUCHED, np.int64)
        self.matrix[scan.ATTRIBUTES] = 0
        self.row_ends = np.full(CAPACITY, UNTOUCHED, np.int64)

    def measure(self, batch_size_max: int, capacity: int = CAPACITY) -> int:
        matrix, ends = self.matrix[:, :capacity].copy(), self.row_ends[:capacity].copy()
        self.encoding.batches, self.encoding.batch_capacity, self.encoding.row_ends = matrix, capacity, ends
        self.encoding.batch_size_max = batch_size_max
        status = run_both_on(encode_measure.measure_batches, self.encoding)
        self.matrix[:, :capacity], self.row_ends[:capacity] = matrix, ends
        return status

    def encode(self, out_size_max: int) -> tuple[int, bytes]:
        out = self.prepare(out_size_max)
        status = run_both_on(encode.encode_batches, self.encoding)
        return status, out[: max(self.encoding.out_size, 0)].tobytes()

    def prepare(self, out_size_max: int) -> npt.NDArray[np.uint8]:
        """Set what is measured before it is written; returns the room for that."""
        self.encoding.batches, self.encoding.batch_capacity = self.matrix, CAPACITY
        self.encoding.row, self.encoding.row_ends = 0, self.row_ends
        out = np.full(max(out_size_max, 0) + encode_fields.SLACK_SIZE, 0x55, np.uint8)
        self.encoding.out, self.encoding.out_size_max = out, out_size_max
        return out

    def measured(self) -> list[Measured]:
        return [
            Measured(
                int(self.row_ends[batch]),
                int(self.matrix[scan.RECORD_COUNT, batch]),
                int(self.matrix[scan.SIZE, batch]),
                int(self.matrix[scan.LAST_OFFSET_DELTA, batch]),
                int(self.matrix[scan.BASE_TIMESTAMP, batch]),
                int(self.matrix[scan.MAX_TIMESTAMP, batch]),
            )
            for batch in range(self.encoding.batch_count)
        ]

    def outcome(self, status: int, found: list[Measured]) -> Outcome:
        return found if status == encode_struct.OK else (self.encoding.row, REASONS[status])

    def set_header(self, batch: int, header: Batch) -> None:
        values = {
            scan.BASE_OFFSET: header.base_offset,
            scan.PARTITION_LEADER_EPOCH: header.leader_epoch,
            scan.ATTRIBUTES: header.flags,
            scan.PRODUCER_ID: header.producer_id,
            scan.PRODUCER_EPOCH: header.producer_epoch,
            scan.BASE_SEQUENCE: header.base_sequence,
        }
        for column, value in values.items():
            self.matrix[column, batch] = value


def wide_columns(of: Sequence[Row]) -> RecordColumns:
    """The same without ranges and timestamps where all rows are as long and as late, as they all are."""
    columns = columns_of(of)
    fields = (columns.keys, columns.values, columns.headers)
    wide = [None if c is None else BytesColumn.of_width(c.data, len(c), int(c.sizes[0])) for c in fields]
    return RecordColumns(len(of), *wide[:2], None, wide[2], of[0].timestamp)


def check_split(
    of: list[Row],
    batch_size: int,
    capacity: int = CAPACITY,
    columns_of: Callable[[Sequence[Row]], RecordColumns] = columns_of,
) -> None:
    """Rows are split as by the twin, so many batches at a time."""
    rows_of = Rows(columns_of(of))
    found: list[Measured] = []
    status = encode_struct.BATCHES_FULL
    while status == encode_struct.BATCHES_FULL:
        rows_of.encoding.batch_count = 0
        status = rows_of.measure(batch_size, capacity)
        found += rows_of.measured()
    assert rows_of.outcome(status, found) == outcome(lambda: building.split(of, batch_size))


def check_written(
    batches: list[list[Row]],
    headers: list[Batch],
    columns_of: Callable[[Sequence[Row]], RecordColumns] = columns_of,
) -> list[bytes]:
    """Batches are written as by the twin, and not into less room; returns them."""
    rows_of = Rows(columns_of([row for batch in batches for row in batch]))
    rows_of.row_ends[: len(batches)] = np.cumsum([len(batch) for batch in batches])
    assert rows_of.measure(0) == encode_struct.OK
    for number, header in enumerate(headers):
        rows_of.set_header(number, header)
    size = int(rows_of.matrix[scan.SIZE, : len(batches)].sum())
    expected = [building.batch_bytes(batch, header) for batch, header in zip(batches, headers, strict=True)]
    assert rows_of.encode(size) == (encode_struct.OK, b"".join(expected))
    assert rows_of.encode(size - 1)[0] == encode_struct.COLUMNS_CHANGED
    return expected


@settings(max_examples=examples(100))
@given(many_rows, st.integers(1, 400), st.integers(1, 3))
def test_rows_are_split_into_the_batches_of_a_producer(of: list[Row], batch_size: int, capacity: int) -> None:
    check_split(of, batch_size, capacity)


def run_rows(of: list[tuple[Row, int, int]]) -> list[Row]:
    """Each row as often as it says, with a timestamp that is so much later each time."""
    return [
        row._replace(timestamp=min(row.timestamp + number * step, 2**63 - 1), headers=row.headers if number < 2 else ())
        for row, count, step in of
        for number in range(count)
    ]


@settings(max_examples=examples(50))
@given(runs, st.integers(1, 3000))
def test_rows_that_are_alike_are_split_like_others(of: list[tuple[Row, int, int]], batch_size: int) -> None:
    check_split(run_rows(of), batch_size)


@settings(max_examples=examples(50))
@given(runs, st.integers(0, 100))
def test_rows_that_are_alike_are_written_like_others(of: list[tuple[Row, int, int]], cut: int) -> None:
    of_rows = [row for row in run_rows(of) if row.timestamp >= -1] or [Row()]
    batches = [batch for batch in (of_rows[:cut], of_rows[cut:]) if batch]
    check_written(batches, [Batch(number) for number in range(len(batches))])


@settings(max_examples=examples(50))
@given(equal_rows, st.integers(1, 150), st.integers(1, 3000))
def test_rows_of_one_width_are_split_like_others(row: Row, count: int, batch_size: int) -> None:
    check_split([row] * count, batch_size, CAPACITY, wide_columns)


@settings(max_examples=examples(50))
@given(equal_rows, st.integers(1, 150), st.integers(0, 100))
def test_rows_of_one_width_are_written_like_others(row: Row, count: int, cut: int) -> None:
    batches = [[row] * each for each in (min(cut, count), count - cut) if each > 0]
    check_written(batches, [Batch(number) for number in range(len(batches))], wide_columns)


@settings(max_examples=examples(50))
@given(st.integers(0, 39), st.integers(-3, 3) | st.integers(195, 210), st.integers(-3, 210), st.booleans())
def test_one_range_that_lies_among_many_is_found_and_never_followed(
    row: int, start: int, end: int, is_measured_before: bool
) -> None:
    starts = np.arange(40) * 5
    values = BytesColumn(np.full(200, 7, np.uint8), starts, starts + 5)
    rows_of = Rows(RecordColumns(40, None, values))
    if is_measured_before:
        assert rows_of.measure(400) == encode_struct.OK
    values.starts[row], values.ends[row] = start, end
    if not is_measured_before:
        is_outside = _is_outside(values, row)
        assert rows_of.measure(400) == (encode_struct.OUT_OF_DATA if is_outside else encode_struct.OK)
        assert not is_outside or rows_of.encoding.row == row
    for out_capacity in (int(rows_of.matrix[scan.SIZE, :2].sum()), 300, 700):
        rows_of.encode(out_capacity)


@settings(max_examples=examples(100))
@given(many_rows, any_deltas, st.none() | st.integers(0, 2**63 - 1))
def test_a_batch_is_measured_as_the_twin_does(of: list[Row], deltas: list[int], horizon: int | None) -> None:
    of = [row._replace(offset_delta=delta) for row, delta in zip(of, deltas, strict=False)]
    rows_of = Rows(columns_of(of), np.array(deltas[: len(of)], np.int64))
    rows_of.row_ends[0] = len(of)
    if horizon is not None:
        rows_of.matrix[scan.ATTRIBUTES, 0] = DELETE_HORIZON
        rows_of.matrix[scan.BASE_TIMESTAMP, 0] = horizon
    status = rows_of.measure(0)
    expected = outcome(lambda: [building.measure(of, 0, horizon)])
    assert rows_of.outcome(status, rows_of.measured()) == expected


@settings(max_examples=examples(100))
@given(
    st.lists(st.lists(rows.filter(lambda row: row.timestamp >= -1), min_size=1, max_size=4), min_size=1, max_size=3),
    batch_values(),
)
def test_batches_are_written_as_the_twin_does(batches: list[list[Row]], header: Batch) -> None:
    flags = header.flags & ~DELETE_HORIZON
    headers = [replace(header, base_offset=number, flags=flags) for number in range(len(batches))]
    written = check_written(batches, headers)
    assert b"".join(map(record_bytes, building.records_of(batches[0]))) == written[0][HEADER_SIZE:]


def test_varints_change_their_size_where_the_twins_do() -> None:
    edges = [limit + step for bits in range(6, 63, 7) for limit in (1 << bits, 2 << bits) for step in (-1, 0, 1)]
    later = [Row(None, b"", edge, ()) for edge in edges if edge < 2**62]
    earlier = [row._replace(timestamp=2**62 - row.timestamp) for row in later]
    sized = [Row(b"k" * size, b"v" * size, 0, ()) for size in (62, 63, 64, 65, 8190, 8191, 8192, 8193, 16384)]
    for of in ([Row(), *later], [Row(None, None, 2**62), *earlier], sized):
        rows_of = Rows(columns_of(of))
        rows_of.row_ends[0] = len(of)
        rows_of.set_header(0, Batch(0))
        assert rows_of.measure(0) == encode_struct.OK
        expected = building.batch_bytes(of, Batch(0))
        assert rows_of.encode(len(expected)) == (encode_struct.OK, expected)


lies = st.sampled_from([0, 1, 2, -1, 5, 9, 2**63 - 1, -(2**63)]) | st.integers(-3, 12)
lying_columns = st.builds(
    BytesColumn,
    st.binary(max_size=9).map(lambda data: np.frombuffer(data, np.uint8)),
    st.lists(lies, min_size=3, max_size=3).map(lambda starts: np.array(starts, np.int64)),
    st.lists(lies, min_size=3, max_size=3).map(lambda ends: np.array(ends, np.int64)),
)
maybe_lying = st.none() | lying_columns


@settings(max_examples=examples(150))
@given(maybe_lying, maybe_lying, maybe_lying, st.integers(1, 3), st.integers(0, 150), st.integers(0, 300))
def test_ranges_that_lie_are_found_and_never_followed(
    keys: BytesColumn | None,
    values: BytesColumn | None,
    record_headers: BytesColumn | None,
    row_end: int,
    out_capacity: int,
    batch_size: int,
) -> None:
    columns = RecordColumns(3, keys, values, None, record_headers)
    rows_of = Rows(columns)
    rows_of.row_ends[:] = row_end
    outside = [row for row in range(3) if any(_is_outside(c, row) for c in (keys, values, record_headers))]
    status = rows_of.measure(batch_size)
    assert (status == encode_struct.OUT_OF_DATA) == bool(outside)
    assert not outside or rows_of.encoding.row == outside[0]
    rows_of.encoding.batch_count = 3
    rows_of.row_ends[:3] = (1, 3, 100)
    rows_of.encode(out_capacity)


class Changing(Guarded):
    """Ranges that another thread changes as soon as one was read."""

    def __getitem__(self, index: int | slice) -> Any:
        found = super().__getitem__(index)
        self.view[index] = 10**6
        return found


@pytest.mark.parametrize("end", ["starts", "ends"])
@pytest.mark.parametrize("column", ["keys", "values", "headers"])
def test_a_range_that_changes_after_it_was_checked_is_not_followed(column: str, end: str) -> None:
    of = [Row(b"key", b"value", 1, [(b"h", b"x")]), Row(b"k", b"v", 2, [(b"header", None)])]
    rows_of = Rows(columns_of(of))
    assert rows_of.measure(1000) == encode_struct.OK
    rows_of.prepare(int(rows_of.matrix[scan.SIZE, 0]))
    guarded: Any = GuardedStruct(rows_of.encoding)
    setattr(guarded, f"{column}_{end}", Changing(getattr(rows_of.encoding, f"{column}_{end}").copy()))
    assert encode.encode_batches.function(guarded) == encode_struct.OK
    expected = building.batch_bytes(of, Batch(0))
    assert bytes(guarded.out.view)[HEADER_SIZE : len(expected)] == expected[HEADER_SIZE:]


def _is_outside(column: BytesColumn | None, row: int) -> bool:
    if column is None or column.ends[row] < column.starts[row]:
        return False
    return bool(column.starts[row] < 0 or column.ends[row] > column.data.size)


@settings(max_examples=examples(60))
@given(batch_values(), shorts, st.integers(-5, 200), st.integers(-5, 200))
def test_headers_are_written_over_batches(batch: Batch, epoch: int, position: int, size: int) -> None:
    content = replace(batch, producer_epoch=epoch).to_bytes()
    data = np.frombuffer(b"before" + bytes(HEADER_SIZE) + content[HEADER_SIZE:], np.uint8).copy()
    rows_of = Rows(RecordColumns(0))
    rows_of.set_header(0, replace(batch, producer_epoch=epoch))
    matrix = rows_of.matrix[:, :2].copy()
    matrix[:, 1] = UNTOUCHED
    matrix[scan.POSITION] = (6, position)
    matrix[scan.SIZE] = (len(content), size)
    matrix[scan.LAST_OFFSET_DELTA, 0] = batch.last_offset_delta
    matrix[scan.BASE_TIMESTAMP, 0], matrix[scan.MAX_TIMESTAMP, 0] = batch.base_timestamp, batch.max_timestamp
    matrix[scan.RECORD_COUNT, 0] = len(batch.records)
    first = matrix.copy()
    written = run_both(encode.write_headers, data, data.size, first[:, :1].copy(), 1)
    assert (written, data.tobytes()) == (1, b"before" + content)
    is_inside = size >= HEADER_SIZE and 0 <= position <= data.size - size
    assert run_both(encode.write_headers, data, data.size, matrix, 2) == (2 if is_inside else 1)
