"""The batches that leaders mostly append, checked and stamped in one call (`LogValidator`).

One batch of magic 2 in which nothing is odd, stored in the codec it came in. Whatever is refused, built anew or merely
rare is NOT_QUICK, and nothing has changed then: `log.analyze` and `log.validate` know all cases, and their words.
"""

from __future__ import annotations

from typing import Any

from ..jit.device import device
from ..jit.kernel import kernel
from ..layout.batch import (
    CODEC_MASK,
    CONTROL_FLAG,
    HEADER_SIZE,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD_SIZE,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
)
from . import scan
from .crc32c import crc32c_of
from .decode import skip_field
from .encode_fields import put_be32, put_be64
from .primitives import add64, be16, be32, be32_unsigned, be64
from .varint import read_varint, varint_position, varint_value, varlong_size, varlong_value

# Slots. The call,
SIZE = 0  # bytes of the batch
BASE_OFFSET = 1  # the log end offset
LEADER_EPOCH = 2
NOW_MS = 3
IS_CLIENT = 4  # 0: a coordinator
# and the topic.
BATCH_SIZE_MAX = 5  # max.message.bytes
CODEC = 6  # of compression.type; -1: the producer's
IS_LOG_APPEND_TIME = 7
TIMESTAMP_BEFORE_MAX_MS = 8
TIMESTAMP_AFTER_MAX_MS = 9
NEEDS_KEYS = 10
RECORDS_MAX_TIMESTAMP = 11  # out: of the records
SLOT_COUNT = 12

# Status.
OK = 0
NOT_QUICK = 1
IS_COMPRESSED = 2  # so far nothing is odd, and nothing has changed

_MAGIC = 2
_CODEC_MAX = 4
_TIME_MAX = 1 << 62  # differences of times below are exact
_MEANINGFUL_FLAGS = 0x77  # all but LOG_APPEND_TIME_FLAG


@device
def _read_header(data: Any, size: int, columns: Any) -> int:
    columns[scan.POSITION] = 0
    columns[scan.SIZE] = size
    columns[scan.BASE_OFFSET] = be64(data, 0)
    columns[scan.PARTITION_LEADER_EPOCH] = be32(data, 12)
    columns[scan.MAGIC] = data[16]
    columns[scan.CRC] = be32_unsigned(data, 17)
    columns[scan.ATTRIBUTES] = be16(data, 21)
    columns[scan.LAST_OFFSET_DELTA] = be32(data, 23)
    columns[scan.BASE_TIMESTAMP] = be64(data, 27)
    columns[scan.MAX_TIMESTAMP] = be64(data, 35)
    columns[scan.PRODUCER_ID] = be64(data, 43)
    columns[scan.PRODUCER_EPOCH] = be16(data, 51)
    columns[scan.BASE_SEQUENCE] = be32(data, 53)
    columns[scan.RECORD_COUNT] = be32(data, 57)
    columns[scan.IS_VALID] = 1
    return 0


@device
def _is_plain_header(data: Any, slots: Any, columns: Any) -> bool:
    """Whether the header, now in the columns, is that of one whole batch with nothing odd about it."""
    size = slots[SIZE]
    if size < HEADER_SIZE or size > slots[BATCH_SIZE_MAX] or be32(data, 8) != size - LOG_OVERHEAD_SIZE:
        return False
    _read_header(data, size, columns)
    attributes = columns[scan.ATTRIBUTES]
    codec = attributes & CODEC_MASK
    count = columns[scan.RECORD_COUNT]
    is_client_like = attributes & CONTROL_FLAG == 0 and (
        columns[scan.PRODUCER_ID] <= NO_PRODUCER_ID or columns[scan.BASE_SEQUENCE] >= 0
    )
    return (
        columns[scan.MAGIC] == _MAGIC
        and columns[scan.BASE_OFFSET] == 0
        and count > 0
        and columns[scan.LAST_OFFSET_DELTA] == count - 1
        and codec <= _CODEC_MAX
        and (slots[CODEC] == -1 or slots[CODEC] == codec)
        and attributes & LOG_APPEND_TIME_FLAG == 0
        and (slots[IS_CLIENT] == 0 or is_client_like)
        and 0 <= slots[NOW_MS] < _TIME_MAX
    )


@device
def _skip_headers(data: Any, position: int, end: int, count: int) -> int:
    """Position after `count` headers, -1 if they do not fit."""
    for _ in range(count):
        packed = read_varint(data, position, end)
        if packed < 0 or varint_value(packed) < 0:
            return -1
        packed = skip_field(data, position, end)
        if packed < 0:
            return -1
        packed = skip_field(data, varint_position(packed), end)
        if packed < 0:
            return -1
        position = varint_position(packed)
    return position


@device
def _skip_value(data: Any, position: int, end: int) -> int:
    """Position after value and headers, -1 if they do not fit."""
    packed = skip_field(data, position, end)
    if packed < 0:
        return -1
    packed = read_varint(data, varint_position(packed), end)
    if packed < 0:
        return -1
    count = varint_value(packed)
    position = varint_position(packed)
    if count == 0:
        return position
    return -1 if count < 0 else _skip_headers(data, position, end, count)


