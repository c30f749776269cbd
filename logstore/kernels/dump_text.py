"""The text of `kafka-dump-log`: batch lines, record lines, and whole files of both (`DumpLogSegments`)."""

from __future__ import annotations

from typing import Any

from ..layout.batch import (
    CODEC_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG,
)
from . import decode, scan
from .decode import decode_chunk, sequence_after, skip_field
from .kernel import called, device, kernel
from .primitives import add64, be16, be32
from .text import literal, literal_pool, put, put_decimal, put_utf8
from .varint import read_varint, varint_position, varint_value

BASE_OFFSET = literal("baseOffset: ")
LAST_OFFSET = literal(" lastOffset: ")
COUNT = literal(" count: ")
BASE_SEQUENCE = literal(" baseSequence: ")
LAST_SEQUENCE = literal(" lastSequence: ")
PRODUCER_ID = literal(" producerId: ")
PRODUCER_EPOCH = literal(" producerEpoch: ")
LEADER_EPOCH = literal(" partitionLeaderEpoch: ")
IS_TRANSACTIONAL = literal(" isTransactional: ")
IS_CONTROL = literal(" isControl: ")
TRUE = literal("true")
FALSE = literal("false")
NO_HORIZON = literal(" deleteHorizonMs: OptionalLong.empty")
HORIZON = literal(" deleteHorizonMs: OptionalLong[")
POSITION = literal(" position: ")
CREATE_TIME = literal(" CreateTime: ")
LOG_APPEND_TIME = literal(" LogAppendTime: ")
SIZE = literal(" size: ")
MAGIC = literal(" magic: ")
CODEC_NONE = literal(" compresscodec: none crc: ")
CODEC_GZIP = literal(" compresscodec: gzip crc: ")
CODEC_SNAPPY = literal(" compresscodec: snappy crc: ")
CODEC_LZ4 = literal(" compresscodec: lz4 crc: ")
CODEC_ZSTD = literal(" compresscodec: zstd crc: ")
IS_VALID = literal(" isvalid: true\n")
IS_INVALID = literal(" isvalid: false\n")
RECORD_OFFSET = literal("| offset: ")
KEY_SIZE = literal(" keySize: ")
VALUE_SIZE = literal(" valueSize: ")
SEQUENCE = literal(" sequence: ")
HEADER_KEYS = literal(" headerKeys: [")
MARKER_ABORT = literal(" endTxnMarker: ABORT coordinatorEpoch: ")
MARKER_COMMIT = literal(" endTxnMarker: COMMIT coordinatorEpoch: ")
KEY = literal(" key: ")
PAYLOAD = literal(" payload: ")
BARE_KEY = literal("| key: ")
BARE_PAYLOAD = literal("| payload: ")

POOL = literal_pool()

BATCH_LINE_SIZE_MAX = 640
RECORD_LINE_SIZE_MAX = 320  # without keys, values and header keys
UTF8_GROWTH_MAX = 3  # one bad byte becomes a replacement character of three

# What to print, as bits.
DEEP = 1
CONTENTS = 2
SKIP_METADATA = 4
PYTHON_RECORDS = 8  # records need a decoder that only Python has: stop after each batch line

# Status of `dump_batches` and `dump_records`.
DONE = 0
OUT_FULL = 1  # empty `out` and call again
GAPS_FULL = 2  # empty the gaps and call again
PYTHON_BATCH = 3  # the records of row state[ROW] are the caller's
PYTHON_RECORD = 4  # the record in state[CHUNK_ROW] is the caller's
RECORD_ERROR = 5  # state[DECODE_STATUS] and the details tell which
UNKNOWN_CODEC = 6  # only the first half of this row's line is printed

