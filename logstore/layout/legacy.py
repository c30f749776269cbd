"""Message, magic 0 and 1: the content of `.log` files before Kafka 0.11 (`LegacyRecord`, KIP-31, KIP-32).

An entry of a message set is an offset, a size and one message; Kafka reads each entry as a batch.

| position | size | field      | note                                                                      |
|----------|------|------------|---------------------------------------------------------------------------|
| 0        | 8    | offset     | not covered by the checksum                                               |
| 8        | 4    | size       | bytes of the message that follows, at least 14                            |
| 12       | 4    | crc        | CRC-32 (zlib's) of everything after it                                    |
| 16       | 1    | magic      | 0 or 1                                                                    |
| 17       | 1    | attributes | bits 0-2 codec (zstd is not allowed), bit 3 LogAppendTime (magic 1 only)  |
| 18       | 8    | timestamp  | only in magic 1; in magic 0 the next field is here                        |
| 26       | 4    | keySize    | -1 null                                                                   |
| 30       | …    | key        |                                                                           |
|          | 4    | valueSize  | -1 null                                                                   |
|          | …    | value      |                                                                           |

All integers are big-endian and signed, but for the checksum. With a codec the entry is a wrapper: its value is a
compressed message set, whose messages must not be compressed again, and its offset is the last message's. In a
wrapper of magic 0 the inner offsets are absolute. In one of magic 1 they count from 0, and absolute = wrapper's offset
- last inner offset + inner offset; the cleaner leaves gaps, so the last inner offset can exceed the count - 1.

Odd case: in a wrapper of magic 1 with LogAppendTime the wrapper's timestamp is that of all inner messages. In a wrapper
of magic 1 at offset 0 the inner offsets are absolute. No message has a producer, a sequence, an epoch or headers.

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


def timestamp_type(magic: int, attributes: int) -> TimestampType:
    """Return the timestamp type of a message outside of a wrapper (`LegacyRecord.timestampType`)."""
    if magic == 0:
        return TimestampType.NO_TIMESTAMP_TYPE
    if attributes & LOG_APPEND_TIME_FLAG:
        return TimestampType.LOG_APPEND_TIME
    return TimestampType.CREATE_TIME
