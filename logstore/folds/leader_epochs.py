"""Leader epochs of a partition: the start offset of each leader's writes (`LeaderEpochFileCache`, KIP-101, KIP-279).

    state = LeaderEpochs(entries)                         # of `leader-epoch-checkpoint`, or none
    step(state, table, first_row, row_end)                # appended batches
    step_recovered(state, table, first_row, row_end)      # batches of a segment that is recovered
    state.entries, state.is_changed                       # what to write, and whether it must be written

An append takes whatever epoch its batches have, and drops entries that do not fit below it. Recovery only adds epochs
above the latest.

>>> state = LeaderEpochs([(0, 0), (2, 18)])
>>> state.assign(3, 30)
True
>>> state.truncate_from_start(20)
True
>>> state.entries
[(2, 20), (3, 30)]
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..columns.batch_table import BatchTable
from ..errors import UsageError
from ..kernels.scan import batches as scan
from ..layout.batch import MAGIC_V2


class LeaderEpochs:
    """Epochs and their start offsets, both ascending.

    Attributes:
        entries: (epoch, start offset) of each.
        is_changed: the entries changed since the caller last set it to False, after writing the checkpoint.
    """

    __slots__ = ("entries", "is_changed")

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        """Take the entries of a checkpoint in its order; as in Kafka, of conflicting ones the last stays."""
        self.entries: list[tuple[int, int]] = []
        self.is_changed = False
        for epoch, start_offset in entries:
            self.assign(epoch, start_offset)
        self.is_changed = False

    def copied(self) -> LeaderEpochs:
        """Return a copy, for a reader while appends go on."""
        copy = LeaderEpochs()
        copy.entries = self.entries.copy()
        return copy

    @property
    def latest_epoch(self) -> int | None:
        """The latest epoch; None without entries."""
        return self.entries[-1][0] if self.entries else None

    def epoch_of(self, offset: int) -> int | None:
        """Return the epoch of the leader that wrote at `offset`; None below the first entry."""
        for epoch, start in reversed(self.entries):  # no generator: a commit asks each of its logs
            if start <= offset:
                return epoch
        return None

    def end_offset(self, epoch: int, log_end_offset: int) -> int:
        """Return where what leaders up to `epoch` wrote ends (`LeaderEpochFileCache.endOffsetFor`).

        That of the latest epoch, and of any after it, is the end of the log.
        """
        return next((start for later, start in self.entries if later > epoch), log_end_offset)

    def assign(self, epoch: int, start_offset: int) -> bool:
        """Note that a leader of `epoch` wrote at an offset; False if that was known. UsageError if one is negative."""
        if epoch < 0 or start_offset < 0:
            raise UsageError(
                f"Received invalid partition leader epoch entry EpochEntry[epoch={epoch}, startOffset={start_offset}]",
                offset=start_offset,
                java_class="java.lang.IllegalArgumentException",
            )
        if self.entries and self.entries[-1][0] == epoch and start_offset >= self.entries[-1][1]:
            return False
        # epochs and offsets must both ascend: conflicting entries go (`maybeTruncateNonMonotonicEntries`)
        while self.entries and (self.entries[-1][0] >= epoch or self.entries[-1][1] >= start_offset):
            self.entries.pop()
        self.entries.append((epoch, start_offset))
        self.is_changed = True
        return True

    def truncate_from_end(self, end_offset: int) -> None:
        """Drop the entries that start at or above `end_offset`."""
        # a negative offset drops nothing, as in `LeaderEpochFileCache.truncateFromEnd`
        while end_offset >= 0 and self.entries and self.entries[-1][1] >= end_offset:
            self.entries.pop()
            self.is_changed = True

    def truncate_from_start(self, start_offset: int) -> bool:
        """Start the epoch of `start_offset` there and drop those before; return whether one began at or below it."""
        keep = next((i for i, entry in enumerate(self.entries) if entry[1] > start_offset), len(self.entries))
        if keep == 0:
            return False
        first = [(self.entries[keep - 1][0], start_offset)]
        self.is_changed |= self.entries[:keep] != first
        self.entries[:keep] = first
        return True

    def clear(self) -> None:
        """Drop all entries."""
        self.is_changed |= bool(self.entries)
        self.entries.clear()


def step(state: LeaderEpochs, table: BatchTable, first_row: int, row_end: int) -> None:
    """Step by appended batches: the epoch of each is assigned; one of magic 0 or 1 clears the state.

    Raises:
        UsageError: a negative epoch or offset, see `LeaderEpochs.assign`; the rows before it were stepped.
    """
    for row in _rows_with_news(table, first_row, row_end):
        if table.matrix[scan.MAGIC, row] >= MAGIC_V2:
            state.assign(int(table.matrix[scan.PARTITION_LEADER_EPOCH, row]), int(table.matrix[scan.BASE_OFFSET, row]))
        else:
            state.clear()


def step_recovered(state: LeaderEpochs, table: BatchTable, first_row: int, row_end: int) -> None:
    """Step by batches of a recovered segment: an epoch that is not above the latest is ignored.

    Raises:
        UsageError: a negative offset, see `LeaderEpochs.assign`; the rows before it were stepped.
    """
    latest = state.latest_epoch
    epochs = table.matrix[scan.PARTITION_LEADER_EPOCH, first_row:row_end]
    if latest is not None and int(epochs.max(initial=latest)) <= latest:
        return
    for row in _rows_with_news(table, first_row, row_end):
        epoch = int(table.matrix[scan.PARTITION_LEADER_EPOCH, row])
        latest = state.latest_epoch
        if table.matrix[scan.MAGIC, row] >= MAGIC_V2 and epoch >= 0 and (latest is None or epoch > latest):
            state.assign(epoch, int(table.matrix[scan.BASE_OFFSET, row]))


def _rows_with_news(table: BatchTable, first_row: int, row_end: int) -> list[int]:
    """Return rows with another epoch than the row before, or a lower offset; magic 0 and 1 have epoch -1."""
    epochs = table.matrix[scan.PARTITION_LEADER_EPOCH, first_row:row_end]
    offsets = table.matrix[scan.BASE_OFFSET, first_row:row_end]
    magics = table.matrix[scan.MAGIC, first_row:row_end]
    is_news = np.ones(epochs.size, np.bool_)
    is_news[1:] = (epochs[1:] != epochs[:-1]) | (offsets[1:] < offsets[:-1]) | (magics[1:] != magics[:-1])
    rows: list[int] = (np.flatnonzero(is_news) + first_row).tolist()
    return rows
