"""Writes the lines of `kafka-dump-log` for many batches; stops for lack of room and for errors, and notes gaps."""

from __future__ import annotations

from typing import Any

from ...layout.batch import CODEC_MASK, HEADER_SIZE
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
    is_python_record,
    put_batch_identity,
    put_batch_place,
    put_record,
    record_line_size_max,
)


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
        is_python = is_python_record(data, records, row, state)
        if state[slots.OUT_CAPACITY] - o < record_line_size_max(data, records, row, state, is_python):
            status = slots.OUT_FULL
            break
        offset = records[decode.OFFSET * capacity + row]
        if offset != add64(state[slots.PREVIOUS_OFFSET], 1) and note_gap(offset, gaps, state) == 0:
            status = slots.GAPS_FULL
            break
        state[slots.PREVIOUS_OFFSET] = offset
        o = put_record(out, o, pool, data, records, row, state, is_python)
        if is_python == 1:
            status = slots.PYTHON_RECORD
            break
        row += 1
    state[slots.CHUNK_ROW] = row
    state[slots.OUT_SIZE] = o
    return status


@kernel("u8*, i64*, u8*, u8*, i64*, i64*")
def dump_records(data: Any, records: Any, pool: Any, out: Any, gaps: Any, state: Any) -> int:
    """Write the lines of decoded rows state[CHUNK_ROW] … state[ROW_COUNT] - 1; call again after a stop.

    data: uint8, the decoded buffer; records: int64[decode.COLUMN_COUNT, RECORD_CAPACITY]; out:
    uint8[OUT_CAPACITY + SLACK_SIZE], filled from state[OUT_SIZE] on; gaps: int64[2, GAP_CAPACITY], pairs of offsets of
    which the second does not follow the first; state: int64[STATE_COUNT].
    """
    return put_chunk(data, records, pool, out, gaps, state)


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
        state[slots.DECODE_STATUS] = decode_rows(
            data, state, records, state[slots.RECORD_CAPACITY], 0, state[slots.RECORD_CAPACITY]
        )
        state[slots.CHUNK_ROW] = 0


@device
def start_batch(table: Any, capacity: int, row: int, state: Any) -> int:
    """Set the state to the first record of a row's batch."""
    start = table[scan.POSITION * capacity + row]
    end = start + table[scan.SIZE * capacity + row]
    begin_batch(table, capacity, row, start + HEADER_SIZE, end, decode.PLAIN, state)
    state[slots.ATTRIBUTES] = table[scan.ATTRIBUTES * capacity + row]
    state[slots.CHUNK_ROW] = 0
    state[slots.DECODE_STATUS] = decode.OK
    return 0


@device
def put_batch_line(table: Any, capacity: int, pool: Any, out: Any, state: Any) -> int:
    """Write the line of row state[ROW]; returns the status."""
    row = state[slots.ROW]
    o = state[slots.OUT_SIZE]
    if state[slots.OUT_CAPACITY] - o < BATCH_LINE_SIZE_MAX:
        return slots.OUT_FULL
    o = put_batch_identity(out, o, pool, table, capacity, row)
    state[slots.OUT_SIZE] = o
    if table[scan.ATTRIBUTES * capacity + row] & CODEC_MASK > 4:
        return slots.UNKNOWN_CODEC
    state[slots.OUT_SIZE] = put_batch_place(out, o, pool, table, capacity, row)
    return slots.DONE


@device
def is_python_batch(table: Any, capacity: int, state: Any) -> int:
    """Return 1 if Python prints the records of row state[ROW]: compressed ones, and those of a damaged header."""
    row = state[slots.ROW]
    if table[scan.ATTRIBUTES * capacity + row] & CODEC_MASK != 0:
        return 1
    if table[scan.RECORD_COUNT * capacity + row] < 0 or table[scan.SIZE * capacity + row] < HEADER_SIZE:
        return 1
    return 0


@kernel("u8*, i64*, i64, i64, i64*, u8*, u8*, i64*, i64*")
def dump_batches(
    data: Any,
    table: Any,
    capacity: int,
    row_end: int,
    records: Any,
    pool: Any,
    out: Any,
    gaps: Any,
    state: Any,
) -> int:
    """Write batch and record lines of rows state[ROW] … row_end - 1 of a batch table, until a stop.

    data: uint8, the mapped file; table: int64[scan.COLUMN_COUNT, capacity], the rest as in `dump_records`.
    Returns the status. After LEGACY_ROW, PYTHON_BATCH and PYTHON_RECORD the caller prints its part and increments
    state[ROW] or state[CHUNK_ROW]; after every stop except an error the same call continues.
    """
    while state[slots.ROW] < row_end:
        if table[scan.MAGIC * capacity + state[slots.ROW]] < 2:
            return slots.LEGACY_ROW
        if state[slots.IS_LINE_PRINTED] == 0:
            status = put_batch_line(table, capacity, pool, out, state)
            if status != slots.DONE:
                return status
            state[slots.IS_LINE_PRINTED] = 1
            start_batch(table, capacity, state[slots.ROW], state)
        if state[slots.FLAGS] & slots.DEEP != 0:
            if is_python_batch(table, capacity, state) == 1:
                return slots.PYTHON_BATCH
            status = put_plain_records(data, records, pool, out, gaps, state)
            if status != slots.DONE:
                return status
        state[slots.IS_LINE_PRINTED] = 0
        state[slots.ROW] += 1
    return slots.DONE
