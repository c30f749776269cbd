"""Writes the lines of `kafka-dump-log` for many batches; stops for lack of room and for errors, and notes gaps.

`dump_batches` decodes plain batches and prints them, as most logs are made of; `dump_records` prints what was decoded.
"""

from __future__ import annotations

from typing import Any

from ...layout.batch import CODEC_MASK, CONTROL_FLAG, HEADER_SIZE
from ...native.device import device
from ...native.kernel import kernel
from ..decode import records as decode
from ..decode.batches import begin_batch
from ..decode.records import decode_rows
from ..primitives import add64
from ..scan import batches as scan
from . import state as slots
from .lines import (
    BATCH_LINE_SIZE_MAX,
    CODEC_MAX,
    is_marker,
    put_batch_identity,
    put_batch_place,
    put_record,
    record_line_size_max,
)
from .text import put_bytes

PART_SLOT_COUNT = 3


@device
def put_batch_line(table: Any, capacity: int, row: int, pool: Any, out: Any, state: Any) -> int:
    """Write the line of a row; returns the status."""
    o = state[slots.OUT_SIZE]
    if state[slots.OUT_CAPACITY] - o < BATCH_LINE_SIZE_MAX:
        return slots.OUT_FULL
    o = put_batch_identity(out, o, pool, table, capacity, row)
    state[slots.OUT_SIZE] = o
    if table[scan.ATTRIBUTES * capacity + row] & CODEC_MASK > CODEC_MAX:
        return slots.UNKNOWN_CODEC
    state[slots.OUT_SIZE] = put_batch_place(out, o, pool, table, capacity, row)
    return slots.DONE


@device
def note_gap(offset: int, gaps: Any, state: Any) -> int:
    """Note that `offset` does not follow the previous one; returns 0 if there is no room."""
    count = state[slots.GAP_COUNT]
    capacity = state[slots.GAP_CAPACITY]
    if count == capacity:
        return 0
    gaps[count] = state[slots.PREVIOUS_OFFSET]
    gaps[capacity + count] = offset
    state[slots.GAP_COUNT] = count + 1
    return 1


@device
def put_chunk(data: Any, records: Any, pool: Any, out: Any, gaps: Any, state: Any) -> int:
    """Write the lines of the decoded rows from state[CHUNK_ROW] on; returns the status."""
    o = state[slots.OUT_SIZE]
    row = state[slots.CHUNK_ROW]
    capacity = state[slots.RECORD_CAPACITY]
    status = slots.DONE
    while row < state[decode.ROW_COUNT]:
        if state[slots.OUT_CAPACITY] - o < record_line_size_max(data, records, row, state, 0):
            status = slots.OUT_FULL
            break
        offset = records[decode.OFFSET * capacity + row]
        if offset != add64(state[slots.PREVIOUS_OFFSET], 1) and note_gap(offset, gaps, state) == 0:
            status = slots.GAPS_FULL
            break
        state[slots.PREVIOUS_OFFSET] = offset
        o = put_record(out, o, pool, data, records, row, state, 0)
        row += 1
    state[slots.CHUNK_ROW] = row
    state[slots.OUT_SIZE] = o
    return status


@device
def decode_chunk(data: Any, records: Any, state: Any) -> int:
    """Decode the next records of the row's batch."""
    capacity = state[slots.RECORD_CAPACITY]
    state[slots.CHUNK_ROW] = 0
    state[slots.DECODE_STATUS] = decode_rows(data, state, records, capacity, 0, capacity)
    return 0


@device
def put_plain_records(data: Any, records: Any, pool: Any, out: Any, gaps: Any, state: Any) -> int:
    """Write the record lines of one uncompressed batch, chunk by chunk; returns the status."""
    while True:
        status = put_chunk(data, records, pool, out, gaps, state)
        if status != slots.DONE:
            return status
        if state[slots.DECODE_STATUS] != decode.OK:
            return slots.RECORD_ERROR
        if state[decode.RECORD_INDEX] >= state[decode.RECORD_COUNT]:
            return slots.DONE
        decode_chunk(data, records, state)


@device
def is_plain(table: Any, capacity: int, state: Any) -> int:
    """Return 1 if the header of row state[ROW] is one that `dump_batches` prints, before it is known what is in it."""
    row = state[slots.ROW]
    codec = table[scan.ATTRIBUTES * capacity + row] & CODEC_MASK
    if table[scan.MAGIC * capacity + row] < 2 or codec > CODEC_MAX:
        return 0
    if state[slots.FLAGS] & slots.DEEP == 0:
        return 1
    if codec != 0 or table[scan.RECORD_COUNT * capacity + row] < 0:
        return 0
    return 1 if table[scan.SIZE * capacity + row] >= HEADER_SIZE else 0


@device
def is_marker_alone(data: Any, records: Any, state: Any) -> int:
    """Decode a control batch; returns 1 if it has one record, a transaction marker."""
    if state[decode.RECORD_COUNT] != 1:
        return 0
    decode_chunk(data, records, state)
    return is_marker(data, records, state[slots.RECORD_CAPACITY], 0) if state[slots.DECODE_STATUS] == decode.OK else 0


