"""Checks the usual batch of a producer and sets its offset, epoch and timestamp (`LogValidator`).

That is one batch of magic 2 without peculiarities, which keeps its codec. Batches that are refused, recompressed or
rare are not for the fast path: `log.append.analyze` and `log.append.validate` handle all cases and have the messages.
"""

from __future__ import annotations

from typing import Any

from ...layout import batch as layout
from ...layout.batch import CODEC_MASK, CONTROL_FLAG, HEADER_SIZE, LOG_APPEND_TIME_FLAG, LOG_OVERHEAD_SIZE, NO_TIMESTAMP
from ...native.device import device
from ...native.structs import bytes_at, words_at
from ..decode import records as decode
from ..decode.batches import begin_batch
from ..decode.records import decode_rows
from ..encode.fields import put_be32, put_be64
from ..fold.producer_struct import CLIENT
from ..primitives import be32
from ..rules import is_timestamp_in_range
from ..scan import batches as scan
from ..scan.batches import check_row, read_header
from ..scan.crc32c import crc32c_of

ROW_COUNT = 64  # records per decode and check

_CODEC_MAX = 4
_TIME_MAX = 1 << 62  # differences of smaller times do not overflow
_MEANINGFUL_FLAGS = 0x77  # all except LOG_APPEND_TIME_FLAG


@device
def _is_plain_header(data: Any, fast: Any, request: Any, columns: Any) -> bool:
    """Read the header into the columns; returns whether it begins one whole, usual batch."""
    size = request.size
    if size < HEADER_SIZE or size > fast.batch_size_max:
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
        columns[scan.MAGIC] == layout.MAGIC_V2
        and columns[scan.BASE_OFFSET] == 0
        and count > 0
        and columns[scan.LAST_OFFSET_DELTA] == count - 1
        and codec <= _CODEC_MAX
        and (fast.codec == -1 or fast.codec == codec)
        and attributes & LOG_APPEND_TIME_FLAG == 0
        and (request.origin != CLIENT or is_client_like)
        and 0 <= request.now_ms < _TIME_MAX
    )


@device
def _are_plain(records: Any, row_count: int, index: int, fast: Any, request: Any) -> bool:
    """Return whether decoded records are usual; the first one is number `index` of its batch."""
    max_timestamp = request.max_timestamp
    for row in range(row_count):
        timestamp = records[decode.TIMESTAMP * ROW_COUNT + row]
        if records[decode.OFFSET * ROW_COUNT + row] != index + row or not NO_TIMESTAMP <= timestamp <= _TIME_MAX:
            return False
        if fast.needs_keys != 0 and records[decode.KEY_SIZE * ROW_COUNT + row] < 0:
            return False
        if fast.is_log_append_time == 0 and not is_timestamp_in_range(
            timestamp, request.now_ms, fast.timestamp_before_max_ms, fast.timestamp_after_max_ms
        ):
            return False
        max_timestamp = max(max_timestamp, timestamp)
    request.max_timestamp = max_timestamp
    return True


@device
def _check_records(data: Any, position: int, end: int, source: int, fast: Any, request: Any) -> bool:
    """Return whether all records are usual; writes their largest timestamp into the request."""
    state, records = words_at(fast.decode_state), words_at(fast.decoded)
    count = begin_batch(words_at(fast.row), 1, 0, position, end, source, state)
    request.max_timestamp = NO_TIMESTAMP
    index = 0
    while index < count:
        status = decode_rows(data, state, records, ROW_COUNT, 0, ROW_COUNT)
        if status != decode.OK or not _are_plain(records, state[decode.ROW_COUNT], index, fast, request):
            return False
        index = state[decode.RECORD_INDEX]
    return True


@device
def _stamp(data: Any, log: Any, fast: Any, request: Any, columns: Any) -> int:
    """Write offset and epoch, and timestamp and its type if they change (`DefaultRecordBatch.setMaxTimestamp`)."""
    columns[scan.BASE_OFFSET] = log.log_end_offset
    columns[scan.PARTITION_LEADER_EPOCH] = request.leader_epoch
    put_be64(data, layout.BASE_OFFSET, log.log_end_offset)
    put_be32(data, layout.PARTITION_LEADER_EPOCH, request.leader_epoch)
    timestamp = request.max_timestamp
    flags = 0
    if fast.is_log_append_time != 0:
        timestamp = request.now_ms
        flags = LOG_APPEND_TIME_FLAG
    if flags == 0 and timestamp == columns[scan.MAX_TIMESTAMP]:
        return request.size
    columns[scan.ATTRIBUTES] = columns[scan.ATTRIBUTES] & _MEANINGFUL_FLAGS | flags
    columns[scan.MAX_TIMESTAMP] = timestamp
    data[layout.ATTRIBUTES] = 0
    data[layout.ATTRIBUTES + 1] = columns[scan.ATTRIBUTES]
    put_be64(data, layout.MAX_TIMESTAMP, timestamp)
    columns[scan.CRC] = crc32c_of(data, layout.ATTRIBUTES, request.size)
    put_be32(data, layout.CRC, columns[scan.CRC])
    return request.size


@device
def validated_size(log: Any, fast: Any, request: Any) -> int:
    """Check the batch in `fast.out`, complete it and fill its row; returns its size, 0 if it is not for the fast path.

    `request.records` has the decompressed records of a compressed batch.
    """
    data, columns = bytes_at(fast.out), words_at(fast.row)
    if not _is_plain_header(data, fast, request, columns) or check_row(data, columns, 1, 0) == 0:
        return 0
    if columns[scan.ATTRIBUTES] & CODEC_MASK == 0:
        is_sound = _check_records(data, HEADER_SIZE, request.size, decode.PLAIN, fast, request)
    else:
        is_sound = request.records_size > 0 and _check_records(
            bytes_at(request.records), 0, request.records_size, decode.STREAM, fast, request
        )
    return _stamp(data, log, fast, request, columns) if is_sound else 0
