"""The decode of records against a slow twin: good batches, and bytes that lie in every way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.columns.record_table import RecordTable, record_error
from logstore.kernels.decode import records as decode
from tests.naive.record import BrokenRecordError, Context, Record, as_long, read_plain, read_stream
from tests.properties.kernel_inputs import batch_values, ints, longs, record_streams
from tests.support.encoder import Batch, record_bytes
from tests.support.kernel_forms import run_both
from tests.support.sampling import examples

CAPACITY = 50
UNTOUCHED = -77

contexts = st.builds(Context, longs, longs, ints, st.none() | longs)
around = st.sampled_from([b"", b"before", b"\xff" * 20])


class Decode:
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
            found += [_record(RecordTable(self.data, matrix, row_count), row) for row in range(row_count)]
            if status != decode.OK:
                return found, record_error(status, self.state).message
            assert row_count == capacity or self.state[decode.RECORD_INDEX] == self.state[decode.RECORD_COUNT]
        return found, None


def _record(table: RecordTable, row: int) -> Record:
    offset, timestamp, sequence = (int(column[row]) for column in (table.offset, table.timestamp, table.sequence))
    key, value = table.key(row), table.value(row)
    assert int(table.key_size[row]) == (-1 if key is None else len(key))
    return Record(offset, timestamp, sequence, key, value, table.headers(row))


def expected(data: bytes, count: int, context: Context, is_stream: bool) -> tuple[list[Record], str | None]:
    found: list[Record] = []
    try:
        for record in (read_stream if is_stream else read_plain)(data, count, context):
            found.append(record)
    except BrokenRecordError as error:
        return found, str(error)
    return found, None


@settings(max_examples=examples(60))
@given(batch_values())
def test_records_come_out_as_they_were_written(batch: Batch) -> None:
    data = b"".join(map(record_bytes, batch.records))
    context = Context(batch.base_offset, batch.base_timestamp, batch.base_sequence)
    found, error = Decode(data, 0, len(data), len(batch.records), context, False).records(CAPACITY)
    assert error is None
    for record, written in zip(found, batch.records, strict=True):
        assert record.offset == as_long(batch.base_offset + written.offset_delta)
        assert record.timestamp == as_long(batch.base_timestamp + written.timestamp_delta)
        assert (record.key, record.value, record.headers) == (written.key, written.value, list(written.headers))


@pytest.mark.parametrize("is_stream", [False, True], ids=["plain", "stream"])
@given(record_streams(), contexts, around, around)
def test_a_decode_finds_what_the_twin_finds(
    is_stream: bool, stream: tuple[bytes, int], context: Context, before: bytes, after: bytes
) -> None:
    data, count = stream
    decoded = Decode(before + data + after, len(before), len(before + data), count, context, is_stream)
    assert decoded.records(CAPACITY) == expected(data, count, context, is_stream)


@pytest.mark.parametrize("is_stream", [False, True], ids=["plain", "stream"])
@settings(max_examples=examples(40))
@given(record_streams(), contexts, st.integers(1, 3))
def test_a_decode_in_chunks_finds_the_same(
    is_stream: bool, stream: tuple[bytes, int], context: Context, capacity: int
) -> None:
    data, count = stream
    decoded = Decode(data, 0, len(data), count, context, is_stream)
    assert decoded.records(capacity) == expected(data, count, context, is_stream)


@pytest.mark.parametrize("is_stream", [False, True], ids=["plain", "stream"])
@settings(max_examples=examples(60))
@given(st.lists(st.sampled_from([0, 1, 2, 3, 4, 10, 127, 128, 255]), max_size=40).map(bytes), st.integers(1, 40))
def test_a_decode_of_noise_finds_what_the_twin_finds(is_stream: bool, data: bytes, count: int) -> None:
    decoded = Decode(data, 0, len(data), count, Context(), is_stream)
    assert decoded.records(CAPACITY) == expected(data, count, Context(), is_stream)