@device
def _is_in_range(slots: Any, timestamp: int) -> bool:
    if timestamp == NO_TIMESTAMP or slots[IS_LOG_APPEND_TIME] != 0:
        return True
    age = slots[NOW_MS] - timestamp
    return age <= slots[TIMESTAMP_BEFORE_MAX_MS] and -age <= slots[TIMESTAMP_AFTER_MAX_MS]


@device
def _delta_size(data: Any, position: int, end: int) -> int:
    """`varlong_size`, quicker for two bytes and less."""
    if position < end and data[position] < 128:
        return 1
    if position + 1 < end and data[position + 1] < 128:
        return 2
    return varlong_size(data, position, end)


@device
def _delta_value(data: Any, position: int, size: int) -> int:
    """`varlong_value`, quicker for two bytes and less."""
    if size > 2:
        return varlong_value(data, position, size)
    value = data[position] & 127
    if size == 2:
        value |= data[position + 1] << 7
    return (value >> 1) ^ -(value & 1)


@device
def _check_record(data: Any, start: int, end: int, index: int, base_timestamp: int, slots: Any) -> int:
    """Check the record of start … end; its timestamp, or below -1 if something is odd about it."""
    size = _delta_size(data, start + 1, end)
    if size < 0:
        return -2
    timestamp = add64(base_timestamp, _delta_value(data, start + 1, size))
    packed = read_varint(data, start + 1 + size, end)
    if packed < 0 or varint_value(packed) != index or timestamp > _TIME_MAX:
        return -2
    packed = skip_field(data, varint_position(packed), end)
    if packed < 0 or (varint_value(packed) < 0 and slots[NEEDS_KEYS] != 0):
        return -2
    position = _skip_value(data, varint_position(packed), end)
    if position != end or timestamp < NO_TIMESTAMP or not _is_in_range(slots, timestamp):
        return -2
    return timestamp


@device
def _check_records(data: Any, position: int, end: int, slots: Any, columns: Any) -> bool:
    """Whether nothing is odd about the records; their largest timestamp goes into the slots."""
    base_timestamp = columns[scan.BASE_TIMESTAMP]
    max_timestamp = NO_TIMESTAMP
    for index in range(columns[scan.RECORD_COUNT]):
        packed = read_varint(data, position, end)
        if packed < 0:
            return False
        start = varint_position(packed)
        length = varint_value(packed)
        if length > end - start:
            return False
        position = start + length
        timestamp = _check_record(data, start, position, index, base_timestamp, slots)
        if timestamp < NO_TIMESTAMP:
            return False
        max_timestamp = max(max_timestamp, timestamp)
    slots[RECORDS_MAX_TIMESTAMP] = max_timestamp
    return position == end


@device
def _stamp(data: Any, slots: Any, columns: Any) -> int:
    """Write offset, epoch and, where they are others, timestamp and its type (`DefaultRecordBatch.setMaxTimestamp`)."""
    columns[scan.BASE_OFFSET] = slots[BASE_OFFSET]
    columns[scan.PARTITION_LEADER_EPOCH] = slots[LEADER_EPOCH]
    put_be64(data, 0, slots[BASE_OFFSET])
    put_be32(data, 12, slots[LEADER_EPOCH])
    timestamp = slots[RECORDS_MAX_TIMESTAMP]
    flags = 0
    if slots[IS_LOG_APPEND_TIME] != 0:
        timestamp = slots[NOW_MS]
        flags = LOG_APPEND_TIME_FLAG
    if flags == 0 and timestamp == columns[scan.MAX_TIMESTAMP]:
        return OK
    columns[scan.ATTRIBUTES] = columns[scan.ATTRIBUTES] & _MEANINGFUL_FLAGS | flags
    columns[scan.MAX_TIMESTAMP] = timestamp
    data[21] = 0
    data[22] = columns[scan.ATTRIBUTES]
    put_be64(data, 35, timestamp)
    columns[scan.CRC] = crc32c_of(data, 21, slots[SIZE])
    put_be32(data, 17, columns[scan.CRC])
    return OK


@kernel("u8*, i64*, i64*")
def validate_batch(data: Any, slots: Any, columns: Any) -> int:
    """Check a batch whose records are not compressed, and stamp it; of a compressed one only its header is checked.

    data: uint8, the batch of slots[SIZE] bytes and nothing else; slots: int64[SLOT_COUNT]; columns:
    int64[scan.COLUMN_COUNT, 1], out: the batch as it is in `data` now. Returns the status.
    """
    if not _is_plain_header(data, slots, columns):
        return NOT_QUICK
    size = slots[SIZE]
    if crc32c_of(data, 21, size) != columns[scan.CRC]:
        return NOT_QUICK
    if columns[scan.ATTRIBUTES] & CODEC_MASK != 0:
        return IS_COMPRESSED
    if not _check_records(data, HEADER_SIZE, size, slots, columns):
        return NOT_QUICK
    return _stamp(data, slots, columns)


@kernel("u8*, u8*, i64, i64*, i64*")
def validate_compressed(data: Any, records: Any, records_size: int, slots: Any, columns: Any) -> int:
    """Check the records of a batch that `validate_batch` found to be compressed, and stamp it.

    data, slots, columns: as that left them; records: uint8[records_size], decompressed. Returns OK or NOT_QUICK.
    """
    if not _check_records(records, 0, records_size, slots, columns):
        return NOT_QUICK
    return _stamp(data, slots, columns)
