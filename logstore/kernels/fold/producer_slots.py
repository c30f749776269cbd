"""What the kernels of the producer state keep beside the entries, completed transactions, and how a step ended."""

from __future__ import annotations

from ...jit.structs import Struct, Words, struct


@struct
class ProducerStruct(Struct):
    """The arrays of a producer state, by the names that they have in `append_struct.FastPathStruct` too."""

    producer_slots: Words  # int64[SLOT_COUNT]
    entries: Words  # int64[n, ENTRY_WIDTH], as in `producer_entries`
    index: Words  # int64[2^bits]
    updates: Words  # as entries
    update_index: Words
    started: Words  # int64[n, 2]
    completed: Words  # int64[n, COMPLETED_WIDTH]
    transaction_slots: Words  # as in `fold_transactions`
    ongoing: Words


# Slots of the state, int64[SLOT_COUNT]: the entries and their index,
ENTRY_COUNT = 0
ENTRY_CAPACITY = 1
INDEX_BITS = 2
INDEX_SEED = 3
JAVA_CAPACITY = 4  # table size of the Java map; 0 before its first entry
MAP_END_OFFSET = 5  # the state is as of this offset
# the group under way,
UPDATE_COUNT = 6
UPDATE_CAPACITY = 7
UPDATE_INDEX_BITS = 8
UPDATE_JAVA_CAPACITY = 9
STARTED_COUNT = 10  # transactions started and not yet put among the open ones
STARTED_CAPACITY = 11
COMPLETED_COUNT = 12  # transactions completed
APPLIED_COUNT = 13  # and how many of these have been taken from the open ones
COMPLETED_CAPACITY = 14
# how the batches come,
ORIGIN = 15
TRANSACTION_VERSION = 16  # -1 not known
IS_SINGLE = 17  # 1: each batch is a group of its own
IS_VERIFIED = 18  # 0: a transactional batch outside of a transaction is refused
LOWEST_SEQUENCE = 19  # of the verification state; 2^31 - 1 without one
SUPPORTS_EPOCH_BUMP = 20
# a marker that was read elsewhere,
MARKER_ROW = 21  # -1 none
MARKER_TYPE = 22
MARKER_COORDINATOR_EPOCH = 23
MARKER_TIMESTAMP = 24
# and what the last call stopped at.
STOP_ROW = 25
DETAIL = 26
SECOND_DETAIL = 27
THIRD_DETAIL = 28
SLOT_COUNT = 29

REPLICATION = 0  # `AppendOrigin`, by the numbers of Kafka's ordinals
COORDINATOR = 1
CLIENT = 2
RAFT_LEADER = 3

ABORT = 0
COMMIT = 1

# Fields of a completed transaction.
COMPLETED_PRODUCER_ID = 0
COMPLETED_FIRST_OFFSET = 1
COMPLETED_LAST_OFFSET = 2  # of the marker
COMPLETED_IS_ABORTED = 3
COMPLETED_LAST_STABLE_OFFSET = 4
COMPLETED_WIDTH = 5

# Status of a step. Of those that refuse a batch the words are in `folds.producer_refusal`.
OK = 0
NO_ROOM = 1  # a buffer is full: enlarge it and go on at STOP_ROW
MARKER_TO_READ = 2  # a control batch of unusual form: fill the MARKER slots and go on at STOP_ROW
DUPLICATE = 3  # DETAIL … THIRD_DETAIL: first offset, last offset, timestamp of the first append
SMALLER_EPOCH = 4  # DETAIL: epoch known
NOT_VERIFIED = 5
OLD_EPOCH = 6  # DETAIL: epoch known, SECOND_DETAIL: transaction version
FIRST_SEQUENCE_NOT_ZERO = 7
SEQUENCE_ABOVE_LOWEST = 8  # DETAIL: that of the verification state
NEW_EPOCH_SEQUENCE = 9  # DETAIL: epoch known
SEQUENCE_GAP = 10  # DETAIL: last sequence known
OLD_COORDINATOR_EPOCH = 11  # DETAIL: epoch known, SECOND_DETAIL: the marker's
NOT_TRANSACTIONAL = 12
NO_TRANSACTION_VERSION = 13
NOT_STARTED = 14  # a completed transaction that is not among the open ones; DETAIL: its number
