"""Writes one line of `kafka-dump-log`: of a batch or of a record (`DumpLogSegments`)."""

from __future__ import annotations

from typing import Any

from ...layout.batch import CODEC_MASK, CONTROL_FLAG, DELETE_HORIZON_FLAG, LOG_APPEND_TIME_FLAG, TRANSACTIONAL_FLAG
from ...native.device import device
from ..decode import records as decode
from ..primitives import add64, be16, be32
from ..rules import increment_sequence
from ..scan import batches as scan
from ..varint import read_header
from . import state as slots
from .text import literal, literal_pool, put, put_decimal, put_utf8

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

LITERALS = literal_pool()

BATCH_LINE_SIZE_MAX = 640
RECORD_LINE_SIZE_MAX = 320  # without keys, values and header keys
CODEC_MAX = 4  # the largest that has a label
UTF8_GROWTH_MAX = 3  # one bad byte becomes a replacement character of three bytes


@device
def put_flag(out: Any, o: int, pool: Any, flag: int) -> int:
    """Write `true` or `false`."""
    return put(out, o, pool, TRUE) if flag != 0 else put(out, o, pool, FALSE)


@device
def put_number(out: Any, o: int, pool: Any, label: int, value: int) -> int:
    """Write a literal and a decimal."""
    return put_decimal(out, put(out, o, pool, label), pool, value)


@device
def put_batch_identity(out: Any, o: int, pool: Any, table: Any, capacity: int, row: int) -> int:
    """Write the first half of a batch line, up to the delete horizon."""
    base_offset = table[scan.BASE_OFFSET * capacity + row]
    delta = table[scan.LAST_OFFSET_DELTA * capacity + row]
    base_sequence = table[scan.BASE_SEQUENCE * capacity + row]
    attributes = table[scan.ATTRIBUTES * capacity + row]
    last_sequence = -1
    if base_sequence != -1:
        last_sequence = increment_sequence(base_sequence, delta)
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
    """Return the literal before a timestamp of a batch with these attributes."""
    return LOG_APPEND_TIME if attributes & LOG_APPEND_TIME_FLAG != 0 else CREATE_TIME


@device
def codec_label(codec: int) -> int:
    """Return the literal before the checksum of a batch with this codec, one of the five."""
    if codec == 0:
        return CODEC_NONE
    if codec == 1:
        return CODEC_GZIP
    if codec == 2:
        return CODEC_SNAPPY
    return CODEC_LZ4 if codec == 3 else CODEC_ZSTD


@device
def put_batch_place(out: Any, o: int, pool: Any, table: Any, capacity: int, row: int) -> int:
    """Write the second half of a batch line, from the position on."""
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


@device
def header_keys_size(data: Any, position: int, end: int, count: int) -> int:
    """Return the bytes of a record's header keys with commas; the record decoded without an error."""
    total = count
    for _ in range(count):
        key_size, _key_end, _value_size, position = read_header(data, position, end)
        total += key_size
    return total


@device
def put_header_keys(out: Any, o: int, pool: Any, data: Any, position: int, end: int, count: int) -> int:
    """Write header keys joined by commas."""
    for index in range(count):
        if index > 0:
            out[o] = 44
            o += 1
        key_size, key_end, _value_size, position = read_header(data, position, end)
        o = put_utf8(out, o, pool, data, key_end - key_size, key_size)
    return o


@device
def put_contents(out: Any, o: int, pool: Any, data: Any, records: Any, capacity: int, row: int, is_bare: int) -> int:
    """Write key and payload as text; `is_bare`: the line begins with them."""
    key_size = records[decode.KEY_SIZE * capacity + row]
    value_size = records[decode.VALUE_SIZE * capacity + row]
    if key_size >= 0:
        o = put(out, o, pool, BARE_KEY if is_bare == 1 else KEY)
        o = put_utf8(out, o, pool, data, records[decode.KEY_POSITION * capacity + row], key_size)
    if value_size >= 0:
        o = put(out, o, pool, BARE_PAYLOAD if is_bare == 1 and key_size < 0 else PAYLOAD)
        o = put_utf8(out, o, pool, data, records[decode.VALUE_POSITION * capacity + row], value_size)
    return o


