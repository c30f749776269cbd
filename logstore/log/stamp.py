"""What a leader writes into a batch without touching its records (`DefaultRecordBatch.setMaxTimestamp`)."""

from __future__ import annotations

import struct

from ..columns.batch_table import ByteArray
from ..kernels.crc32c import crc32c_range
from ..layout import batch as layout
from ..model import TimestampType

_KEPT_FLAGS = layout.CODEC_MASK | layout.TRANSACTIONAL_FLAG | layout.CONTROL_FLAG | layout.DELETE_HORIZON_FLAG


def stamp(
    data: ByteArray, base_offset: int, leader_epoch: int, timestamp_type: TimestampType, max_timestamp: int
) -> None:
    """Put offset, epoch and timestamp into the one batch of `data`, uint8, writable.

    The checksum is computed anew if timestamp or its type become others; then attribute bits without a meaning go too.
    """
    batch = data.data
    struct.pack_into(">q", batch, layout.BASE_OFFSET, base_offset)
    struct.pack_into(">i", batch, layout.PARTITION_LEADER_EPOCH, leader_epoch)
    (attributes,) = struct.unpack_from(">h", batch, layout.ATTRIBUTES)
    (old_max_timestamp,) = struct.unpack_from(">q", batch, layout.MAX_TIMESTAMP)
    is_log_append_time = timestamp_type is TimestampType.LOG_APPEND_TIME
    if bool(attributes & layout.LOG_APPEND_TIME_FLAG) == is_log_append_time and old_max_timestamp == max_timestamp:
        return
    flags = attributes & _KEPT_FLAGS | (layout.LOG_APPEND_TIME_FLAG if is_log_append_time else 0)
    struct.pack_into(">h", batch, layout.ATTRIBUTES, flags)
    struct.pack_into(">q", batch, layout.MAX_TIMESTAMP, max_timestamp)
    struct.pack_into(">I", batch, layout.CRC, crc32c_range(data, layout.ATTRIBUTES, data.size))
