"""`.txnindex` and `.snapshot` beside the producers of the log, by the folds that write them on recovery.

The state starts with the snapshot of the first segment; without one, what began before the log is not known, and not
judged. Neither is what the cleaner took: of compacted offsets a `.txnindex` may say more than the log, and a snapshot
less. A producer that is in no snapshot may have expired.
"""

from __future__ import annotations

from dataclasses import fields
from typing import NamedTuple

import numpy as np

from ...columns.batch_table import Int64Array
from ...disk.directory import SegmentFiles
from ...disk.mapped import segment_size
from ...disk.side_files import read_producer_snapshot, read_transaction_index
from ...errors import CorruptIndexError, CorruptSnapshotError, DataDirectoryError, LogstoreError
from ...folds import aborted_transactions, producer_update
from ...folds.aborted_transactions import AbortedTransactions
from ...folds.producer_state import ProducerState
from ...layout.producer_snapshot import ProducerSnapshot, parse_producer_snapshot
from ..cluster import Known
from ..evidence import AuditedBatches, Evidence, Follower
from ..finding import Ask, Breach
from ..partition import Partition, unless_gone

NONE = -1


class SnapshotRow(NamedTuple):
    """An entry of a snapshot, in its order of fields; timestamp in ms, -1 for nothing."""

    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int
    coordinator_epoch: int
    current_txn_first_offset: int

    def text(self, producer_id: int) -> str:
        """Return all fields in words."""
        return f"producer {producer_id}: " + ", ".join(f"{name} {value}" for name, value in self._asdict().items())


class SnapshotFacts(NamedTuple):
    """A snapshot beside the producers that the log had at its offset, by producer id.

    Attributes:
        live: None where the producers of the log are not known at the offset.
        is_repeated: the snapshot has a producer more than once.
        known_from: what was written below this offset is not known.
        end_offset: end of a closed log, where its last snapshot is; None if it may go on.
    """

    partition: Partition
    offset: int
    stored: dict[int, SnapshotRow]
    is_repeated: bool = False
    live: dict[int, SnapshotRow] | None = None
    known_from: int = 0
    end_offset: int | None = None


class AbortedFacts(NamedTuple):
    """The entries of a segment's `.txnindex`, and those that the log implies: int64, n × 4 each.

    Attributes:
        known_from: what was written below this offset is not known.
        end_offset: behind the last batch that was read.
        odd_size: bytes behind the last whole entry; a broker does not see them, and writes behind them.
        may_have_followed: another replica may have been its leader.
    """

    partition: Partition
    segment: SegmentFiles
    is_growing: bool
    stored: Int64Array
    expected: Int64Array
    known_from: int
    end_offset: int
    odd_size: int
    may_have_followed: bool


