"""The batches that leaders mostly append, checked and stamped in one call (`LogValidator`).

One batch of magic 2 in which nothing is odd, stored in the codec it came in. Whatever is refused, built anew or merely
rare is NOT_QUICK, and nothing has changed then: `log.analyze` and `log.validate` know all cases, and their words.
"""

from __future__ import annotations

from typing import Any

from ..jit.device import device
from ..jit.kernel import kernel
from ..layout import batch as layout
from ..layout.batch import CODEC_MASK, CONTROL_FLAG, HEADER_SIZE, LOG_APPEND_TIME_FLAG, LOG_OVERHEAD_SIZE, NO_TIMESTAMP
from . import decode, scan
from .crc32c import crc32c_of
from .decode import decode_rows
from .decode_batches import begin_batch
from .encode_fields import put_be32, put_be64
from .primitives import be32
from .rules import is_timestamp_in_range
from .scan import check_row, read_header

# Slots, after those of the decode. The call,
SIZE = decode.STATE_COUNT  # bytes of the batch
BASE_OFFSET = SIZE + 1  # the log end offset
LEADER_EPOCH = SIZE + 2
NOW_MS = SIZE + 3
IS_CLIENT = SIZE + 4  # 0: a coordinator
# and the topic.
BATCH_SIZE_MAX = SIZE + 5  # max.message.bytes
CODEC = SIZE + 6  # of compression.type; -1: the producer's
IS_LOG_APPEND_TIME = SIZE + 7
TIMESTAMP_BEFORE_MAX_MS = SIZE + 8
TIMESTAMP_AFTER_MAX_MS = SIZE + 9
NEEDS_KEYS = SIZE + 10
RECORDS_MAX_TIMESTAMP = SIZE + 11  # out: of the records
SLOT_COUNT = SIZE + 12

ROW_COUNT = 64  # records that are decoded before they are checked

# Status.
OK = 0
NOT_QUICK = 1
IS_COMPRESSED = 2  # so far nothing is odd, and nothing has changed

_MAGIC = 2
_CODEC_MAX = 4
_TIME_MAX = 1 << 62  # differences of times below are exact
_MEANINGFUL_FLAGS = 0x77  # all but LOG_APPEND_TIME_FLAG