# Slots of the state, after those of the decode.
FLAGS = decode.STATE_COUNT
RECORD_CAPACITY = FLAGS + 1  # columns of `records`
OUT_CAPACITY = FLAGS + 2  # of `out`, without its slack
GAP_CAPACITY = FLAGS + 3
ROW = FLAGS + 4  # row of the batch table
IS_LINE_PRINTED = FLAGS + 5  # 1: the row's batch line is in `out` already
ATTRIBUTES = FLAGS + 6  # of the row's batch
CHUNK_ROW = FLAGS + 7  # next row of `records` to print
DECODE_STATUS = FLAGS + 8
OUT_SIZE = FLAGS + 9
PREVIOUS_OFFSET = FLAGS + 10  # of the last record seen; -1 before the first
GAP_COUNT = FLAGS + 11
STATE_COUNT = FLAGS + 12


@device
def put_flag(out: Any, o: int, pool: Any, flag: int) -> int:
    """`true` or `false`."""
    return put(out, o, pool, TRUE) if flag != 0 else put(out, o, pool, FALSE)


@device
def put_number(out: Any, o: int, pool: Any, label: int, value: int) -> int:
    """A literal and a decimal."""
    return put_decimal(out, put(out, o, pool, label), pool, value)


@called
def put_batch_identity(out: Any, o: int, pool: Any, table: Any, capacity: int, row: int) -> int:
    """The first half of a batch line, up to the delete horizon."""
    base_offset = table[scan.BASE_OFFSET * capacity + row]
    delta = table[scan.LAST_OFFSET_DELTA * capacity + row]
    base_sequence = table[scan.BASE_SEQUENCE * capacity + row]
    attributes = table[scan.ATTRIBUTES * capacity + row]
    last_sequence = -1
    if base_sequence != -1:
        last_sequence = sequence_after(base_sequence, delta)
    o = put_number(out, o, pool, BASE_OFFSET, base_offset)
    o = put_number(out, o, pool, LAST_OFFSET, add64(base_offset, delta))
    o = put_number(out, o, pool, COUNT, table[scan.RECORD_COUNT * capacity + row])
    o = put_number(out, o, pool, BASE_SEQUENCE, base_sequence)
    o = put_number(out, o, pool, LAST_SEQUENCE, last_sequence)
    o = put_number(out, o, pool, PRODUCER_ID, table[scan.PRODUCER_ID * capacity + row])
    o = put_number(out, o, pool, PRODUCER_EPOCH, table[scan.PRODUCER_EPOCH * capacity + row])
    o = put_number(out, o, pool, LEADER_EPOCH, table[scan.PARTITION_LEADER_EPOCH * capacity + row])
    o = put_flag(out, put(out, o, pool, IS_TRANSACTIONAL), pool, attributes & TRANSACTIONAL_FLAG)
    o = put_flag(out, put(out, o, pool, IS_CONTROL), pool, attributes & CONTROL_FLAG)
    if attributes & DELETE_HORIZON_FLAG == 0:
        return put(out, o, pool, NO_HORIZON)
    o = put_number(out, o, pool, HORIZON, table[scan.BASE_TIMESTAMP * capacity + row])
    out[o] = 93
    return o + 1


@device
def timestamp_label(attributes: int) -> int:
    """Literal before a timestamp of a batch with these attributes."""
    return LOG_APPEND_TIME if attributes & LOG_APPEND_TIME_FLAG != 0 else CREATE_TIME


@device
def codec_label(codec: int) -> int:
    """Literal before the checksum of a batch with this codec, one of the five."""
    if codec == 0:
        return CODEC_NONE
    if codec == 1:
        return CODEC_GZIP
    if codec == 2:
        return CODEC_SNAPPY
    return CODEC_LZ4 if codec == 3 else CODEC_ZSTD


@called
def put_batch_place(out: Any, o: int, pool: Any, table: Any, capacity: int, row: int) -> int:
    """The second half of a batch line, from the position on."""
    attributes = table[scan.ATTRIBUTES * capacity + row]
    o = put_number(out, o, pool, POSITION, table[scan.POSITION * capacity + row])
    label = timestamp_label(attributes)
    o = put_number(out, o, pool, label, table[scan.MAX_TIMESTAMP * capacity + row])
    o = put_number(out, o, pool, SIZE, table[scan.SIZE * capacity + row])
    o = put_number(out, o, pool, MAGIC, table[scan.MAGIC * capacity + row])
    label = codec_label(attributes & CODEC_MASK)
    o = put_number(out, o, pool, label, table[scan.CRC * capacity + row])
    is_valid = table[scan.IS_VALID * capacity + row]
    return put(out, o, pool, IS_VALID if is_valid == 1 else IS_INVALID)


