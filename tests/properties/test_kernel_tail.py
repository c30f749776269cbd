"""The decode of a log's tail against slow twins: either all records that a reader gets, or none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.columns.record_table import RecordTable
from logstore.kernels.decode import records as decode
from logstore.kernels.decode.tail import (
    BATCH_CAPACITY,
    NOT_PLAIN,
    RECORD_CAPACITY,
    TailStruct,
    decode_tail,
)
from logstore.kernels.scan import batches as fields
from tests.naive import batch as naive
from tests.naive.record import BrokenRecordError, Context, Record, read_plain
from tests.properties.kernel_inputs import batch_bytes, batch_values, legacy_bytes, stub_bytes
from tests.support.encoder import CONTROL, LOG_APPEND_TIME, Batch
from tests.support.kernel_decode import record_at
from tests.support.sampling import examples

HEADER_SIZE = 61


def tail_struct(size: int, start_offset: int, end_offset: int) -> TailStruct:
    tail = TailStruct()
    tail.size, tail.start_offset, tail.end_offset, tail.checks_crc = size, start_offset, end_offset, 1
    tail.columns = np.zeros((fields.COLUMN_COUNT, BATCH_CAPACITY), np.int64)
    tail.state = np.zeros(decode.STATE_COUNT, np.int64)
    tail.records = np.zeros((decode.COLUMN_COUNT, RECORD_CAPACITY), np.int64)
    tail.record_ends = np.zeros(BATCH_CAPACITY, np.int64)
    return tail


def decoded(data: bytes, start_offset: int, end_offset: int) -> tuple[list[Record], int] | None:
    """What both forms of the kernel find: the records and the next offset; None if it is not plain."""
    compiled, interpreted = (tail_struct(len(data), start_offset, end_offset) for _ in range(2))
    status = decode_tail(compiled, data)
    assert decode_tail.interpret(interpreted, data) == status
    if status == NOT_PLAIN:
        return None
    for name, kind in compiled.kinds.items():
        assert np.array_equal(getattr(compiled, name), getattr(interpreted, name)) or kind == "u8*"
    first, end = compiled.first_record, compiled.record_count
    assert compiled.record_ends[: compiled.row_count].tolist()[-1:] in ([], [end])
    table = RecordTable(np.frombuffer(data, np.uint8), compiled.records, end)
    return [record_at(table, row) for row in range(first, end)], compiled.next_offset


def expected(data: bytes, start_offset: int, end_offset: int) -> tuple[list[Record], int] | None:
    found: list[Record] = []
    next_offset, scanned = 0, naive.scan(data, 0, len(data))
    for row in scanned.rows:
        if row.magic != 2 or row.size < HEADER_SIZE:
            return None
        if row.base_offset >= end_offset:
            return found, next_offset
        if row.base_offset < next_offset or not 0 <= row.last_offset_delta < end_offset - row.base_offset:
            return None
        next_offset = row.base_offset + row.last_offset_delta + 1
        if next_offset <= start_offset:
            continue
        if naive.checked(data, row).is_valid != 1:
            return None
        records = [] if row.attributes & CONTROL else records_of(data, row)
        if records is None:
            return None
        offsets = [row.base_offset - 1, *(record.offset for record in records)]
        if offsets != sorted(set(offsets)) or offsets[-1] >= next_offset:
            return None
        found += [record for record in records if record.offset >= start_offset]
    return (found, next_offset) if scanned.position == len(data) else None


def records_of(data: bytes, row: naive.Row) -> list[Record] | None:
    if row.attributes & 7 or row.record_count < 0:
        return None
    time = row.max_timestamp if row.attributes & LOG_APPEND_TIME else None
    context = Context(row.base_offset, row.base_timestamp, row.base_sequence, time)
    try:
        return list(read_plain(data[row.position + HEADER_SIZE : row.position + row.size], row.record_count, context))
    except BrokenRecordError:
        return None


@st.composite
def tails(draw: st.DrawFn) -> bytes:
    """Batches that follow each other, as in a log."""
    offset, content = draw(st.integers(0, 3)), b""
    for drawn in draw(st.lists(batch_values(), min_size=1, max_size=5)):
        count = len(drawn.records)
        records = [replace(record, offset_delta=delta) for delta, record in enumerate(drawn.records)]
        one = replace(drawn, base_offset=offset, records=records, last_offset_delta=max(count - 1, 0))
        content += one.to_bytes()
        offset += max(count, 1)
    return content


any_bytes = st.lists(batch_bytes() | batch_bytes(codec=None) | legacy_bytes() | stub_bytes() | tails()).map(b"".join)
offsets = st.integers(0, 25)


@settings(max_examples=examples(80))
@given(tails(), offsets, offsets | st.just(2**63 - 1))
def test_the_records_of_a_tail_are_those_of_its_batches(data: bytes, start_offset: int, end_offset: int) -> None:
    assert decoded(data, start_offset, end_offset) == expected(data, start_offset, end_offset)


@settings(max_examples=examples(80))
@given(any_bytes, offsets, offsets | st.just(2**63 - 1), st.integers(0, 40))
def test_what_is_no_tail_is_left_to_another_reader(data: bytes, start: int, end: int, cut: int) -> None:
    data = data[: len(data) - cut] or b"\0"
    assert decoded(data, start, end) == expected(data, start, end)


def test_more_than_there_is_room_for_is_left_to_another_reader() -> None:
    data = b"".join(Batch(offset).to_bytes() for offset in range(BATCH_CAPACITY + 1))
    assert decoded(data[: len(data) // (BATCH_CAPACITY + 1) * BATCH_CAPACITY], 0, 2**62) == ([], BATCH_CAPACITY)
    assert decoded(data, 0, 2**62) is None
