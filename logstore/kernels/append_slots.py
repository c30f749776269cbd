"""What the kernels of `append_records` go by: int64[SLOT_COUNT]."""

from __future__ import annotations

from .fold_indexes import SLOT_COUNT as INDEX_SLOT_COUNT

# The call,
RECORD_COUNT = 0
NOW_MS = 1
PRODUCER_ID = 2  # -1 none
PRODUCER_EPOCH = 3
BASE_SEQUENCE = 4
ATTRIBUTES = 5
CALL_SLOT_COUNT = 6
# the topic,
BATCH_SIZE_MAX = 6  # max.message.bytes
NEEDS_KEYS = 7
IS_LOG_APPEND_TIME = 8
TIMESTAMP_BEFORE_MAX_MS = 9
TIMESTAMP_AFTER_MAX_MS = 10
IS_VERIFIED = 11  # 1: a transaction may begin without having been verified
OUT_CAPACITY = 12
# the log and its last segment,
LOG_END_OFFSET = 13
LEADER_EPOCH = 14
SEGMENT_SIZE = 15
SEGMENT_SIZE_MAX = 16  # or less: up to where the disk has room set aside
FIRST_TIMESTAMP = 17  # of the segment's first batch, in ms; -1 none
AGE_MAX_MS = 18  # segment.ms, less the jitter
CREATED_MS = 19
OFFSET_ENTRY_ROOM = 20  # entries that the buffers of the indexes hold
TIME_ENTRY_ROOM = 21
# the slots of the indexes as they were before the batch,
SAVED_INDEX_SLOTS = 22
# what the system has written of a batch that is not all written,
WRITTEN_SIZE = SAVED_INDEX_SLOTS + INDEX_SLOT_COUNT
SLOT_COUNT = WRITTEN_SIZE + 1

# The file of the segment, int64[FILE_SLOT_COUNT]:
WRITE_ADDRESS = 0  # of a C function as `write`; 0: batches are written by who asks for them
DESCRIPTOR = 1
FILE_SLOT_COUNT = 2

OK = 0
NOT_QUICK = 1  # something is out of the ordinary: nothing has changed
