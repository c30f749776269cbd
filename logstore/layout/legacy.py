"""Message, magic 0 and 1: what `.log` files were made of before Kafka 0.11 (`LegacyRecord`, KIP-31, KIP-32).

An entry of a message set is an offset, a size, and one message; an entry is a batch of its own.

| position | size | field      | note                                                                      |
|----------|------|------------|---------------------------------------------------------------------------|
| 0        | 8    | offset     | not covered by the checksum                                               |
| 8        | 4    | size       | bytes of the message that follows, at least 14                            |
| 12       | 4    | crc        | CRC-32 (zlib's) of everything after it                                    |
| 16       | 1    | magic      | 0 or 1                                                                    |
| 17       | 1    | attributes | bits 0-2 codec (zstd is not allowed), bit 3 LogAppendTime (magic 1 only)  |
| 18       | 8    | timestamp  | only in magic 1; in magic 0 the next field stands here                    |
| 26       | 4    | keySize    | -1 null                                                                   |
| 30       | …    | key        |                                                                           |
|          | 4    | valueSize  | -1 null                                                                   |
|          | …    | value      |                                                                           |

All integers are big-endian and signed, but for the checksum. With a codec the entry is a wrapper: its value is a
compressed message set, whose messages must not be compressed again, and its offset is that of the last of them. In a
wrapper of magic 0 the offsets inside are absolute; of magic 1 they count from 0, and absolute = wrapper's offset -
last inner offset + inner offset. The cleaner leaves holes in them, so the last one is not the count of messages.

Odd case: a wrapper of magic 1 with LogAppendTime gives its own timestamp to all messages inside. A wrapper of magic 1
at offset 0 holds offsets as they are. No record here knows a producer, a sequence, an epoch or a header.

Key `k1`, value `v1` at offset 7, magic 1:

>>> entry = bytes.fromhex(
...     "0000000000000007" "0000001a" "a5da6a62" "01" "00" "0000018bcfe56800" "00000002" "6b31" "00000002" "7631")
>>> import struct, zlib
>>> offset, size, crc, magic, attributes, timestamp = struct.unpack_from(">qiIbbq", entry)
>>> offset, size + ENTRY_OVERHEAD_SIZE, magic, timestamp, crc == zlib.crc32(entry[CRC + 4 :])
(7, 38, 1, 1700000000000, True)
"""

from __future__ import annotations

from ..model import TimestampType

SIZE = 8
CRC = 12
MAGIC = 16
ATTRIBUTES = 17
TIMESTAMP = 18

ENTRY_OVERHEAD_SIZE = 12  # bytes of offset and size, which size does not count
MESSAGE_SIZE_MIN = 14  # a message of magic 0 without key and value

# Positions within the message, as `LegacyRecord` counts them.
MESSAGE_MAGIC = MAGIC - ENTRY_OVERHEAD_SIZE
MESSAGE_ATTRIBUTES = ATTRIBUTES - ENTRY_OVERHEAD_SIZE
MESSAGE_TIMESTAMP = TIMESTAMP - ENTRY_OVERHEAD_SIZE
MESSAGE_KEY_SIZE_V0 = 6
MESSAGE_KEY_SIZE_V1 = 14

CODEC_MASK = 0x07
LOG_APPEND_TIME_FLAG = 0x08
NO_TIMESTAMP = -1


def timestamp_type(magic: int, attributes: int) -> TimestampType:
    """Who set the timestamp of a message that no wrapper speaks for (`LegacyRecord.timestampType`)."""
    if magic == 0:
        return TimestampType.NO_TIMESTAMP_TYPE
    if attributes & LOG_APPEND_TIME_FLAG:
        return TimestampType.LOG_APPEND_TIME
    return TimestampType.CREATE_TIME