class ProducerFacts(Follower):
    """Steps a producer state by the batches, and compares it with the snapshot at each offset that has one.

    Attributes:
        state: after the last batch.
    """

    def __init__(self, evidence: Evidence, ask: Ask) -> None:
        self._evidence, self._ask = evidence, ask
        self._partition = partition = evidence.partition
        self.state = ProducerState(partition.name)
        found = {offset: self._read(path) for offset, path in partition.files.producer_snapshots.items()}
        self._waiting = {offset: snapshot for offset, snapshot in found.items() if snapshot is not None}
        evidence.snapshot_ids = {offset: snapshot.producer_ids for offset, snapshot in self._waiting.items()}
        self._known_from = partition.first_offset  # the state knows what was written from here on
        self._aborted = AbortedTransactions()
        self._is_started = False  # a segment is there, maybe not the first that was listed
        self._is_lost = False  # it cannot be followed any more, as where offsets go back

    def begin(self, segment: SegmentFiles) -> None:
        self._segment = segment
        if not self._is_started:
            self._start(segment.base_offset)
        self._is_started = True
        self._aborted = AbortedTransactions()
        self._compare_snapshots(segment.base_offset)

    def step(self, batches: AuditedBatches) -> None:
        row, row_end = 0, batches.base.size
        while (offset := next(iter(self._waiting), None)) is not None and offset <= batches.base[-1]:
            stop = max(row, int(np.searchsorted(batches.base, offset)))
            self._follow(batches, row, stop)
            row = stop
            self._compare_snapshots(offset)
        self._follow(batches, row, row_end)

    def end(self) -> None:
        if self._has_damage:
            return
        path = self._segment.transaction_index
        stored, odd_size = np.empty((0, 4), np.int64), 0
        try:
            index = unless_gone(read_transaction_index, path)
            if index is not None:
                stored, odd_size = AbortedTransactions.resume(index).entries, index.odd_size
        except (CorruptIndexError, DataDirectoryError) as error:
            where = self._partition.where(path)
            self._ask(Breach.of("transaction-index", where, error, "entries of version 0"))
            return
        bounds = self._asked_from, self._evidence.end_offset
        may_have_followed = self._evidence.cluster.is_alone is not Known.YES
        read = self._partition, self._segment, self._evidence.is_growing, stored
        self._ask(AbortedFacts(*read, self._aborted.entries, *bounds, odd_size, may_have_followed))

    def finish(self) -> None:
        """Check the last snapshot, which a broker takes after a clean shutdown without reading the log."""
        partition, end_offset = self._partition, self._evidence.end_offset
        self._compare_snapshots(end_offset)
        if self._has_damage or not partition.surroundings.was_closed:
            return
        for offset in self._waiting:
            self._ask(SnapshotFacts(partition, offset, {}, end_offset=end_offset))
        newest = max(partition.files.producer_snapshots, default=0)
        if newest >= end_offset:
            return
        where, expected = partition.where(), f"a snapshot of offset {end_offset}, where the log was closed"
        if not newest and self.state.transactions.ongoing_count:
            first_offset, producer_id = self.state.transactions.ongoing_entries()[0].tolist()
            where = partition.where(offset=first_offset)
            expected = f"a snapshot with the open transaction of producer {producer_id}"
        found = f"the newest of offset {newest}" if newest else "none"
        self._ask(Breach("snapshot-missing", (where, expected, found)))

    def _start(self, base_offset: int) -> None:
        snapshot = self._waiting.pop(base_offset, None)
        if snapshot is None:
            self.state.start_at(base_offset)
            return
        self.state.load(snapshot, base_offset, None)
        self._known_from = min(self._known_from, base_offset)

    def _follow(self, batches: AuditedBatches, row: int, row_end: int) -> None:
        """Step by rows; report and skip one that cannot be followed."""
        run, row, row_end = batches.run, row + batches.run.first_row, row_end + batches.run.first_row
        while row < row_end and not self._is_lost:
            try:
                completed = producer_update.step(self.state, run.data, run.table, row, row_end)
                row = row_end
            except LogstoreError as error:
                completed = producer_update.take_completed(self.state)
                error.path = batches.segment.log
                where = self._partition.where(error.path)
                self._ask(Breach.of("log-marker", where, error, "a batch that its producer may write"))
                if error.position is None:  # a broker does not go on behind it either
                    self._is_lost = True
                    return
                row = int(np.searchsorted(run.table.position, error.position)) + 1
            try:
                aborted_transactions.step(self._aborted, completed)
            except CorruptIndexError:
                self._is_lost = True

    def _compare_snapshots(self, offset: int) -> None:
        """Compare the snapshots up to `offset`, which the state has reached."""
        for waiting in [one for one in self._waiting if one <= offset]:
            snapshot = self._waiting.pop(waiting)
            stored = _rows(snapshot)
            facts = SnapshotFacts(self._partition, waiting, stored, len(stored) < snapshot.producer_ids.size)
            if self._is_started and waiting >= self._partition.base_offset and not self._has_damage:
                live = _rows(parse_producer_snapshot(self.state.to_snapshot_bytes()))
                known_from = max(self._asked_from, self._may_begin_at(stored, waiting))
                facts = facts._replace(live=live, known_from=known_from)
            self._ask(facts)

    def _may_begin_at(self, stored: dict[int, SnapshotRow], offset: int) -> int:
        """Return the highest offset from which on a snapshot may know the log; 0 if it knows all of it.

        A truncated follower rebuilds its state from the log start (`UnifiedLog.rebuildProducerState`), which may have
        been raised without a checkpoint yet. Then the snapshot has nothing below it.
        """
        if self._evidence.is_start_known:
            return 0
        named = (
            row.last_offset if row.current_txn_first_offset < 0 else row.current_txn_first_offset
            for row in stored.values()
        )
        return min((one for one in named if one >= 0), default=offset)

    @property
    def _asked_from(self) -> int:
        """From here on the log has all that was written."""
        return max(self._known_from, self._evidence.cleaned_up_to)

    @property
    def _has_damage(self) -> bool:
        return self._is_lost or self._evidence.has_damage

    def _read(self, path: str) -> ProducerSnapshot | None:
        where = self._partition.where(path)
        try:
            return unless_gone(read_producer_snapshot, path)
        except DataDirectoryError as error:
            self._ask(Breach.unreadable(where, error))
        except CorruptSnapshotError as error:
            if not self._partition.surroundings.was_closed and not unless_gone(segment_size, path):
                return None  # a broker was killed between making the file and writing to it
            self._ask(Breach.of("snapshot-format", where, error, "a snapshot with its checksum"))
        return None


def _rows(snapshot: ProducerSnapshot) -> dict[int, SnapshotRow]:
    columns = [getattr(snapshot, column.name) for column in fields(snapshot) if column.name != "stored_crc"]
    return {producer_id: SnapshotRow(*row) for producer_id, *row in np.stack(columns, axis=1).tolist()}
