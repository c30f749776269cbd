"""Record batch, magic 2: a `.log` file is a sequence of them (`DefaultRecordBatch`, KIP-98).

| position | size | field                | note                                                                    |
|----------|------|----------------------|-------------------------------------------------------------------------|
| 0        | 8    | baseOffset           | not covered by the checksum, so a broker may set it in place            |
| 8        | 4    | batchLength          | bytes that follow this field; total size is 12 more                     |
| 12       | 4    | partitionLeaderEpoch | not covered by the checksum; -1 from a producer                         |
| 16       | 1    | magic                | 2; 0 and 1 are another layout, see `legacy`                             |
| 17       | 4    | crc                  | CRC-32C of everything from byte 21 to the end                           |
| 21       | 2    | attributes           | bits below                                                              |
| 23       | 4    | lastOffsetDelta      | lastOffset = baseOffset + this, kept when the cleaner drops records     |
| 27       | 8    | baseTimestamp        | record deltas count from it; with bit 6 it is also the delete horizon   |
| 35       | 8    | maxTimestamp         | with bit 3 the append time, which is then every record's timestamp      |
| 43       | 8    | producerId           | -1 without                                                              |
| 51       | 2    | producerEpoch        | -1 without                                                              |
| 53       | 4    | baseSequence         | -1 without; always -1 in a marker batch                                 |
| 57       | 4    | recordsCount         | may be less than lastOffsetDelta + 1 after cleaning, and 0              |
| 61       | …    | records              | plain, or one compressed stream of all records                          |

All integers are big-endian and signed. Attribute bits: 0-2 codec, 3 timestamp type (1 = LogAppendTime), 4
transactional, 5 control, 6 delete horizon set; the rest is zero.

Odd case: the checksum does not cover offset, length, epoch and magic, so it does not find damage there. The last offset
can be larger than baseOffset + recordsCount - 1: cleaning removes records and keeps the offsets.

Two records, `k1 -> v1` and null key with value `nokey`, at offsets 7 and 8 of leader epoch 3:

>>> batch = bytes.fromhex(
...     "0000000000000007" "00000048" "00000003" "02" "e721c745" "0000" "00000001"
...     "0000018bcfe56800" "0000018bcfe56805" "ffffffffffffffff" "ffff" "ffffffff" "00000002"
...     "14000000046b3104763100" "16000a02010a6e6f6b657900")
>>> import struct
>>> base_offset, length, leader_epoch, magic, crc = struct.unpack_from(">qiibI", batch)
>>> base_offset, length + LOG_OVERHEAD_SIZE, leader_epoch, hex(crc)
(7, 84, 3, '0xe721c745')
"""

from __future__ import annotations

BASE_OFFSET = 0
BATCH_LENGTH = 8
PARTITION_LEADER_EPOCH = 12
MAGIC = 16
CRC = 17
ATTRIBUTES = 21
LAST_OFFSET_DELTA = 23
BASE_TIMESTAMP = 27
MAX_TIMESTAMP = 35
PRODUCER_ID = 43
PRODUCER_EPOCH = 51
BASE_SEQUENCE = 53
RECORD_COUNT = 57
RECORDS = 61

LOG_OVERHEAD_SIZE = 12  # bytes of baseOffset and batchLength, which batchLength does not count
HEADER_UP_TO_MAGIC_SIZE = 17  # what a reader needs before it knows the layout
HEADER_SIZE = 61
LENGTH_MIN = 14  # smallest batchLength of any magic: a v0 message without key and value

CODEC_MASK = 0x07
LOG_APPEND_TIME_FLAG = 0x08
TRANSACTIONAL_FLAG = 0x10
CONTROL_FLAG = 0x20
DELETE_HORIZON_FLAG = 0x40
ALL_FLAGS = CODEC_MASK | LOG_APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG | DELETE_HORIZON_FLAG

NO_PRODUCER_ID = -1
NO_SEQUENCE = -1
NO_TIMESTAMP = -1
MAGIC_V2 = 2  # of record batches; message sets have 0 or 1
