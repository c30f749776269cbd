"""Decodes the few plain batches at the end of a log in one call, for a reader that follows it."""

from __future__ import annotations

from typing import Any

from ...layout import batch as layout
from ...layout.batch import (
    CODEC_MASK,
    CONTROL_FLAG,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD_SIZE,
    MAGIC_V2,
)
from ...native.device import device
from ...native.kernel import kernel
from ...native.structs import Struct, Words, struct, words_at
from ..primitives import be32
from ..scan import batches as scan
from ..scan.batches import check_row, read_header
from . import records as decode
from .batches import begin_batch
from .records import OK, PLAIN, decode_rows

BATCH_CAPACITY = 512
RECORD_CAPACITY = 1024

NOT_PLAIN = 20  # a batch that is compressed, of an old magic, or damaged, or more than there is room for


@struct
class TailStruct(Struct):
    """Which records of the tail are wanted, and those that were found."""

    size: int  # bytes of the tail
    start_offset: int
    end_offset: int  # exclusive
    checks_crc: int
    # the result,
    row_count: int  # batches from `start_offset` on, control batches too
    first_record: int  # of the first batch, which may begin before `start_offset`
    record_count: int
    next_offset: int  # behind the last batch
    end: int  # its position
    leader_epoch: int  # of the first batch
    attributes: int  # of it
    is_uniform: int  # 1 if all batches have this epoch and type of timestamp, and no record has headers
    # and arrays.
    columns: Words  # int64[scan.COLUMN_COUNT, BATCH_CAPACITY], out
    state: Words  # int64[decode.STATE_COUNT], out
    records: Words  # int64[decode.COLUMN_COUNT, RECORD_CAPACITY], out
    record_ends: Words  # int64[BATCH_CAPACITY], out: the record behind the last of each batch


@device
def _batch_size(data: Any, position: int, size: int) -> int:
    """Return the size of the batch at `position`, 0 if it is not a whole one of magic 2."""
    if size - position < HEADER_SIZE or data[position + layout.MAGIC] != MAGIC_V2:
        return 0
    batch_size = be32(data, position + layout.BATCH_LENGTH) + LOG_OVERHEAD_SIZE
    return batch_size if HEADER_SIZE <= batch_size <= size - position else 0


@device
def _decode_row(tail: Any, data: Any, row: int) -> int:
    """Decode the records of a batch in `columns` behind those before; returns the status."""
    columns, records = words_at(tail.columns), words_at(tail.records)
    attributes = columns[scan.ATTRIBUTES * BATCH_CAPACITY + row]
    if tail.checks_crc != 0 and check_row(data, columns, BATCH_CAPACITY, row) == 0:
        return NOT_PLAIN
    first = tail.record_count
    if attributes & CONTROL_FLAG == 0:
        start = columns[scan.POSITION * BATCH_CAPACITY + row]
        end = start + columns[scan.SIZE * BATCH_CAPACITY + row]
        state = words_at(tail.state)
        count = begin_batch(columns, BATCH_CAPACITY, row, start + HEADER_SIZE, end, PLAIN, state)
        if attributes & CODEC_MASK != 0 or count < 0 or count > RECORD_CAPACITY - first:
            return NOT_PLAIN
        if decode_rows(data, state, records, RECORD_CAPACITY, first, RECORD_CAPACITY) != OK:
            return NOT_PLAIN
        tail.record_count = first + count
    epoch = columns[scan.PARTITION_LEADER_EPOCH * BATCH_CAPACITY + row]
    if row == 0:
        tail.leader_epoch = epoch
        tail.attributes = attributes
    elif epoch != tail.leader_epoch or (attributes ^ tail.attributes) & LOG_APPEND_TIME_FLAG != 0:
        tail.is_uniform = 0
    previous = columns[scan.BASE_OFFSET * BATCH_CAPACITY + row] - 1
    for record in range(first, tail.record_count):
        offset = records[decode.OFFSET * RECORD_CAPACITY + record]
        if offset <= previous:
            return NOT_PLAIN
        if offset < tail.start_offset:
            tail.first_record = record + 1
        if records[decode.HEADER_COUNT * RECORD_CAPACITY + record] != 0:
            tail.is_uniform = 0
        previous = offset
    if previous >= tail.next_offset:
        return NOT_PLAIN
    words_at(tail.record_ends)[row] = tail.record_count
    return OK


@kernel(TailStruct, "u8*")
def decode_tail(tail: Any, data: Any) -> int:
    """Decode the records from `start_offset` to `end_offset`. Returns OK or NOT_PLAIN.

    data: uint8[tail.size], from the start of a batch to the end of a segment. What is not plain, in order and right is
    for another reader: no record is given then.
    """
    columns = words_at(tail.columns)
    tail.row_count = 0
    tail.first_record = 0
    tail.record_count = 0
    tail.next_offset = 0
    tail.end = 0
    tail.leader_epoch = 0
    tail.attributes = 0
    tail.is_uniform = 1
    position = 0
    row = 0
    while position < tail.size:
        size = _batch_size(data, position, tail.size)
        if size == 0 or row == BATCH_CAPACITY:
            return NOT_PLAIN
        columns[scan.POSITION * BATCH_CAPACITY + row] = position
        columns[scan.SIZE * BATCH_CAPACITY + row] = size
        columns[scan.MAGIC * BATCH_CAPACITY + row] = MAGIC_V2
        read_header(data, position, columns, BATCH_CAPACITY, row)
        base_offset = columns[scan.BASE_OFFSET * BATCH_CAPACITY + row]
        if base_offset >= tail.end_offset:
            break
        delta = columns[scan.LAST_OFFSET_DELTA * BATCH_CAPACITY + row]
        if base_offset < tail.next_offset or not 0 <= delta < tail.end_offset - base_offset:
            return NOT_PLAIN
        tail.next_offset = base_offset + delta + 1
        position += size
        tail.end = position
        if tail.next_offset > tail.start_offset:
            if _decode_row(tail, data, row) != OK:
                return NOT_PLAIN
            row += 1
    tail.row_count = row
    return OK
