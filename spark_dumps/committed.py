"""What read_committed needs to know of a partition, known on the driver: no task has to look at other segments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from logstore.columns.batch_table import Int64Array
from logstore.disk.mapped import MappedFile
from logstore.disk.side_files import read_producer_snapshot, read_transaction_index
from logstore.errors import CorruptSnapshotError
from logstore.folds import aborted_transactions, producer_update
from logstore.folds.aborted_transactions import AbortedTransactions
from logstore.folds.producer_state import ProducerState
from logstore.layout.producer_snapshot import ProducerSnapshot
from logstore.layout.transaction_index import TransactionIndex
from logstore.view.partition_reader import PartitionReader

from .directories import ListedPartition
from .segments import PlannedSegment


@dataclass(frozen=True)
class CommittedView:
    """What of a partition is decided.

    Attributes:
        last_stable_offset: read_committed reads up to it, exclusively.
        aborted: int64[n, 3]: producer id, first offset, and offset of the ABORT marker; ascending by the last.
        known_end_offset: behind the last batch that is known; damage may follow.
    """

    last_stable_offset: int
    aborted: Int64Array
    known_end_offset: int

    def aborted_between(self, start_offset: int, end_offset: int) -> Int64Array:
        """The aborted transactions that have offsets in [start_offset, end_offset)."""
        has_some = (self.aborted[:, 2] >= start_offset) & (self.aborted[:, 1] < end_offset)
        return self.aborted[has_some]


def follow_committed(path: str, readers: dict[str, PartitionReader]) -> CommittedView:
    """Return what is decided of the partition in the directory `path`, as it is now.

    Args:
        readers: by path, those of partitions that were followed before, of which only what is new is read.

    Raises:
        InvalidTxnStateError, InvalidRecordError: batches of the last segment cannot be followed.
        CorruptIndexError: a `.txnindex` of an unknown version.
        DataDirectoryError: a file cannot be read.
    """
    if path in readers:
        readers[path].refresh()
    else:
        readers[path] = PartitionReader(path, holds_files=False)
    view = readers[path].view()
    aborted = _aborted_in(segment.transaction_index for segment in view.segments)
    return CommittedView(view.bounds.last_stable_offset, aborted, view.bounds.log_end_offset)


def fold_committed(
    partition: ListedPartition, last: PlannedSegment, start_offset: int, log_end_offset: int, *, has_transactions: bool
) -> CommittedView | None:
    """Return what is decided of a partition whose last segment is small and whole; None: follow its log.

    Nothing of the directory is listed or looked at again. An open transaction of an older segment is in the producer
    snapshot at the last segment's start.

    Args:
        has_transactions: whether the last segment has transactional batches.

    Raises:
        InvalidTxnStateError, InvalidRecordError: batches of the last segment cannot be followed.
        CorruptIndexError: a `.txnindex` of an unknown version.
        DataDirectoryError: a file cannot be read.
    """
    base_offset, before = last.files.base_offset, partition.files.segments[:-1]
    snapshot = _read_snapshot(partition.files.producer_snapshots.get(base_offset)) if before else None
    if before and snapshot is None:
        return None
    paths = [segment.transaction_index for segment in before if segment.transaction_index is not None]
    aborted = _aborted_in(map(read_transaction_index, paths))
    if not has_transactions and (snapshot is None or (snapshot.current_txn_first_offsets < 0).all()):
        return CommittedView(log_end_offset, aborted, log_end_offset)
    if start_offset > base_offset or (before and start_offset == base_offset):
        return None  # the log starts inside of what the snapshot or the segment tell
    state = ProducerState(f"{partition.topic}-{partition.partition}")
    state.start_at(base_offset)
    if snapshot is not None:
        state.load(snapshot, base_offset, None)  # what expired has no open transaction
    found = AbortedTransactions()
    with MappedFile(last.files.log) as log:
        for table in last.tables(log, 0, check_crc=True):
            if (table.is_valid != 1).any():
                return None
            aborted_transactions.step(found, producer_update.step(state, log.data, table, 0, len(table)))
    stable = state.transactions.last_stable_offset(log_end_offset, start_offset)
    return CommittedView(stable, np.concatenate([aborted, found.entries[:, :3]]), log_end_offset)


def _read_snapshot(path: str | None) -> ProducerSnapshot | None:
    try:
        return None if path is None else read_producer_snapshot(path)
    except CorruptSnapshotError:
        return None  # following the log finds an older one


def _aborted_in(indexes: Iterable[TransactionIndex]) -> Int64Array:
    found = [np.empty((0, 3), np.int64)]
    for index in indexes:
        index.require_all()
        found.append(np.stack([index.producer_ids, index.first_offsets, index.last_offsets], axis=1))
    return np.concatenate(found)
