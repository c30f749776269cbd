"""What read_committed needs to know of a partition, folded on the driver: no task has to look at other segments.

The last stable offset comes from the producer state, as on load of a log: the newest snapshot that can be read, and the
batches behind it (`ProducerStateManager`). The aborted transactions come from the `.txnindex` files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from logstore.columns.batch_table import Int64Array
from logstore.disk.mapped import MappedFile
from logstore.disk.side_files import read_leader_epoch_checkpoint, read_producer_snapshot, read_transaction_index
from logstore.errors import CorruptSnapshotError, LogstoreError
from logstore.folds.producer_state import ProducerState
from logstore.folds.producer_update import AppendOrigin, ProducerUpdate
from logstore.layout import leader_epoch_checkpoint

from .directories import Partition
from .segments import PlannedSegment

NO_EXPIRATION_NOW_MS = 0  # a clock at which no producer has expired; expired ones have no open transaction anyway


@dataclass(frozen=True)
class CommittedView:
    """What of a partition is decided.

    Attributes:
        last_stable_offset: read_committed reads up to it, exclusively.
        aborted: int64[n, 3]: producer id, first offset, and offset of the ABORT marker; ascending by the last.
    """

    last_stable_offset: int
    aborted: Int64Array

    def aborted_between(self, start_offset: int, end_offset: int) -> Int64Array:
        """The aborted transactions that have offsets in [start_offset, end_offset)."""
        has_some = (self.aborted[:, 2] >= start_offset) & (self.aborted[:, 1] < end_offset)
        return self.aborted[has_some]


def committed_view(state: ProducerState, segments: Sequence[PlannedSegment]) -> CommittedView:
    """Of a partition whose producers are known up to its end.

    Raises:
        CorruptIndexError: a `.txnindex` of an unknown version.
    """
    first_undecided = state.transactions.first_undecided
    end = state.map_end_offset if first_undecided is None else min(first_undecided[0], state.map_end_offset)
    return CommittedView(end, _aborted(segments))


class FollowedProducers:
    """The producers of a partition that is looked at again and again: only what is new is read."""

    def __init__(self) -> None:
        self._state: ProducerState | None = None
        self._epochs: list[tuple[int, int]] = []

    def state(self, partition: Partition, segments: Sequence[PlannedSegment], log_end_offset: int) -> ProducerState:
        """As of `log_end_offset`.

        Raises:
            InvalidTxnStateError, InvalidRecordError: batches behind the last snapshot cannot be followed.
        """
        path = partition.files.files.get(leader_epoch_checkpoint.FILE_NAME)
        epochs = [] if path is None else read_leader_epoch_checkpoint(path)
        # a log is cut only where a new leader begins
        if self._state is None or epochs != self._epochs or self._state.map_end_offset > log_end_offset:
            self._state, self._epochs = _loaded(partition, log_end_offset), epochs
        try:
            _follow(self._state, segments, log_end_offset)
        except LogstoreError:
            self._state = None
            raise
        return self._state


def producer_state(partition: Partition, segments: Sequence[PlannedSegment], log_end_offset: int) -> ProducerState:
    """The producers of the partition as of `log_end_offset`; raises as `FollowedProducers.state`."""
    return FollowedProducers().state(partition, segments, log_end_offset)


def _loaded(partition: Partition, log_end_offset: int) -> ProducerState:
    state = ProducerState(f"{partition.topic}-{partition.partition}")
    _load_newest(state, partition, log_end_offset)
    return state


def _follow(state: ProducerState, segments: Sequence[PlannedSegment], log_end_offset: int) -> None:
    for number, segment in enumerate(segments):
        is_before = number + 1 < len(segments) and segments[number + 1].files.base_offset <= state.map_end_offset
        if not is_before:
            _step_segment(state, segment, log_end_offset)
    state.map_end_offset = log_end_offset


def _load_newest(state: ProducerState, partition: Partition, log_end_offset: int) -> None:
    for offset, path in sorted(partition.files.producer_snapshots.items(), reverse=True):
        if partition.log_start_offset < offset <= log_end_offset:
            try:
                snapshot = read_producer_snapshot(path)
            except CorruptSnapshotError:
                continue  # as Kafka does: an older one and more of the log say the same
            state.load(snapshot, offset, NO_EXPIRATION_NOW_MS)
            return
    state.start_at(partition.log_start_offset)


def _step_segment(state: ProducerState, segment: PlannedSegment, log_end_offset: int) -> None:
    update = ProducerUpdate(state, AppendOrigin.REPLICATION)
    start_offset = state.map_end_offset
    with MappedFile(segment.files.log) as log:
        for table in segment.tables(log, segment.position_at_or_before(start_offset)):
            first = int(np.argmax(table.last_offset >= start_offset)) if len(table) else 0
            if len(table) and table.last_offset[first] >= start_offset:
                end = len(table) - int(np.count_nonzero(table.base_offset >= log_end_offset))
                update.step(log.data, table, first, end)
        update.commit()


def _aborted(segments: Sequence[PlannedSegment]) -> Int64Array:
    found = [np.empty((0, 3), np.int64)]
    for segment in segments:
        if segment.files.transaction_index is not None:
            index = read_transaction_index(segment.files.transaction_index)
            index.require_all()
            found.append(np.stack([index.producer_ids, index.first_offsets, index.last_offsets], axis=1))
    return np.concatenate(found)