@called
def header_keys_size(data: Any, position: int, end: int, count: int) -> int:
    """Bytes of all header keys of a record that decoded well, commas included."""
    total = count
    for _ in range(count):
        packed = read_varint(data, position, end)
        size = varint_value(packed)
        total += size
        position = varint_position(skip_field(data, varint_position(packed) + size, end))
    return total


@called
def put_header_keys(out: Any, o: int, pool: Any, data: Any, position: int, end: int, count: int) -> int:
    """Header keys joined by commas."""
    for index in range(count):
        if index > 0:
            out[o] = 44
            o += 1
        packed = read_varint(data, position, end)
        size = varint_value(packed)
        o = put_utf8(out, o, pool, data, varint_position(packed), size)
        position = varint_position(skip_field(data, varint_position(packed) + size, end))
    return o


@device
def put_contents(out: Any, o: int, pool: Any, data: Any, records: Any, capacity: int, row: int, is_bare: int) -> int:
    """Key and payload as text; `is_bare`: nothing stands before them on the line."""
    key_size = records[decode.KEY_SIZE * capacity + row]
    value_size = records[decode.VALUE_SIZE * capacity + row]
    if key_size >= 0:
        o = put(out, o, pool, BARE_KEY if is_bare == 1 else KEY)
        o = put_utf8(out, o, pool, data, records[decode.KEY_POSITION * capacity + row], key_size)
    if value_size >= 0:
        o = put(out, o, pool, BARE_PAYLOAD if is_bare == 1 and key_size < 0 else PAYLOAD)
        o = put_utf8(out, o, pool, data, records[decode.VALUE_POSITION * capacity + row], value_size)
    return o


@called
def put_marker(out: Any, o: int, pool: Any, data: Any, records: Any, capacity: int, row: int) -> int:
    """The text of an end-transaction marker that `is_marker` accepted."""
    is_commit = be16(data, records[decode.KEY_POSITION * capacity + row] + 2)
    epoch = be32(data, records[decode.VALUE_POSITION * capacity + row] + 2)
    return put_number(out, o, pool, MARKER_COMMIT if is_commit == 1 else MARKER_ABORT, epoch)


@called
def is_marker(data: Any, records: Any, capacity: int, row: int) -> int:
    """1 for a well-formed ABORT or COMMIT record; the odd ones are left to Python."""
    key = records[decode.KEY_POSITION * capacity + row]
    if records[decode.KEY_SIZE * capacity + row] != 4 or records[decode.VALUE_SIZE * capacity + row] != 6:
        return 0
    if be16(data, key) != 0 or be16(data, records[decode.VALUE_POSITION * capacity + row]) != 0:
        return 0
    record_type = be16(data, key + 2)
    return 1 if record_type == 0 or record_type == 1 else 0


@device
def put_metadata(out: Any, o: int, pool: Any, data: Any, records: Any, row: int, state: Any) -> int:
    """The part of a record line before key and payload."""
    capacity = state[RECORD_CAPACITY]
    attributes = state[ATTRIBUTES]
    o = put_number(out, o, pool, RECORD_OFFSET, records[decode.OFFSET * capacity + row])
    o = put_number(out, o, pool, timestamp_label(attributes), records[decode.TIMESTAMP * capacity + row])
    o = put_number(out, o, pool, KEY_SIZE, records[decode.KEY_SIZE * capacity + row])
    o = put_number(out, o, pool, VALUE_SIZE, records[decode.VALUE_SIZE * capacity + row])
    o = put_number(out, o, pool, SEQUENCE, records[decode.SEQUENCE * capacity + row])
    o = put(out, o, pool, HEADER_KEYS)
    count = records[decode.HEADER_COUNT * capacity + row]
    if count > 0:
        position = records[decode.HEADERS_POSITION * capacity + row]
        o = put_header_keys(out, o, pool, data, position, state[decode.END_POSITION], count)
    out[o] = 93
    o += 1
    if attributes & CONTROL_FLAG != 0:
        o = put_marker(out, o, pool, data, records, capacity, row)
    return o


