"""`.txnindex` and `.snapshot` beside the producers of the log, by the folds that write them on recovery.

The state starts with the snapshot of the first segment; without one, what began before the log is not known, and not
judged. Neither is what the cleaner took: of compacted offsets a `.txnindex` may say more than the log, and a snapshot
less. A producer that is in no snapshot may have expired.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import NamedTuple, TypeVar

import numpy as np

from ...disk.directory import SegmentFiles
from ...disk.mapped import segment_size
from ...disk.side_files import read_producer_snapshot, read_transaction_index
from ...errors import CorruptIndexError, CorruptSnapshotError, DataDirectoryError, LogstoreError
from ...folds import aborted_transactions, producer_update
from ...folds.aborted_transactions import AbortedTransactions
from ...folds.producer_state import ProducerState
from ...layout.producer_snapshot import ProducerSnapshot, parse_producer_snapshot
from ...layout.transaction_index import ENTRY_SIZE, TransactionIndex
from ..cluster import Known
from ..evidence import AuditedBatches, Evidence, Follower
from ..finding import CLEANED, Broken, Rule, Silence, Where, unreadable
from ..partition import unless_gone
from .batches import ERROR, WARNING, log_marker

NONE = -1
T = TypeVar("T")

# what is not known of the log, which a broker may have known when it wrote the file
_UNKNOWN = (*CLEANED, Silence.BEFORE_START, Silence.DAMAGED)

transaction_index = Rule(
    "transaction-index",
    ERROR,
    "A `.txnindex` does not tell the aborted transactions that the log tells.",
    "read_committed consumers get aborted records, or miss committed ones: `logstore repair`",
    (*_UNKNOWN, Silence.GROWING, Silence.OPEN, Silence.FOLLOWED),
)
snapshot_format = Rule(
    "snapshot-format",
    WARNING,
    "A `.snapshot` does not parse.",
    "a broker deletes it and takes the one before: starts take longer",
    (Silence.OPEN,),
)
snapshot_state = Rule(
    "snapshot-state",
    ERROR,
    "A `.snapshot` does not hold the producers that the log had.",
    "duplicates may be taken, or good batches refused: delete it while the broker is down",
    (*_UNKNOWN, Silence.START_UNKNOWN, Silence.EXPIRED),
)
snapshot_missing = Rule(
    "snapshot-missing",
    WARNING,
    "A log has no `.snapshot` of its end, after a clean shutdown.",
    "with an older one a broker's next start takes longer; without any it forgets the producers and what they have "
    "open: delete `.kafka_cleanshutdown` so that it reads the log",
    (Silence.DAMAGED, Silence.BEFORE_START),
)


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


class Producers(Follower):
    """Steps a producer state by the batches, and compares it with the snapshot at each offset that has one."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence, self._partition = evidence, evidence.partition
        self._state = ProducerState(self._partition.name)
        self._waiting = dict[int, ProducerSnapshot]()  # snapshots that the state has not reached, by offset
        self._known_from = self._partition.first_offset  # the state knows what was written from here on
        self._aborted = AbortedTransactions()
        self._is_started = False  # a segment is there, maybe not the first that was listed
        self._is_lost = False  # it cannot be followed any more, as where offsets go back

    def start(self) -> Iterator[Broken]:
        for offset, path in self._partition.files.producer_snapshots.items():
            where = self._partition.where(path)
            try:
                snapshot = unless_gone(read_producer_snapshot, path)
                self._waiting |= {} if snapshot is None else {offset: snapshot}
            except DataDirectoryError as error:
                yield unreadable(error, where)
            except CorruptSnapshotError as error:
                # a broker may be killed between making the file and writing to it
                is_whole = self._partition.surroundings.was_closed or (unless_gone(segment_size, path) or 0) > 0
                broken = snapshot_format.by(error, where, "a snapshot with its checksum")
                yield broken if is_whole else broken._replace(silence=Silence.OPEN)
        self._evidence.snapshot_ids = {offset: one.producer_ids for offset, one in self._waiting.items()}

    def begin(self, segment: SegmentFiles) -> Iterator[Broken]:
        self._segment, self._aborted = segment, AbortedTransactions()
        if not self._is_started:
            self._is_started = True
            snapshot = self._waiting.pop(segment.base_offset, None)
            if snapshot is None:
                self._state.start_at(segment.base_offset)
            else:
                self._state.load(snapshot, segment.base_offset, None)
                self._known_from = min(self._known_from, segment.base_offset)
        return self._compare_snapshots(segment.base_offset)

    def step(self, batches: AuditedBatches) -> Iterator[Broken]:
        row, row_end = 0, batches.base.size
        while (offset := next(iter(self._waiting), None)) is not None and offset <= batches.base[-1]:
            stop = max(row, int(np.searchsorted(batches.base, offset)))
            yield from self._follow(batches, row, stop)
            row = stop
            yield from self._compare_snapshots(offset)
        yield from self._follow(batches, row, row_end)

    def end(self) -> Iterator[Broken]:
        path = self._segment.transaction_index
        if self._has_damage:
            self._evidence.note(transaction_index, Silence.DAMAGED, path is not None or self._aborted.entries.size > 0)
            return
        try:
            yield from self._compare_index(unless_gone(read_transaction_index, path))
        except (CorruptIndexError, DataDirectoryError) as error:
            yield transaction_index.by(error, self._partition.where(path), "entries of version 0")

    def finish(self) -> Iterator[Broken]:
        """Check the last snapshot, which a broker takes after a clean shutdown without reading the log."""
        partition, end_offset = self._partition, self._evidence.end_offset
        yield from self._compare_snapshots(end_offset)
        if not partition.surroundings.was_closed:
            return
        newest = max(partition.files.producer_snapshots, default=0)
        if self._has_damage:
            self._evidence.note(snapshot_missing, Silence.DAMAGED, newest < end_offset)
            return
        for offset in self._waiting:
            expected = f"a snapshot of an offset up to {end_offset}, where the log ends"
            yield snapshot_state.at(partition.where(partition.files.producer_snapshots[offset]), expected, offset)
        if newest >= end_offset:
            return
        if not newest and partition.first_offset >= end_offset:
            # Kafka takes none: a log start counts as the last snapshot (`ProducerStateManager`)
            self._evidence.note(snapshot_missing, Silence.BEFORE_START)
            return
        where, expected = partition.where(), f"a snapshot of offset {end_offset}, where the log was closed"
        if not newest and self._state.transactions.ongoing_count:
            first_offset, producer_id = self._state.transactions.ongoing_entries()[0].tolist()
            where = partition.where(offset=first_offset)
            expected = f"a snapshot with the open transaction of producer {producer_id}"
        yield snapshot_missing.at(where, expected, f"the newest of offset {newest}" if newest else "none")

    def _follow(self, batches: AuditedBatches, row: int, row_end: int) -> Iterator[Broken]:
        """Step by rows; tell of and skip one that cannot be followed."""
        run, row, row_end = batches.run, row + batches.run.first_row, row_end + batches.run.first_row
        while row < row_end and not self._is_lost:
            try:
                completed = producer_update.step(self._state, run.data, run.table, row, row_end)
                row = row_end
            except LogstoreError as error:
                completed = self._state.buffers.take_completed()
                error.path = batches.segment.log
                yield log_marker.by(error, self._partition.where(error.path), "a batch that its producer may write")
                if error.position is None:  # a broker does not go on behind it either
                    self._is_lost = True
                    return
                row = int(np.searchsorted(run.table.position, error.position)) + 1
            try:
                aborted_transactions.step(self._aborted, completed)
            except CorruptIndexError:
                self._is_lost = True

    def _compare_index(self, index: TransactionIndex | None) -> Iterator[Broken]:
        """Compare the entries of the segment's index with those that the log implies."""
        partition, evidence, segment = self._partition, self._evidence, self._segment
        path = segment.transaction_index or segment.log
        entries = AbortedTransactions() if index is None else AbortedTransactions.resume(index)
        is_equal = np.array_equal(entries.entries, self._aborted.entries)  # lists of a million entries take much room
        stored, expected = [{} if is_equal else _by_marker(rows) for rows in (entries, self._aborted)]
        is_unfinished = evidence.is_growing or partition.will_be_recovered(segment)
        last_marker = max(stored, default=NONE)
        for marker, entry, found in _differences(expected, stored):
            silence = self._silence_of_entry(entry, found)
            if is_unfinished and found is None and marker > last_marker:  # it is written after the batches
                silence = Silence.GROWING if evidence.is_growing else Silence.OPEN
            if entry is None and marker >= evidence.end_offset and not partition.surroundings.was_closed:
                silence = Silence.GROWING
            text = "no aborted transaction" if entry is None else _entry_text(entry)
            yield transaction_index.at(partition.where(path, offset=marker), text, _entry_text(found), silence)
        if index is not None and index.odd_size:
            # a broker does not see them, and writes behind them
            expected_size = f"a multiple of {ENTRY_SIZE} bytes"
            yield transaction_index.at(partition.where(path), expected_size, f"{index.odd_size} more")
        markers = entries.entries[:, 2]
        if (falls := np.flatnonzero(np.diff(markers) <= 0)).size:
            before, marker = markers[falls[0] : falls[0] + 2].tolist()
            where = partition.where(path, offset=marker)
            yield transaction_index.at(where, "ascending last offsets", f"{marker} behind {before}")

    def _silence_of_entry(self, entry: list[int] | None, found: list[int] | None) -> Silence | None:
        """Return why the file's entry may differ from that of the log; None if nothing explains it.

        Of transactions that began below `known_from` a broker knows more than the log if it has run since then, or less
        if it was started later. So such a one may be in the file or not, and may hold the last stable offset back or
        not.
        """
        known_from = self._asked_from
        unknown = self._unknown_below(known_from)
        if entry is None:
            return unknown if found is not None and 0 <= found[1] < known_from else None
        if entry[1] < known_from and (found is None or found[0] == entry[0]):
            return unknown
        if found is None or found[0] != entry[0] or not (found[1] == entry[1] or 0 <= found[1] < known_from):
            return None
        if found[3] == entry[3] or 0 <= min(found[3], entry[3]) < known_from:
            return unknown
        # a follower appends many batches at once, and counts a transaction that begins behind the marker
        # (`updateTxnIndex`); another replica may have been the leader
        may_have_followed = self._evidence.cluster.is_alone is not Known.YES
        return Silence.FOLLOWED if may_have_followed and min(found[3], entry[3]) > entry[2] else None

    def _unknown_below(self, offset: int) -> Silence:
        """Return why the log does not have all that was written below an offset."""
        evidence = self._evidence
        return evidence.cleaned if offset <= evidence.cleaned_up_to else Silence.BEFORE_START

    def _compare_snapshots(self, offset: int) -> Iterator[Broken]:
        """Compare the snapshots up to `offset`, which the state has reached."""
        for waiting in [one for one in self._waiting if one <= offset]:
            snapshot = self._waiting.pop(waiting)
            stored = _rows(snapshot)
            place = self._partition.where(self._partition.files.producer_snapshots[waiting], offset=waiting)
            if len(stored) < snapshot.producer_ids.size:
                yield snapshot_state.at(place, "each producer once", "one more than once")
            if self._has_damage:
                yield snapshot_state.not_asked(place, Silence.DAMAGED)
            elif not self._is_started or waiting < self._partition.base_offset:
                yield snapshot_state.not_asked(place, Silence.BEFORE_START)
            else:
                yield from self._compare_rows(place, waiting, stored)

    def _compare_rows(self, place: Where, offset: int, stored: dict[int, SnapshotRow]) -> Iterator[Broken]:
        """Compare the producers of a snapshot with those of the log; below `known_from` it may say more, or less."""
        may_begin_at = self._may_begin_at(stored, offset)
        known_from, unknown = self._asked_from, self._unknown_below(self._asked_from)
        if may_begin_at > known_from:
            known_from, unknown = may_begin_at, Silence.START_UNKNOWN
        live = _rows(parse_producer_snapshot(self._state.to_snapshot_bytes()))
        # not those of transactions: while one is open its producer stays, and a marker sets the timestamp alone
        survivors = [row for row in stored.values() if row.current_txn_first_offset == row.coordinator_epoch == NONE]
        for producer_id, row, found in _differences(live, stored):
            silence = None
            if row is None:
                silence = unknown if known_from and found is not None and found.last_offset < known_from else None
            elif known_from and row.last_offset < known_from:
                # the cleaner leaves the last batch of each producer, but neither its time nor markers (`filterTo`)
                is_wrong = found is not None and NONE != found.last_offset == row.last_offset and found[:4] != row[:4]
                silence = None if is_wrong else unknown
            elif found is not None:
                if found == self._row_of_older_kafka(producer_id, row):
                    continue
                silence = _silence_of_row(row, found, known_from, unknown)
            elif _may_have_expired(row, survivors):
                silence = Silence.EXPIRED
            expected = f"no producer {producer_id}" if row is None else row.text(producer_id)
            if row is not None or (found is not None and found.last_offset < offset):
                yield snapshot_state.at(place, expected, "none" if found is None else found.text(producer_id), silence)
        for producer_id, found in stored.items():
            if found.last_offset >= offset:
                yield snapshot_state.at(place, f"last offsets below {offset}", found.text(producer_id))

    def _row_of_older_kafka(self, producer_id: int, row: SnapshotRow) -> SnapshotRow:
        """Return the entry of Kafka 1.1, where a marker left the timestamp as it was; `row` if none was so old."""
        entry = self._state.get(producer_id)
        if entry is None or self._evidence.cluster.indexes_by_batch is Known.YES:
            return row
        return row._replace(timestamp=entry.batches[-1].timestamp if entry.batches else NONE)

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


