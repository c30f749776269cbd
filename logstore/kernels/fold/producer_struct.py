"""Struct of the kernels of the producer state, fields of a completed transaction, and status."""

from __future__ import annotations

from ...native.structs import Struct, Words, struct


@struct
class ProducerStruct(Struct):
    """Producers of a partition, the current group of batches, and the open transactions."""

    # the entries and their index,
    entry_count: int
    entry_capacity: int
    index_bits: int
    index_seed: int
    map_end_offset: int  # the state covers the offsets before this one
    # the current group,
    update_count: int
    update_capacity: int
    update_index_bits: int
    started_count: int  # started transactions that are not yet among the open ones
    started_capacity: int
    completed_count: int  # completed transactions
    applied_count: int  # how many of these were removed from the open ones
    completed_capacity: int
    # arguments of a call,
    origin: int
    transaction_version: int  # -1: unknown
    is_single: int  # 1: each batch is its own group
    is_verified: int  # 0: a transactional batch outside of a transaction is refused
    lowest_sequence: int  # of the verification state; 2^31 - 1: none
    supports_epoch_bump: int
    # a marker that Python read,
    marker_row: int  # -1: none
    marker_type: int
    marker_coordinator_epoch: int
    marker_timestamp: int
    # where and why the last call stopped,
    stop_row: int
    detail: int
    second_detail: int
    third_detail: int
    # open transactions, see `transactions`,
    ongoing_head: int
    ongoing_end: int
    ongoing_capacity: int
    # and arrays.
    entries: Words  # int64[entry_capacity, ENTRY_WIDTH], as in `producer_entries`
    index: Words  # int64[2^index_bits]
    updates: Words  # as entries
    update_index: Words
    started: Words  # int64[started_capacity, 2]: first offset, producer id
    completed: Words  # int64[completed_capacity, COMPLETED_WIDTH]
    ongoing: Words  # int64[ongoing_capacity, 2]: first offset, producer id


REPLICATION = 0  # ordinals of `AppendOrigin`
COORDINATOR = 1
CLIENT = 2
RAFT_LEADER = 3

ABORT = 0  # type of a marker

# Fields of a completed transaction.
COMPLETED_PRODUCER_ID = 0
COMPLETED_FIRST_OFFSET = 1
COMPLETED_LAST_OFFSET = 2  # of the marker
COMPLETED_IS_ABORTED = 3
COMPLETED_LAST_STABLE_OFFSET = 4
COMPLETED_WIDTH = 5

# Status; `folds.producer_refusal` has the messages of those that refuse a batch.
OK = 0
NO_ROOM = 1  # a buffer is full: enlarge it and go on at `stop_row`
MARKER_TO_READ = 2  # a control batch of unusual form: set the marker's fields and go on at `stop_row`
DUPLICATE = 3  # `detail` … `third_detail`: first offset, last offset, timestamp of the first append
SMALLER_EPOCH = 4  # `detail`: known epoch
NOT_VERIFIED = 5
OLD_EPOCH = 6  # `detail`: known epoch, `second_detail`: transaction version
FIRST_SEQUENCE_NOT_ZERO = 7
SEQUENCE_ABOVE_LOWEST = 8  # `detail`: the lowest sequence of the verification state
NEW_EPOCH_SEQUENCE = 9  # `detail`: known epoch
SEQUENCE_GAP = 10  # `detail`: known last sequence
OLD_COORDINATOR_EPOCH = 11  # `detail`: known epoch, `second_detail`: the marker's
NOT_TRANSACTIONAL = 12
NO_TRANSACTION_VERSION = 13
NOT_STARTED = 14  # a completed transaction that is not among the open ones; `detail`: its number