@device
def put_record(out: Any, o: int, pool: Any, data: Any, records: Any, row: int, state: Any) -> int:
    """One record line with its line end."""
    flags = state[FLAGS]
    is_bare = 1
    if flags & SKIP_METADATA == 0:
        o = put_metadata(out, o, pool, data, records, row, state)
        is_bare = 0
    if flags & CONTENTS != 0 and state[ATTRIBUTES] & CONTROL_FLAG == 0:
        o = put_contents(out, o, pool, data, records, state[RECORD_CAPACITY], row, is_bare)
    out[o] = 10
    return o + 1


@device
def record_line_size_max(data: Any, records: Any, row: int, state: Any) -> int:
    """Room that one record line may take."""
    capacity = state[RECORD_CAPACITY]
    size = 0
    if state[FLAGS] & CONTENTS != 0:
        size = max(records[decode.KEY_SIZE * capacity + row], 0)
        size += max(records[decode.VALUE_SIZE * capacity + row], 0)
    count = records[decode.HEADER_COUNT * capacity + row]
    if count > 0:
        position = records[decode.HEADERS_POSITION * capacity + row]
        size += header_keys_size(data, position, state[decode.END_POSITION], count)
    return RECORD_LINE_SIZE_MAX + UTF8_GROWTH_MAX * size


@called
def note_gap(offset: int, gaps: Any, state: Any) -> int:
    """Remember that `offset` does not follow the previous one; 0 when there is no room."""
    count = state[GAP_COUNT]
    capacity = state[GAP_CAPACITY]
    if count == capacity:
        return 0
    gaps[count] = state[PREVIOUS_OFFSET]
    gaps[capacity + count] = offset
    state[GAP_COUNT] = count + 1
    return 1


@device
def put_chunk(data: Any, records: Any, pool: Any, out: Any, gaps: Any, state: Any) -> int:
    """Lines of the decoded rows from state[CHUNK_ROW] on. Status."""
    o = state[OUT_SIZE]
    row = state[CHUNK_ROW]
    capacity = state[RECORD_CAPACITY]
    is_control_shown = state[ATTRIBUTES] & CONTROL_FLAG != 0 and state[FLAGS] & SKIP_METADATA == 0
    status = DONE
    while row < state[decode.ROW_COUNT]:
        if is_control_shown and is_marker(data, records, capacity, row) == 0:
            status = PYTHON_RECORD
            break
        if state[OUT_CAPACITY] - o < record_line_size_max(data, records, row, state):
            status = OUT_FULL
            break
        offset = records[decode.OFFSET * capacity + row]
        if offset != add64(state[PREVIOUS_OFFSET], 1) and note_gap(offset, gaps, state) == 0:
            status = GAPS_FULL
            break
        state[PREVIOUS_OFFSET] = offset
        o = put_record(out, o, pool, data, records, row, state)
        row += 1
    state[CHUNK_ROW] = row
    state[OUT_SIZE] = o
    return status


@kernel("u8*, i64*, u8*, u8*, i64*, i64*")
def dump_records(data: Any, records: Any, pool: Any, out: Any, gaps: Any, state: Any) -> int:
    """Record lines of decoded rows state[CHUNK_ROW] … state[ROW_COUNT] - 1; call again after a stop.

    data: uint8, the buffer decoded from; records: int64[decode.COLUMN_COUNT, RECORD_CAPACITY]; out:
    uint8[OUT_CAPACITY + SLACK_SIZE], filled from state[OUT_SIZE]; gaps: int64[2, GAP_CAPACITY], pairs of offsets where
    the second does not follow the first; state: int64[STATE_COUNT].
    """
    return put_chunk(data, records, pool, out, gaps, state)


