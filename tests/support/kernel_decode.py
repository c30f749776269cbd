"""The decode of records by both forms of its kernel."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from logstore.columns.batch_table import BatchTable, ByteArray
from logstore.columns.record_table import RecordTable, record_error
from logstore.kernels.decode import batches
from logstore.kernels.decode import records as decode
from tests.naive.record import BrokenRecordError, Context, Record
from tests.support.kernel_forms import run_both

UNTOUCHED = -77
Int64Array = npt.NDArray[np.int64]
T = TypeVar("T")


class DecodedBatch:
    """One batch decoded by both forms of the kernel, in chunks of some capacity."""

    def __init__(
        self, data: bytes, start: int, end: int, count: int, context: Context, source: int = decode.PLAIN
    ) -> None:
        self.data = np.frombuffer(data, np.uint8)
        self.status = decode.OK
        self.state = np.full(decode.STATE_COUNT, UNTOUCHED, np.int64)
        self.state[decode.BASE_OFFSET] = context.base_offset
        self.state[decode.BASE_TIMESTAMP] = context.base_timestamp
        self.state[decode.LOG_APPEND_TIME] = int(context.log_append_time is not None)
        self.state[decode.MAX_TIMESTAMP] = context.log_append_time or 0
        self.state[decode.BASE_SEQUENCE] = context.base_sequence
        self.state[decode.RECORD_COUNT] = count
        self.state[decode.SOURCE] = source
        self.state[decode.SIZE_MAX] = context.size_max
        self.state[decode.END_POSITION] = end
        self.state[decode.RECORD_INDEX] = 0
        self.state[decode.NEXT_POSITION] = start

    def windows(self, capacity: int) -> Iterator[RecordTable]:
        """Good records, so many at a time, until `status` is not OK."""
        while self.status == decode.OK and self.state[decode.RECORD_INDEX] < self.state[decode.RECORD_COUNT]:
            matrix = np.full((decode.COLUMN_COUNT, capacity), UNTOUCHED, np.int64)
            end = int(self.state[decode.END_POSITION])
            self.status = run_both(decode.decode_records, self.data, self.state, matrix, capacity, read_limit=end)
            row_count = int(self.state[decode.ROW_COUNT])
            is_last = self.state[decode.RECORD_INDEX] == self.state[decode.RECORD_COUNT]
            assert self.status != decode.OK or row_count == capacity or is_last
            yield RecordTable(self.data, matrix, row_count)

    def records(self, capacity: int) -> tuple[list[Record], str | None]:
        """All good records, and the message of what ended them."""
        found = [record_at(table, row) for table in self.windows(capacity) for row in range(len(table))]
        return found, None if self.status == decode.OK else record_error(self.status, self.state).message


class DecodedBatches(NamedTuple):
    """What both forms of the kernel made of batches.

    Attributes:
        rows: where the records of each batch begin, and where those of the last end.
        records: all of them, with room for more.
    """

    status: int
    state: Int64Array
    rows: Int64Array
    records: Int64Array

    @property
    def batch_count(self) -> int:
        return int(self.state[decode.ROW_COUNT])

    @property
    def problem(self) -> str | None:
        """What ended them, as `read_batches` has it."""
        if self.status == batches.SHORT_BATCH:
            return "short"
        if self.status == batches.BAD_COUNT:
            return f"count {self.state[decode.DETAIL]}"
        return None if self.status == decode.OK else record_error(self.status, self.state).message


def decoded_batches(
    data: ByteArray, starts: Int64Array, ends: Int64Array, source: int, table: BatchTable, capacity: int
) -> DecodedBatches:
    """Decode the batches of a table, whose records are from `starts` to `ends`, into so much room."""
    state = np.full(decode.STATE_COUNT, UNTOUCHED, np.int64)
    records = np.full((decode.COLUMN_COUNT, capacity), UNTOUCHED, np.int64)
    rows = np.full(table.capacity + 1, UNTOUCHED, np.int64)
    of_table = (np.ascontiguousarray(table.matrix), table.capacity, 0, len(table))
    status = run_both(batches.decode_batches, data, starts, ends, source, *of_table, state, records, capacity, rows)
    return DecodedBatches(status, state, rows, records)


def assert_decoded(found: DecodedBatches, data: ByteArray, expected: list[list[Record]], problem: str | None) -> None:
    """What was decoded is what the twin reads."""
    assert found.batch_count == len(expected)
    assert found.rows[: len(expected) + 1].tolist() == np.cumsum([0, *map(len, expected)]).tolist()
    table = RecordTable(data, found.records, int(found.rows[len(expected)]))
    assert [record_at(table, row) for row in range(len(table))] == [record for batch in expected for record in batch]
    assert found.problem == problem


def good_ones(records: Iterator[T]) -> tuple[list[T], str | None]:
    """The records that a twin reads, and what is wrong with the first that is not good."""
    found: list[T] = []
    try:
        found.extend(records)
    except BrokenRecordError as error:
        return found, str(error)
    return found, None


def read_batches(
    read: Callable[[bytes, int, Context], Iterator[Record]], parts: Iterable[tuple[bytes, int, Context]]
) -> tuple[list[list[Record]], str | None]:
    """What the twin reads of each (bytes, record count, context), and what is wrong with the first that is."""
    found: list[list[Record]] = []
    for data, count, context in parts:
        records, problem = good_ones(read(data, count, context))
        if count < 0 or problem is not None:
            return found, f"count {count}" if count < 0 else problem
        found.append(records)
    return found, None


def record_at(table: RecordTable, row: int) -> Record:
    """A row of a record table as the twin has it."""
    offset, timestamp, sequence = (int(column[row]) for column in (table.offset, table.timestamp, table.sequence))
    key, value = table.key(row), table.value(row)
    assert int(table.key_size[row]) == (-1 if key is None else len(key))
    return Record(offset, timestamp, sequence, key, value, table.headers(row))