@device
def put_marker(out: Any, o: int, pool: Any, data: Any, records: Any, capacity: int, row: int) -> int:
    """Write the text of a transaction marker that `is_marker` accepted."""
    is_commit = be16(data, records[decode.KEY_POSITION * capacity + row] + 2)
    epoch = be32(data, records[decode.VALUE_POSITION * capacity + row] + 2)
    return put_number(out, o, pool, MARKER_COMMIT if is_commit == 1 else MARKER_ABORT, epoch)


@device
def is_marker(data: Any, records: Any, capacity: int, row: int) -> int:
    """Return 1 for a well-formed ABORT or COMMIT record, the only control records that `put_record` ends itself."""
    key = records[decode.KEY_POSITION * capacity + row]
    if records[decode.KEY_SIZE * capacity + row] != 4 or records[decode.VALUE_SIZE * capacity + row] != 6:
        return 0
    if be16(data, key) != 0 or be16(data, records[decode.VALUE_POSITION * capacity + row]) != 0:
        return 0
    record_type = be16(data, key + 2)
    return 1 if record_type == 0 or record_type == 1 else 0


@device
def put_metadata(out: Any, o: int, pool: Any, data: Any, records: Any, row: int, state: Any) -> int:
    """Write the part of a record line before key and payload."""
    capacity = state[slots.RECORD_CAPACITY]
    o = put_number(out, o, pool, RECORD_OFFSET, records[decode.OFFSET * capacity + row])
    o = put_number(out, o, pool, timestamp_label(state[slots.ATTRIBUTES]), records[decode.TIMESTAMP * capacity + row])
    o = put_number(out, o, pool, KEY_SIZE, records[decode.KEY_SIZE * capacity + row])
    o = put_number(out, o, pool, VALUE_SIZE, records[decode.VALUE_SIZE * capacity + row])
    o = put_number(out, o, pool, SEQUENCE, records[decode.SEQUENCE * capacity + row])
    o = put(out, o, pool, HEADER_KEYS)
    count = records[decode.HEADER_COUNT * capacity + row]
    if count > 0:
        position = records[decode.HEADERS_POSITION * capacity + row]
        o = put_header_keys(out, o, pool, data, position, state[decode.END_POSITION], count)
    out[o] = 93
    return o + 1


@device
def put_record(out: Any, o: int, pool: Any, data: Any, records: Any, row: int, state: Any, has_text: int) -> int:
    """Write one record line with its line end, or only its metadata if a text ends the line."""
    flags = state[slots.FLAGS]
    is_bare = 1
    if flags & slots.SKIP_METADATA == 0:
        o = put_metadata(out, o, pool, data, records, row, state)
        is_bare = 0
    if has_text == 1:
        return o
    if state[slots.ATTRIBUTES] & CONTROL_FLAG != 0:
        if is_bare == 0 and is_marker(data, records, state[slots.RECORD_CAPACITY], row) == 1:
            o = put_marker(out, o, pool, data, records, state[slots.RECORD_CAPACITY], row)
    elif flags & slots.CONTENTS != 0:
        o = put_contents(out, o, pool, data, records, state[slots.RECORD_CAPACITY], row, is_bare)
    out[o] = 10
    return o + 1


@device
def record_line_size_max(data: Any, records: Any, row: int, state: Any, has_text: int) -> int:
    """Return the largest size of a record line, without the text that ends it."""
    capacity = state[slots.RECORD_CAPACITY]
    size = 0
    if state[slots.FLAGS] & slots.CONTENTS != 0 and has_text == 0:
        size = max(records[decode.KEY_SIZE * capacity + row], 0)
        size += max(records[decode.VALUE_SIZE * capacity + row], 0)
    count = records[decode.HEADER_COUNT * capacity + row]
    if count > 0:
        position = records[decode.HEADERS_POSITION * capacity + row]
        size += header_keys_size(data, position, state[decode.END_POSITION], count)
    return RECORD_LINE_SIZE_MAX + UTF8_GROWTH_MAX * size