@device
def put_plain_records(data: Any, records: Any, pool: Any, out: Any, gaps: Any, state: Any) -> int:
    """Record lines of one uncompressed batch, chunk by chunk. Status."""
    while True:
        status = put_chunk(data, records, pool, out, gaps, state)
        if status != DONE:
            return status
        if state[DECODE_STATUS] != decode.OK:
            return RECORD_ERROR
        if state[decode.RECORD_INDEX] >= state[decode.RECORD_COUNT]:
            return DONE
        state[DECODE_STATUS] = decode_chunk(data, state, records, state[RECORD_CAPACITY])
        state[CHUNK_ROW] = 0


@called
def start_batch(table: Any, capacity: int, row: int, state: Any) -> int:
    """Set the state to the first record of a row's batch."""
    attributes = table[scan.ATTRIBUTES * capacity + row]
    position = table[scan.POSITION * capacity + row]
    state[decode.BASE_OFFSET] = table[scan.BASE_OFFSET * capacity + row]
    state[decode.BASE_TIMESTAMP] = table[scan.BASE_TIMESTAMP * capacity + row]
    state[decode.LOG_APPEND_TIME] = 1 if attributes & LOG_APPEND_TIME_FLAG != 0 else 0
    state[decode.MAX_TIMESTAMP] = table[scan.MAX_TIMESTAMP * capacity + row]
    state[decode.BASE_SEQUENCE] = table[scan.BASE_SEQUENCE * capacity + row]
    state[decode.RECORD_COUNT] = table[scan.RECORD_COUNT * capacity + row]
    state[decode.IS_STREAM] = 0
    state[decode.END_POSITION] = position + table[scan.SIZE * capacity + row]
    state[decode.RECORD_INDEX] = 0
    state[decode.NEXT_POSITION] = position + HEADER_SIZE
    state[decode.ROW_COUNT] = 0
    state[ATTRIBUTES] = attributes
    state[CHUNK_ROW] = 0
    state[DECODE_STATUS] = decode.OK
    return 0


@called
def put_batch_line(table: Any, capacity: int, pool: Any, out: Any, state: Any) -> int:
    """The line of row state[ROW]. Status."""
    row = state[ROW]
    o = state[OUT_SIZE]
    if state[OUT_CAPACITY] - o < BATCH_LINE_SIZE_MAX:
        return OUT_FULL
    o = put_batch_identity(out, o, pool, table, capacity, row)
    state[OUT_SIZE] = o
    if table[scan.ATTRIBUTES * capacity + row] & CODEC_MASK > 4:
        return UNKNOWN_CODEC
    state[OUT_SIZE] = put_batch_place(out, o, pool, table, capacity, row)
    return DONE


@device
def is_python_batch(table: Any, capacity: int, state: Any) -> int:
    """1 when the records of row state[ROW] are compressed, or damaged in the header, or need a decoder of Python's."""
    row = state[ROW]
    if state[FLAGS] & PYTHON_RECORDS != 0:
        return 1
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
    """Batch and record lines of rows state[ROW] … row_end - 1 of a batch table, until something stops it.

    data: uint8, the mapped file; table: int64[scan.COLUMN_COUNT, capacity], v2 rows only; the rest as in
    `dump_records`. Returns the status. After PYTHON_BATCH and PYTHON_RECORD the caller prints what is its and moves
    state[ROW] or state[CHUNK_ROW] on; after every stop but an error the same call goes on where it stopped.
    """
    while state[ROW] < row_end:
        if state[IS_LINE_PRINTED] == 0:
            status = put_batch_line(table, capacity, pool, out, state)
            if status != DONE:
                return status
            state[IS_LINE_PRINTED] = 1
            start_batch(table, capacity, state[ROW], state)
        if state[FLAGS] & DEEP != 0:
            if is_python_batch(table, capacity, state) == 1:
                return PYTHON_BATCH
            status = put_plain_records(data, records, pool, out, gaps, state)
            if status != DONE:
                return status
        state[IS_LINE_PRINTED] = 0
        state[ROW] += 1
    return DONE