@device
def begin_row(data: Any, table: Any, capacity: int, records: Any, state: Any) -> int:
    """Set the state to the first record of row state[ROW]; returns OTHER_ROW for a row of the caller's."""
    if is_plain(table, capacity, state) == 0:
        return slots.OTHER_ROW
    row = state[slots.ROW]
    start = table[scan.POSITION * capacity + row]
    end = start + table[scan.SIZE * capacity + row]
    begin_batch(table, capacity, row, start + HEADER_SIZE, end, decode.PLAIN, state)
    state[slots.ATTRIBUTES] = table[scan.ATTRIBUTES * capacity + row]
    state[slots.CHUNK_ROW] = 0
    state[slots.DECODE_STATUS] = decode.OK
    flags = state[slots.FLAGS]
    if state[slots.ATTRIBUTES] & CONTROL_FLAG != 0 and flags & slots.DEEP != 0 and flags & slots.SKIP_METADATA == 0:
        return slots.DONE if is_marker_alone(data, records, state) == 1 else slots.OTHER_ROW
    return slots.DONE


@kernel("u8*, i64*, i64, i64, i64*, i64*, u8*, u8*, i64*")
def dump_batches(
    data: Any,
    table: Any,
    capacity: int,
    row_end: int,
    records: Any,
    gaps: Any,
    pool: Any,
    out: Any,
    state: Any,
) -> int:
    """Write batch and record lines of rows state[ROW] … row_end - 1 of a batch table, up to a row of the caller's.

    The caller prints old magics and unknown codecs; in a deep dump also compressed batches, impossible headers, and
    control batches with anything but a transaction marker. A new row begins with state[STAGE] NEW; after OUT_FULL
    and GAPS_FULL the same call continues. Returns the status.

    data: uint8, the mapped file; table: int64[scan.COLUMN_COUNT, capacity]; records: int64[decode.COLUMN_COUNT,
    RECORD_CAPACITY], overwritten; gaps: int64[2, GAP_CAPACITY], pairs of offsets of which the second does not follow
    the first; pool: `lines.LITERALS`; out: uint8[OUT_CAPACITY + SLACK_SIZE], filled from state[OUT_SIZE] on; state:
    int64[STATE_COUNT].
    """
    while state[slots.ROW] < row_end:
        if state[slots.STAGE] == slots.NEW:
            if begin_row(data, table, capacity, records, state) != slots.DONE:
                return slots.OTHER_ROW
            state[slots.STAGE] = slots.BEGUN
        if state[slots.STAGE] == slots.BEGUN:
            status = put_batch_line(table, capacity, state[slots.ROW], pool, out, state)
            if status != slots.DONE:
                return status
            state[slots.STAGE] = slots.HEADED
        if state[slots.FLAGS] & slots.DEEP != 0:
            status = put_plain_records(data, records, pool, out, gaps, state)
            if status != slots.DONE:
                return status
        state[slots.STAGE] = slots.NEW
        state[slots.ROW] += 1
    return slots.DONE


@device
def put_decoded(
    data: Any, records: Any, row_end: int, texts: Any, text_sizes: Any, pool: Any, out: Any, state: Any
) -> int:
    """Write the lines of decoded rows state[CHUNK_ROW] … row_end - 1; returns the status."""
    o = state[slots.OUT_SIZE]
    row = state[slots.CHUNK_ROW]
    status = slots.DONE
    while row < row_end:
        size = text_sizes[row]
        has_text = 1 if size >= 0 else 0
        if state[slots.OUT_CAPACITY] - o < record_line_size_max(data, records, row, state, has_text) + max(size, 0):
            status = slots.OUT_FULL
            break
        o = put_record(out, o, pool, data, records, row, state, has_text)
        if has_text == 1:
            put_bytes(out, o, texts, state[slots.TEXT_POSITION], size)
            state[slots.TEXT_POSITION] += size
            o += size
        row += 1
    state[slots.CHUNK_ROW] = row
    state[slots.OUT_SIZE] = o
    return status


@kernel("u8*, i64*, i64*, i64, i64*, i64, u8*, i64*, u8*, u8*, i64*")
def dump_records(
    data: Any,
    records: Any,
    table: Any,
    capacity: int,
    parts: Any,
    part_count: int,
    texts: Any,
    text_sizes: Any,
    pool: Any,
    out: Any,
    state: Any,
) -> int:
    """Write the lines of batches, of those with decoded records before theirs; call again after OUT_FULL.

    data: uint8, the decoded buffer of state[END_POSITION] bytes; records: int64[decode.COLUMN_COUNT, RECORD_CAPACITY];
    table: int64[scan.COLUMN_COUNT, capacity]; parts: int64[part_count, PART_SLOT_COUNT], each a row of the table,
    whether its line is printed, and the record behind its last one; texts: uint8, text_sizes: int64[records], the bytes
    that end the line of each record behind its metadata, -1 for what the kernel makes of its contents; pool, out,
    state as in `dump_batches`. Returns the status.
    """
    while state[slots.ROW] < part_count:
        part = state[slots.ROW] * PART_SLOT_COUNT
        row = parts[part]
        if state[slots.STAGE] == slots.NEW and parts[part + 1] == 1:
            status = put_batch_line(table, capacity, row, pool, out, state)
            if status != slots.DONE:
                return status
        state[slots.STAGE] = slots.HEADED
        state[slots.ATTRIBUTES] = table[scan.ATTRIBUTES * capacity + row]
        status = put_decoded(data, records, parts[part + 2], texts, text_sizes, pool, out, state)
        if status != slots.DONE:
            return status
        state[slots.STAGE] = slots.NEW
        state[slots.ROW] += 1
    return slots.DONE
