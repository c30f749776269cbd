"""The decode of records by both forms of its kernel."""

from __future__ import annotations

import numpy as np

from logstore.columns.record_table import RecordTable, record_error
from logstore.kernels.decode import records as decode
from tests.naive.record import Context, Record
from tests.support.kernel_forms import run_both

UNTOUCHED = -77


class DecodedBatch:
    """One batch decoded by both forms of the kernel, in chunks of some capacity."""

    def __init__(self, data: bytes, start: int, end: int, count: int, context: Context, is_stream: bool) -> None:
        self.data = np.frombuffer(data, np.uint8)
        self.state = np.full(decode.STATE_COUNT, UNTOUCHED, np.int64)
        self.state[decode.BASE_OFFSET] = context.base_offset
        self.state[decode.BASE_TIMESTAMP] = context.base_timestamp
        self.state[decode.LOG_APPEND_TIME] = int(context.log_append_time is not None)
        self.state[decode.MAX_TIMESTAMP] = context.log_append_time or 0
        self.state[decode.BASE_SEQUENCE] = context.base_sequence
        self.state[decode.RECORD_COUNT] = count
        self.state[decode.SOURCE] = decode.STREAM if is_stream else decode.PLAIN
        self.state[decode.END_POSITION] = end
        self.state[decode.RECORD_INDEX] = 0
        self.state[decode.NEXT_POSITION] = start

    def records(self, capacity: int) -> tuple[list[Record], str | None]:
        """All good records, and the message of what ended them."""
        found: list[Record] = []
        while self.state[decode.RECORD_INDEX] < self.state[decode.RECORD_COUNT]:
            matrix = np.full((decode.COLUMN_COUNT, capacity), UNTOUCHED, np.int64)
            end = int(self.state[decode.END_POSITION])
            status = run_both(decode.decode_records, self.data, self.state, matrix, capacity, read_limit=end)
            row_count = int(self.state[decode.ROW_COUNT])
            found += [record_at(RecordTable(self.data, matrix, row_count), row) for row in range(row_count)]
            if status != decode.OK:
                return found, record_error(status, self.state).message
            assert row_count == capacity or self.state[decode.RECORD_INDEX] == self.state[decode.RECORD_COUNT]
        return found, None


def record_at(table: RecordTable, row: int) -> Record:
    """A row of a record table as the twin has it."""
    offset, timestamp, sequence = (int(column[row]) for column in (table.offset, table.timestamp, table.sequence))
    key, value = table.key(row), table.value(row)
    assert int(table.key_size[row]) == (-1 if key is None else len(key))
    return Record(offset, timestamp, sequence, key, value, table.headers(row))
