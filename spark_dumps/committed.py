"""What read_committed needs to know of a partition, known on the driver: no task has to look at other segments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from logstore.columns.batch_table import Int64Array
from logstore.view.log_view import LogView
from logstore.view.partition_reader import PartitionReader


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


class FollowedLog:
    """A partition that is looked at again and again: only what is new is read."""

    def __init__(self) -> None:
        self._reader: PartitionReader | None = None

    def committed(self, path: str) -> CommittedView:
        """Return what is decided of the partition in the directory `path`, as it is now.

        Raises:
            InvalidTxnStateError, InvalidRecordError: batches of the last segment cannot be followed.
            CorruptIndexError: a `.txnindex` of an unknown version.
            DataDirectoryError: a file cannot be read.
        """
        if self._reader is None:
            self._reader = PartitionReader(path, holds_files=False)
        else:
            self._reader.refresh()
        return _committed_view(self._reader.view())


def _committed_view(view: LogView) -> CommittedView:
    found = [np.empty((0, 3), np.int64)]
    for segment in view.segments:
        index = segment.transaction_index
        index.require_all()
        found.append(np.stack([index.producer_ids, index.first_offsets, index.last_offsets], axis=1))
    return CommittedView(view.bounds.last_stable_offset, np.concatenate(found))
