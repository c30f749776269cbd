"""What read_committed needs to know of a partition, known on the driver: no task has to look at other segments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from logstore.columns.batch_table import Int64Array
from logstore.disk.directory import PartitionFiles
from logstore.disk.side_files import read_producer_snapshot, read_transaction_index
from logstore.errors import CorruptSnapshotError
from logstore.layout.transaction_index import TransactionIndex
from logstore.view.partition_reader import PartitionReader


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


def committed_before_tail(files: PartitionFiles, log_end_offset: int) -> CommittedView | None:
    """Return what is decided of a partition whose last segment has no transactional batch; None: follow its log.

    No byte of records is read: an open transaction would be in the producer snapshot at the last segment's start.

    Raises:
        CorruptIndexError: a `.txnindex` of an unknown version.
        DataDirectoryError: a file cannot be read.
    """
    before = files.segments[:-1]
    if before and not _ends_decided(files.producer_snapshots.get(files.segments[-1].base_offset)):
        return None
    paths = [segment.transaction_index for segment in before if segment.transaction_index is not None]
    return CommittedView(log_end_offset, _aborted_in(map(read_transaction_index, paths)), log_end_offset)


def _ends_decided(snapshot: str | None) -> bool:
    """Whether a producer snapshot tells that no transaction is open."""
    if snapshot is None:
        return False
    try:
        return bool((read_producer_snapshot(snapshot).current_txn_first_offsets < 0).all())
    except CorruptSnapshotError:
        return False  # following the log finds an older one


def _aborted_in(indexes: Iterable[TransactionIndex]) -> Int64Array:
    found = [np.empty((0, 3), np.int64)]
    for index in indexes:
        index.require_all()
        found.append(np.stack([index.producer_ids, index.first_offsets, index.last_offsets], axis=1))
    return np.concatenate(found)