@device
def _is_plain_header(data: Any, slots: Any, columns: Any) -> bool:
    """Whether the header, now in the columns, is that of one whole batch with nothing odd about it."""
    size = slots[SIZE]
    if size < HEADER_SIZE or size > slots[BATCH_SIZE_MAX]:
        return False
    if be32(data, layout.BATCH_LENGTH) != size - LOG_OVERHEAD_SIZE:
        return False
    columns[scan.POSITION] = 0
    columns[scan.SIZE] = size
    columns[scan.MAGIC] = data[layout.MAGIC]
    read_header(data, 0, columns, 1, 0)
    attributes = columns[scan.ATTRIBUTES]
    codec = attributes & CODEC_MASK
    count = columns[scan.RECORD_COUNT]
    is_client_like = attributes & CONTROL_FLAG == 0 and (
        columns[scan.PRODUCER_ID] <= layout.NO_PRODUCER_ID or columns[scan.BASE_SEQUENCE] >= 0
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
def _are_plain(records: Any, row_count: int, index: int, slots: Any) -> bool:
    """Whether nothing is odd about decoded records, the first of which is the batch's `index`."""
    max_timestamp = slots[RECORDS_MAX_TIMESTAMP]
    for row in range(row_count):
        timestamp = records[decode.TIMESTAMP * ROW_COUNT + row]
        if records[decode.OFFSET * ROW_COUNT + row] != index + row or not NO_TIMESTAMP <= timestamp <= _TIME_MAX:
            return False
        if slots[NEEDS_KEYS] != 0 and records[decode.KEY_SIZE * ROW_COUNT + row] < 0:
            return False
        if slots[IS_LOG_APPEND_TIME] == 0 and not is_timestamp_in_range(
            timestamp, slots[NOW_MS], slots[TIMESTAMP_BEFORE_MAX_MS], slots[TIMESTAMP_AFTER_MAX_MS]
        ):
            return False
        max_timestamp = max(max_timestamp, timestamp)
    slots[RECORDS_MAX_TIMESTAMP] = max_timestamp
    return True


@device
def _check_records(data: Any, position: int, end: int, source: int, slots: Any, columns: Any, records: Any) -> bool:
    """Whether nothing is odd about the records; their largest timestamp goes into the slots."""
    count = begin_batch(columns, 1, 0, position, end, source, slots)
    slots[RECORDS_MAX_TIMESTAMP] = NO_TIMESTAMP
    index = 0
    while index < count:
        status = decode_rows(data, slots, records, ROW_COUNT, 0, ROW_COUNT)
        if status != decode.OK or not _are_plain(records, slots[decode.ROW_COUNT], index, slots):
            return False
        index = slots[decode.RECORD_INDEX]
    return True


@device
def _stamp(data: Any, slots: Any, columns: Any) -> int:
    """Write offset, epoch and, where they are others, timestamp and its type (`DefaultRecordBatch.setMaxTimestamp`)."""
    columns[scan.BASE_OFFSET] = slots[BASE_OFFSET]
    columns[scan.PARTITION_LEADER_EPOCH] = slots[LEADER_EPOCH]
    put_be64(data, layout.BASE_OFFSET, slots[BASE_OFFSET])
    put_be32(data, layout.PARTITION_LEADER_EPOCH, slots[LEADER_EPOCH])
    timestamp = slots[RECORDS_MAX_TIMESTAMP]
    flags = 0
    if slots[IS_LOG_APPEND_TIME] != 0:
        timestamp = slots[NOW_MS]
        flags = LOG_APPEND_TIME_FLAG
    if flags == 0 and timestamp == columns[scan.MAX_TIMESTAMP]:
        return OK
    columns[scan.ATTRIBUTES] = columns[scan.ATTRIBUTES] & _MEANINGFUL_FLAGS | flags
    columns[scan.MAX_TIMESTAMP] = timestamp
    data[layout.ATTRIBUTES] = 0
    data[layout.ATTRIBUTES + 1] = columns[scan.ATTRIBUTES]
    put_be64(data, layout.MAX_TIMESTAMP, timestamp)
    columns[scan.CRC] = crc32c_of(data, layout.ATTRIBUTES, slots[SIZE])
    put_be32(data, layout.CRC, columns[scan.CRC])
    return OK


@kernel("u8*, i64*, i64*, i64*")
def validate_batch(data: Any, slots: Any, columns: Any, records: Any) -> int:
    """Check a batch whose records are not compressed, and stamp it; of a compressed one only its header is checked.

    data: uint8, the batch of slots[SIZE] bytes and nothing else; slots: int64[SLOT_COUNT]; columns:
    int64[scan.COLUMN_COUNT, 1], out: the batch as it is in `data` now; records: int64[decode.COLUMN_COUNT, ROW_COUNT],
    to work in. Returns the status.
    """
    if not _is_plain_header(data, slots, columns) or check_row(data, columns, 1, 0) == 0:
        return NOT_QUICK
    if columns[scan.ATTRIBUTES] & CODEC_MASK != 0:
        return IS_COMPRESSED
    if not _check_records(data, HEADER_SIZE, slots[SIZE], decode.PLAIN, slots, columns, records):
        return NOT_QUICK
    return _stamp(data, slots, columns)


@kernel("u8*, u8*, i64, i64*, i64*, i64*")
def validate_compressed(data: Any, stream: Any, stream_size: int, slots: Any, columns: Any, records: Any) -> int:
    """Check the records of a batch that `validate_batch` found to be compressed, and stamp it.

    data, slots, columns: as that left them; stream: uint8[stream_size], its records decompressed; records: as there.
    Returns OK or NOT_QUICK.
    """
    if not _check_records(stream, 0, stream_size, decode.STREAM, slots, columns, records):
        return NOT_QUICK
    return _stamp(data, slots, columns)