def _differences(expected: Mapping[int, T], stored: Mapping[int, T]) -> Iterator[tuple[int, T | None, T | None]]:
    """Yield each key whose values differ, with both, None for one that is missing; those that are only stored last."""
    for key in (*expected, *(key for key in stored if key not in expected)):
        if (one := expected.get(key)) != (other := stored.get(key)):
            yield key, one, other


def _by_marker(aborted: AbortedTransactions) -> dict[int, list[int]]:
    return {entry[2]: entry for entry in aborted.entries.tolist()}  # no two have the same marker


def _entry_text(entry: list[int] | None) -> str:
    if entry is None:
        return "none"
    return f"producerId {entry[0]}, firstOffset {entry[1]}, lastOffset {entry[2]}, lastStableOffset {entry[3]}"


def _rows(snapshot: ProducerSnapshot) -> dict[int, SnapshotRow]:
    columns = [getattr(snapshot, column.name) for column in fields(snapshot) if column.name != "stored_crc"]
    return {producer_id: SnapshotRow(*row) for producer_id, *row in np.stack(columns, axis=1).tolist()}


def _silence_of_row(row: SnapshotRow, found: SnapshotRow, known_from: int, unknown: Silence) -> Silence | None:
    """Return why the log's row may differ from the snapshot's: one of them cannot know some fields; None if it can."""
    if NONE < row.current_txn_first_offset < known_from or NONE < found.current_txn_first_offset < known_from:
        row = row._replace(current_txn_first_offset=found.current_txn_first_offset)
    if known_from and row.coordinator_epoch < found.coordinator_epoch:  # of a marker that was cleaned away or cut off
        row = row._replace(coordinator_epoch=found.coordinator_epoch)
    if row == found:
        return unknown
    if found.coordinator_epoch == NONE:  # it came again after it had expired
        row = row._replace(coordinator_epoch=NONE)
    if found.last_offset == NONE:  # it came again with a marker
        row = row._replace(last_sequence=NONE, last_offset=NONE, offset_delta=0)
    return Silence.EXPIRED if row == found else None


def _may_have_expired(row: SnapshotRow, survivors: list[SnapshotRow]) -> bool:
    """Return whether a producer may have expired: not if a survivor's last write is older, in time and in the log."""
    if row.current_txn_first_offset != NONE:
        return False
    return not any(
        NONE < other.last_offset < row.last_offset and other.timestamp <= row.timestamp for other in survivors
    )
