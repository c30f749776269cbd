"""Steps of a producer state (`ProducerAppendInfo`, `ProducerStateManager.update`, `UnifiedLog`).

Recovery of a segment: each batch counts at once; like a replica, it takes what the leader took.

    completed = step(state, data, table, first_row, row_end)

Rebuild on load: all batches read of one segment count together in the end.

    rebuild = ProducerUpdate(state, AppendOrigin.REPLICATION)
    rebuild.step(data, table, first_row, row_end)                 # for each table
    rebuild.commit()

Append by a leader: batches are first analyzed, then written, then counted.

    append = ProducerUpdate(state, AppendOrigin.CLIENT)
    duplicate = append.step(data, table, first_row, row_end)      # raises what Kafka refuses
    completed = append.commit(log_end_offset)

Rows are half open: `first_row` … `row_end` - 1. `data` is what the table was scanned from. The aborted ones of the
returned transactions go into the `.txnindex` in recovery and in an append, not in a rebuild.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from ..columns.batch_table import BatchTable, ByteArray, Int64Array
from ..errors import LogstoreError
from ..kernels.fold import producer_struct as kernel
from ..kernels.scan import batches as scan
from .producer_refusal import refusal
from .producer_state import ProducerState
from .transaction_marker import read_marker
from .verification import VerificationGuard, VerificationState

UNKNOWN_TRANSACTION_VERSION = -1
NO_LOWEST_SEQUENCE = (1 << 31) - 1
_OF_VERIFICATION = [scan.PRODUCER_ID, scan.PRODUCER_EPOCH, scan.ATTRIBUTES]


class AppendOrigin(IntEnum):
    """Origin of batches (`AppendOrigin`); what a leader refuses, a replica only notes."""

    REPLICATION = kernel.REPLICATION
    COORDINATOR = kernel.COORDINATOR
    CLIENT = kernel.CLIENT
    RAFT_LEADER = kernel.RAFT_LEADER


@dataclass(frozen=True, slots=True)
class Duplicate:
    """The append that a client's batch repeats; nothing is written, and this is the answer.

    Attributes:
        timestamp: largest of the batch, in ms; returned as its log append time.
    """

    first_offset: int
    last_offset: int
    timestamp: int


def step(state: ProducerState, data: ByteArray, table: BatchTable, first_row: int, row_end: int) -> Int64Array:
    """Step by batches of a recovered segment, each at once (`LogSegment.recover`).

    Moves `map_end_offset` behind the last v2 batch. Returns the decided transactions, as `commit` does.

    Raises, with `position` and `offset` of the batch, after stepping the rows before it: `state.buffers.take_completed`
    then returns what these decided:
        InvalidRecordError: a control record that does not parse (an InvalidRecordException of Kafka, which ends the
            segment behind that batch), or that is no marker (`java_class` names Kafka's exception).
        InvalidTxnStateError: a batch outside of its producer's open transaction.
    """
    struct = state.buffers.struct
    struct.origin = kernel.REPLICATION
    struct.transaction_version = UNKNOWN_TRANSACTION_VERSION
    struct.is_single = 1
    try:
        _fold(state, data, table, first_row, row_end)
    finally:
        struct.is_single = 0
    return state.buffers.take_completed()


class ProducerUpdate:
    """A group of batches that count together or not at all; a state has one group at a time.

    Attributes:
        state: unchanged until `commit`, except its verification.
    """

    __slots__ = ("_guard", "_origin", "_transaction_version", "_verified", "state")

    def __init__(
        self,
        state: ProducerState,
        origin: AppendOrigin,
        *,
        transaction_version: int = UNKNOWN_TRANSACTION_VERSION,
        guard: VerificationGuard | None = None,
    ) -> None:
        """Begin a group, and forget one that was not committed.

        Args:
            transaction_version: of markers, 0 to 2; required unless they are a replica's.
            guard: from `ProducerState.begin_verification`, for the producer of the batch.
        """
        self.state = state
        self._origin = origin
        self._transaction_version = transaction_version
        self._guard = guard
        self._verified: dict[int, VerificationState | None] = {}
        state.buffers.discard()

    def step(self, data: ByteArray, table: BatchTable, first_row: int, row_end: int) -> Duplicate | None:
        """Analyze rows; return a `Duplicate`, which ends the group, if a batch is one of its producer's last five.

        Raises, with `position` and `offset` of the batch, and ends the group:
            OutOfOrderSequenceError: a gap in a client's sequences, or a first sequence that may not be.
            InvalidProducerEpochError: a newer epoch is known.
            InvalidTxnStateError: a transactional batch without verification, or outside of its transaction.
            TransactionCoordinatorFencedError: a marker of an older coordinator.
            InvalidRecordError: a control record that is no marker.
            UsageError: a marker without transaction version, unless it is a replica's.
        """
        struct = self.state.buffers.struct
        struct.origin = self._origin
        struct.transaction_version = self._transaction_version
        if not len(self.state.verification):
            struct.lowest_sequence = NO_LOWEST_SEQUENCE
            struct.supports_epoch_bump = 0
            struct.is_verified = not self.state.requires_verification
            return _fold(self.state, data, table, first_row, row_end)
        # row by row: an accepted batch uses up the verification that the next one would need
        for row in range(first_row, row_end):
            self._set_verification(int(table.matrix[scan.PRODUCER_ID, row]))
            duplicate = _fold(self.state, data, table, row, row + 1)
            if duplicate is not None:
                return duplicate
            self.state.verification.accepted(*table.matrix[_OF_VERIFICATION, row].tolist())
        return None

    def commit(self, end_offset: int | None = None) -> Int64Array:
        """Count the group; the state covers the log up to `end_offset`, or as far as before.

        Returns the decided transactions in marker order: int64[n, COMPLETED_WIDTH], with the last stable offset as if
        this one, but no other open one, were decided.

        Raises:
            InvalidTxnStateError: a decided transaction is not open (an IllegalArgumentException in Kafka).
        """
        buffers = self.state.buffers
        status = buffers.apply()
        if status != kernel.OK:
            raise refusal(self.state, status, None)
        if end_offset is not None:
            self.state.map_end_offset = end_offset
        return buffers.take_completed()

    def _set_verification(self, producer_id: int) -> None:
        """Set a producer's verification as its first batch in the group found it (`prepareUpdate`)."""
        now = self.state.verification_of(producer_id)
        entry = self._verified.setdefault(producer_id, now)
        struct = self.state.buffers.struct
        struct.lowest_sequence = NO_LOWEST_SEQUENCE if entry is None else entry.lowest_sequence
        struct.supports_epoch_bump = entry is not None and entry.supports_epoch_bump
        is_shown = self._guard is not None and now is not None and now.guard is self._guard
        struct.is_verified = is_shown or not self.state.requires_verification


def _fold(state: ProducerState, data: ByteArray, table: BatchTable, first_row: int, row_end: int) -> Duplicate | None:
    """Run the kernel until it is done, or refuses a batch and ends the group."""
    buffers = state.buffers
    struct = buffers.struct
    struct.marker_row = -1  # of an earlier call, whose table may have been another
    row = first_row
    while True:
        status = buffers.fold(data, table, row, row_end)
        if status == kernel.OK:
            return None
        row = struct.stop_row
        if status != kernel.MARKER_TO_READ:
            buffers.discard()
            if status == kernel.DUPLICATE:
                return Duplicate(struct.detail, struct.second_detail, struct.third_detail)
            raise refusal(state, status, table)
        try:
            marker = read_marker(data, table, row)
        except LogstoreError:
            buffers.discard()
            raise
        struct.marker_row = row
        struct.marker_type = marker.type
        struct.marker_coordinator_epoch = marker.coordinator_epoch
        struct.marker_timestamp = marker.timestamp
