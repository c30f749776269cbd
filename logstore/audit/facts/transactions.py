"""The transactions of one partition, by its own batches and markers: open ones, decided ones, markers without data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ...columns.batch_table import BoolArray, Int64Array
from ...errors import LogstoreError
from ...folds.transaction_marker import read_marker, usual_markers
from ...layout.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG
from ...model import ControlRecordType
from ...view.walk import Damage
from ..cluster import MINUTE_MS, NEVER
from ..evidence import AuditedBatches, Evidence, Follower
from .times import Times

NONE = -1
_BLOCK_SIZE = 100_000
Table = npt.NDArray[np.void]


class PartitionTransaction(NamedTuple):
    """The part of a transaction that is in one partition: a row of TRANSACTIONS.

    Attributes:
        producer_epoch: of its last data; its marker may have the next one.
        first_offset, last_offset: of its data.
        first_timestamp, last_timestamp: ms, of its first and last batch.
        record_count: of its batches, without records that the cleaner took.
        marker_offset: -1 while it is open; the other fields of the marker mean nothing then.
        earlier_epoch: of data before that of `producer_epoch`, with no marker between; -1 without such data.
    """

    producer_id: int
    producer_epoch: int
    first_offset: int
    last_offset: int
    first_timestamp: int
    last_timestamp: int
    record_count: int
    marker_offset: int = NONE
    marker_epoch: int = NONE
    coordinator_epoch: int = NONE
    is_commit: bool = False
    marker_timestamp: int = NONE
    earlier_epoch: int = NONE

    @property
    def is_open(self) -> bool:
        """Whether it has no marker."""
        return self.marker_offset == NONE

    @property
    def outcome(self) -> str:
        """In words."""
        return "open" if self.is_open else "committed" if self.is_commit else "aborted"

    @property
    def end_timestamp(self) -> int:
        """Timestamp of its marker, or of its last batch, ms; not below that of its first batch."""
        return max(self.last_timestamp if self.is_open else self.marker_timestamp, self.first_timestamp)


TRANSACTIONS = np.dtype(
    {
        "names": PartitionTransaction._fields,
        "formats": ["i8", "i2", *["i8"] * 6, "i2", "i4", "?", "i8", "i2"],
    }
)
_OF_MARKER = ["marker_offset", "marker_epoch", "coordinator_epoch", "is_commit", "marker_timestamp"]


class PartitionTransactions(Follower):
    """Collects the transactions of a partition.

    Attributes:
        evidence, partition: those of the pass.
        empty_markers: of producers that had no data open, by offset; columns of TRANSACTIONS, first_offset -1.
        times: those of the log, if they follow the pass too.
        open_before: first offset of the earliest open transaction that began before the pass; None without one.
    """

    def __init__(self, evidence: Evidence) -> None:
        self.evidence, self.partition = evidence, evidence.partition
        self.empty_markers: Table = np.empty(0, TRANSACTIONS)
        self.times = Times(evidence.partition)
        self.open_before: int | None = None
        self._damage_offset = -1
        self._emptied: dict[int, int] = {}  # from producer id to the offset of its last marker without a record
        self._count = 0
        self._rows: Table = np.empty(16, TRANSACTIONS)
        self._open: dict[int, int] = {}  # from producer id to number

    @property
    def table(self) -> Table:
        """All transactions by number; columns of TRANSACTIONS, marker_offset -1 for an open one."""
        return self._rows[: self._count]

    @property
    def transactions(self) -> list[PartitionTransaction]:
        """Decided ones by the offset of their marker, then open ones by their first offset."""
        offsets = self.table["marker_offset"]
        order = np.lexsort((self.table["first_offset"], offsets, offsets == NONE))
        return list(map(PartitionTransaction._make, self.table[order].tolist()))

    def last(self, count: int) -> list[PartitionTransaction]:
        """Return transactions that tell their time: open ones, before them those that ended last; at most `count`."""
        kept = self.table[:0]
        for first in range(0, self._count, _BLOCK_SIZE):
            block = self.table[first : first + _BLOCK_SIZE]
            kept = np.concatenate([kept, block[block["first_timestamp"] >= 0]])
            is_open = kept["marker_offset"] == NONE
            ended = np.maximum(kept["marker_timestamp"], kept["first_timestamp"])
            kept = kept[np.lexsort((np.where(is_open, -kept["first_timestamp"], ended), is_open))[-count:]]
        return list(map(PartitionTransaction._make, kept.tolist()))

    @property
    def open_transactions(self) -> list[PartitionTransaction]:
        """Open ones by first offset; read_committed ends at the first of them."""
        if not self._open:
            return []
        found = self.table[np.array(list(self._open.values()), np.int64)]
        return list(map(PartitionTransaction._make, found[np.argsort(found["first_offset"])].tolist()))

    @property
    def log_end_offset(self) -> int:
        """The end of the log; exclusive."""
        return self.evidence.log_end_offset

    @property
    def last_stable_offset(self) -> int:
        """The end of read_committed when all is replicated; exclusive (`UnifiedLog.lastStableOffset`)."""
        begun = [one.first_offset for one in self.open_transactions[:1]]
        begun += [] if self.open_before is None else [self.open_before]
        return max(min(begun), self.partition.first_offset) if begun else self.log_end_offset

    @property
    def born_ms(self) -> int:
        """When this topic was made, or what is left of it was written; earlier events left no marker here.

        A producer's clock may be behind or ahead of the brokers' that decide: it counts only where nothing else tells.
        """
        created_ms, times = self.evidence.cluster.created_ms(self.partition.files.topic), self.times
        if self.evidence.is_whole:
            return created_ms or min(times.smallest_timestamp, times.smallest_stamp)
        return max(created_ms, times.smallest_stamp)

    @property
    def settled_ms(self) -> int:
        """The time up to which this log and its coordinators' agree: those are read later, perhaps by many minutes."""
        settled_ms = self.evidence.cluster.settled_ms
        return settled_ms if settled_ms == NEVER else min(settled_ms, self.times.begun_ms - MINUTE_MS)

    @property
    def largest_timestamp(self) -> int:
        """Of all batches, by whatever clock, ms; -1 without one."""
        return max((one.largest_timestamp for one in self.times.segments), default=-1)

    def is_open(self, producer_id: int) -> bool:
        """Return whether the producer has an open transaction."""
        return producer_id in self._open

    def markers(self, is_wanted: Callable[[Table], BoolArray]) -> Table:
        """Return those markers, with data before them and without; asked by blocks, as one column takes much room."""
        if not self._count + self.empty_markers.size:
            return self.table
        found = (block[(block["marker_offset"] != NONE) & is_wanted(block)] for block in self._blocks())
        return np.concatenate([self.table[:0], *found])

    def _blocks(self) -> Iterator[Table]:
        """Yield the rows of `table`, and of `empty_markers` behind it, some at once."""
        for table in (self.table, self.empty_markers):
            for first in range(0, len(table), _BLOCK_SIZE):
                yield table[first : first + _BLOCK_SIZE]

    def slices(self, count: int) -> npt.NDArray[np.unsignedinteger[Any]]:
        """Return to which of `count` slices the producer of each row belongs, of `empty_markers` behind `table`.

        `count` stands for an open transaction. The column is small, as each slice is searched for in it.
        """
        found = np.empty(self._count + self.empty_markers.size, np.min_scalar_type(count))
        start = 0
        for block in self._blocks():
            is_open = block["marker_offset"] == NONE
            found[start : start + len(block)] = np.where(is_open, count, block["producer_id"] % count)
            start += len(block)
        return found

    def at(self, rows: Int64Array) -> Iterator[Table]:
        """Yield rows (ascending) of `table`, and of `empty_markers` behind it, some at once."""
        end = int(np.searchsorted(rows, self._count))
        for table, chosen in ((self.table, rows[:end]), (self.empty_markers, rows[end:] - self._count)):
            for first in range(0, chosen.size, _BLOCK_SIZE):
                yield table[chosen[first : first + _BLOCK_SIZE]]

    def may_be_ended(self, transaction: PartitionTransaction) -> bool:
        """Return whether damaged bytes may have held a marker of the open `transaction`."""
        return self._damage_offset > transaction.first_offset

    def is_marker_cleaned(self, transaction: PartitionTransaction) -> bool:
        """Return whether the leader's cleaner took the marker of the open `transaction` before it was fetched.

        It leaves an empty batch, which ends nothing (`ProducerAppendInfo.append`): on the leader the data went first.
        """
        return self._emptied.get(transaction.producer_id, NONE) > transaction.last_offset

    def skip(self, piece: Damage) -> None:
        """Note damage, in which a marker may have been; data in it is in no transaction."""
        if self.evidence.may_hide_batches(piece):
            self._damage_offset = self.log_end_offset

    def step(self, batches: AuditedBatches) -> None:
        """Add batches, and number the transaction of each that has data."""
        table = batches.table
        self._take_emptied(batches)
        data_rows, (marker_rows, markers) = np.flatnonzero(batches.is_transactional), read_markers(batches)
        rows = np.concatenate([data_rows, marker_rows])
        if not rows.size:
            return
        order = np.lexsort((rows, table.producer_id[rows]))
        rows, is_marker = rows[order], order >= data_rows.size
        ids = table.producer_id[rows]
        is_first = np.concatenate([[True], (ids[1:] != ids[:-1]) | is_marker[:-1]])
        firsts = np.flatnonzero(is_first)
        lasts = np.append(firsts[1:], rows.size) - 1
        numbers = self._numbers(batches, ids[firsts], rows[firsts], ~is_marker[firsts])
        has_data = ~is_marker[firsts]
        last_data = lasts - is_marker[lasts]
        counts = np.cumsum(np.where(is_marker, 0, table.record_count[rows]))
        counts = counts[lasts] - np.where(firsts > 0, counts[firsts - 1], 0)
        self._add_data(batches, numbers[has_data], rows[last_data[has_data]], counts[has_data])
        batches.transactions[rows[~is_marker]] = np.repeat(numbers, lasts - firsts + 1)[~is_marker]
        self._end(numbers, markers, np.where(is_marker[lasts], order[lasts] - data_rows.size, NONE))

    def _take_emptied(self, batches: AuditedBatches) -> None:
        table = batches.table
        emptied = np.flatnonzero((table.record_count == 0) & _is_of_marker(batches))
        self._emptied.update(zip(table.producer_id[emptied].tolist(), batches.base[emptied].tolist(), strict=True))

    def finish(self) -> None:
        """Free the unused rows."""
        self._resize(self._count)

    def _resize(self, count: int) -> None:
        """Make the table one of `count` rows: the same memory, of which there is not enough for two."""
        try:
            self._rows.resize(count)
        except ValueError:  # something else refers to the table, as a profiler does
            rows = np.zeros(count, TRANSACTIONS)
            rows[: self._count] = self._rows[: self._count]
            self._rows = rows

    def _numbers(self, batches: AuditedBatches, ids: Int64Array, rows: Int64Array, has_data: BoolArray) -> Int64Array:
        """Return the number of each group of a producer's batches up to its next marker; -1 for a marker alone.

        A new transaction begins with the first row of its group.
        """
        numbers = np.full(ids.size, NONE)
        is_first = np.concatenate([[True], ids[1:] != ids[:-1]])
        for index in np.flatnonzero(is_first).tolist():
            numbers[index] = self._open.pop(int(ids[index]), NONE)
        new = np.flatnonzero(has_data & (numbers == NONE))
        new = new[np.argsort(rows[new])]
        end = self._count + new.size
        if end > self._rows.size:
            self._resize(end + max(self._rows.size // 16, min(self._rows.size, _BLOCK_SIZE)))
        numbers[new] = np.arange(self._count, end)
        first, found = rows[new], np.zeros(new.size, TRANSACTIONS)
        found["producer_id"], found["producer_epoch"] = ids[new], batches.table.producer_epoch[first]
        found["first_offset"], found["first_timestamp"] = batches.base[first], batches.table.max_timestamp[first]
        found["earlier_epoch"] = found["marker_offset"] = NONE
        self._rows[self._count : end] = found
        self._count = end
        return numbers

    def _add_data(self, batches: AuditedBatches, numbers: Int64Array, last: Int64Array, counts: Int64Array) -> None:
        """Add data to transactions, each up to its last batch."""
        table, found = batches.table, self._rows[numbers]
        epoch = table.producer_epoch[last]
        is_other = (epoch != found["producer_epoch"]) & (found["last_offset"] >= self._damage_offset)
        if self._emptied:
            emptied = np.array([self._emptied.get(one, NONE) for one in found["producer_id"].tolist()], np.int64)
            is_other &= (emptied < found["last_offset"]) | (emptied > batches.base[last])
        found["earlier_epoch"] = np.where(is_other, found["producer_epoch"], found["earlier_epoch"])
        found["producer_epoch"] = epoch
        found["last_offset"], found["last_timestamp"] = batches.last[last], table.max_timestamp[last]
        found["record_count"] += counts
        self._rows[numbers] = found

    def _end(self, numbers: Int64Array, markers: Table, ends: Int64Array) -> None:
        """End transactions by the markers in `ends`; -1 leaves one open."""
        is_ended = (ends != NONE) & (numbers != NONE)
        for name in _OF_MARKER:
            self._rows[name][numbers[is_ended]] = markers[name][ends[is_ended]]
        for number in numbers[(ends == NONE) & (numbers != NONE)].tolist():
            self._open[int(self._rows["producer_id"][number])] = number
        empty = markers[np.sort(ends[(ends != NONE) & (numbers == NONE)])]
        if empty.size:
            self.empty_markers = np.concatenate([self.empty_markers, empty])


def _is_of_marker(batches: AuditedBatches) -> BoolArray:
    both = CONTROL_FLAG | TRANSACTIONAL_FLAG
    is_of_marker: BoolArray = batches.is_producers & (batches.table.attributes & both == both)
    return is_of_marker


def read_markers(batches: AuditedBatches) -> tuple[Int64Array, Table]:
    """Return the rows of markers, and columns of TRANSACTIONS without data.

    One that does not parse is left out, and breaks `log-marker`.
    """
    table, run = batches.table, batches.run
    rows = np.flatnonzero((table.record_count != 0) & _is_of_marker(batches))
    found = np.zeros(rows.size, TRANSACTIONS)
    found["first_offset"], found["marker_offset"] = NONE, batches.base[rows]
    found["producer_id"] = table.producer_id[rows]
    found["producer_epoch"] = found["marker_epoch"] = table.producer_epoch[rows]
    found["marker_timestamp"] = table.max_timestamp[rows]
    is_usual, kinds, found["coordinator_epoch"] = usual_markers(run.data, run.table, run.first_row + rows)
    found["is_commit"] = kinds == ControlRecordType.COMMIT
    is_good = np.ones(rows.size, np.bool_)
    for index in np.flatnonzero(~is_usual).tolist():
        try:
            marker = read_marker(run.data, run.table, run.first_row + int(rows[index]))
        except LogstoreError:
            is_good[index] = False
            continue
        found["is_commit"][index] = marker.type is ControlRecordType.COMMIT
        found["coordinator_epoch"][index] = marker.coordinator_epoch
        found["marker_timestamp"][index] = marker.timestamp
    return rows[is_good], found[is_good]
