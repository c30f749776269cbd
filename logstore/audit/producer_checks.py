"""`.txnindex` and `.snapshot` against the producers of the log, by the folds that write them on recovery.

The state starts with the snapshot of the first segment, if there is one; else what began before the log does is not
known, and not asked. What the cleaner took is not asked either: of compacted offsets a `.txnindex` may say more than
the log, and a snapshot less. A producer that is in no snapshot may have expired.
"""

from __future__ import annotations

import numpy as np

from ..columns.batch_table import Int64Array
from ..disk.directory import SegmentFiles
from ..disk.side_files import read_producer_snapshot, read_transaction_index
from ..errors import CorruptIndexError, CorruptSnapshotError, LogstoreError
from ..folds import aborted_transactions, producer_update
from ..folds.aborted_transactions import AbortedTransactions
from ..folds.open_transactions import CompletedTransactions
from ..folds.producer_state import ProducerState
from ..layout.producer_snapshot import ProducerSnapshot
from ..view.walk import Damage, Run, Tail
from . import rules
from .evidence import Evidence
from .log_pass import SegmentEnd
from .partition import Report, unless_gone
from .snapshot_comparison import differences


class ProducerChecks:
    """Steps a producer state by the batches, and stops at each offset that has a snapshot."""

    def __init__(self, evidence: Evidence, report: Report) -> None:
        self._evidence = evidence
        self._partition = partition = evidence.partition
        self._report = report
        self._state = ProducerState(partition.name)
        self._snapshots = {offset: self._read(path) for offset, path in partition.files.producer_snapshots.items()}
        self._waiting = [offset for offset, snapshot in self._snapshots.items() if snapshot is not None]
        self._known_from = partition.first_offset  # the state knows what was written from here on
        self._aborted = AbortedTransactions()
        self._segment: SegmentFiles | None = None
        self._end_offset = 0
        self._is_lost = False  # offsets go back, which is a finding of its own

    @property
    def state(self) -> ProducerState:
        """As of the last batch that was stepped."""
        return self._state

    def begin(self, segment: SegmentFiles) -> None:
        if self._segment is None:
            self._start(segment.base_offset)
        self._segment = segment
        self._aborted = AbortedTransactions()
        self._end_offset = max(self._end_offset, segment.base_offset)
        self._compare_snapshots(segment.base_offset)

    def step(self, run: Run) -> None:
        row = run.first_row
        base_offsets = run.table.base_offset[: run.row_end]
        while self._waiting and self._waiting[0] <= int(base_offsets[-1]):
            row_end = max(row, int(np.searchsorted(base_offsets, self._waiting[0])))
            self._follow(run, row, row_end)
            row = row_end
            self._compare_snapshots(self._waiting[0])
        self._follow(run, row, run.row_end)
        self._end_offset = int(run.table.last_offset[run.row_end - 1]) + 1

    def skip(self, piece: Damage | Tail) -> None:
        """Nothing is known of the producers whose batches are lost, so nothing is compared from here on."""

    def end(self, end: SegmentEnd) -> None:
        if self._has_damage():
            return
        path = end.files.transaction_index
        try:
            index = None if path is None else unless_gone(read_transaction_index, path)
            if index is not None:
                index.require_all()
        except CorruptIndexError as error:
            self._report.add_error(rules.TRANSACTION_INDEX, path, error, expected="entries of version 0")
            return
        entries = np.empty((0, 4), np.int64)
        if index is not None:
            columns = (index.producer_ids, index.first_offsets, index.last_offsets, index.last_stable_offsets)
            entries = np.stack(columns, axis=1)
        self._compare_transactions(path or end.files.log, entries, is_growing=end.is_growing)

    def finish(self) -> None:
        """The snapshot of the log's end, and whether one is needed."""
        self._compare_snapshots(self._end_offset)
        if not self._partition.surroundings.was_closed or self._has_damage():
            return
        for offset in self._waiting:
            self._report.add(
                rules.SNAPSHOT_STATE,
                self._partition.files.producer_snapshots[offset],
                expected=f"a snapshot of an offset up to {self._end_offset}, where the log ends",
                found=offset,
            )
        if not self._partition.files.producer_snapshots and self._state.transactions.ongoing_count:
            first_offset, producer_id = self._state.transactions.ongoing_entries()[0].tolist()
            self._report.add(
                rules.SNAPSHOT_MISSING,
                self._partition.files.path,
                expected=f"a snapshot with the open transaction of producer {producer_id}",
                found="none",
                offset=first_offset,
            )

    def _start(self, base_offset: int) -> None:
        snapshot = self._snapshots.get(base_offset)
        if snapshot is None:
            self._state.start_at(base_offset)
            return
        self._state.load(snapshot, base_offset, None)
        self._waiting.remove(base_offset)
        self._known_from = min(self._known_from, base_offset)

    def _follow(self, run: Run, first_row: int, row_end: int) -> None:
        """Step by rows; one that cannot be followed is told, and passed over."""
        while first_row < row_end:
            try:
                completed = producer_update.step(self._state, run.data, run.table, first_row, row_end)
                first_row = row_end
            except LogstoreError as error:
                if error.position is None:
                    raise
                completed = producer_update.take_completed(self._state)
                path = None if self._segment is None else self._segment.log
                error.path = path
                self._report.add_error(rules.LOG_MARKER, path, error, expected="a batch that its producer may write")
                first_row = int(np.searchsorted(run.table.position, error.position)) + 1
            self._add(completed)

    def _add(self, completed: CompletedTransactions) -> None:
        try:
            aborted_transactions.step(self._aborted, completed)
        except CorruptIndexError:
            self._is_lost = True

    def _compare_snapshots(self, offset: int) -> None:
        """With the snapshots that were waiting for the state to come to `offset`."""
        while self._waiting and self._waiting[0] <= offset:
            waiting = self._waiting.pop(0)
            snapshot = self._snapshots[waiting]
            known_from = self._asked_from()
            if waiting < self._partition.files.segments[0].base_offset or snapshot is None or self._has_damage():
                continue
            for expected, found in differences(self._state, snapshot, waiting, known_from):
                self._report.add(
                    rules.SNAPSHOT_STATE,
                    self._partition.files.producer_snapshots[waiting],
                    expected=expected,
                    found=found,
                    offset=waiting,
                )

    def _compare_transactions(self, path: str, entries: Int64Array, *, is_growing: bool) -> None:
        """Aborted transactions of one segment, by the offset of the marker, which no two have in common."""
        by_marker = {entry[2]: entry for entry in entries.tolist()}
        for entry in self._aborted.entries.tolist():
            found = by_marker.pop(entry[2], None)
            if not _is_same(entry, found, self._asked_from()) and not (found is None and is_growing):
                self._tell_transaction(path, _entry_text(entry), "none" if found is None else _entry_text(found), entry)
        for entry in by_marker.values():
            if entry[1] >= self._asked_from() and entry[2] < self._end_offset:
                self._tell_transaction(path, "no aborted transaction", _entry_text(entry), entry)
        if (np.diff(entries[:, 2]) <= 0).any():
            self._report.add(
                rules.TRANSACTION_INDEX, path, expected="ascending last offsets", found=entries[:, 2].tolist()
            )

    def _tell_transaction(self, path: str, expected: str, found: str, entry: list[int]) -> None:
        self._report.add(rules.TRANSACTION_INDEX, path, expected=expected, found=found, offset=entry[2])

    def _asked_from(self) -> int:
        """What was written from here on is all in the log."""
        return max(self._known_from, self._evidence.cleaned_up_to)

    def _has_damage(self) -> bool:
        return self._is_lost or self._evidence.has_damage

    def _read(self, path: str) -> ProducerSnapshot | None:
        try:
            return unless_gone(read_producer_snapshot, path)
        except CorruptSnapshotError as error:
            self._report.add_error(rules.SNAPSHOT_FORMAT, path, error, expected="a snapshot with its checksum")
            return None


def _is_same(entry: list[int], found: list[int] | None, known_from: int) -> bool:
    """Whether the file's entry is that of the log, as far as the log knows.

    Of what began below `known_from` a broker knows more than the log if it has been running since, or less if it was
    started later; so the transaction may be in the file or not, and hold the last stable offset back or not.
    """
    if entry[1] < known_from:
        return found is None or found[0] == entry[0]
    if found is None or found[0] != entry[0]:
        return False
    is_first_right = found[1] == entry[1] or found[1] < known_from
    # a follower appends many batches at once, and counts a transaction that begins behind the marker (`updateTxnIndex`)
    is_behind = min(found[3], entry[3]) > entry[2]
    return is_first_right and (found[3] == entry[3] or is_behind or min(found[3], entry[3]) < known_from)


def _entry_text(entry: list[int]) -> str:
    return f"producerId {entry[0]}, firstOffset {entry[1]}, lastOffset {entry[2]}, lastStableOffset {entry[3]}"
