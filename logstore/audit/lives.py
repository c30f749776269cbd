"""The one matcher of what coordinators decided and the markers that partitions have.

A decision and its markers have producer id and epoch in common. With transaction version 2, and where a producer was
fenced, the epoch is of one transaction alone; before that a producer ends one after the other with the same epoch, so
that only their order can be compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ..columns.batch_table import Int64Array
from ..topics.transaction_state import TransactionState
from .evidence import Known
from .facts.coordinators import PREPARED, CoordinatorLog
from .facts.states import CoordinatorEntry
from .facts.transactions import NONE, PartitionTransactions, Table

TopicAndPartition = tuple[str, int]
_COMMITTED = TransactionState.PREPARE_COMMIT
Histories = Mapping[TopicAndPartition, PartitionTransactions]
ENDS = np.dtype(  # of markers by producer id, epoch, partition and offset
    [
        *(("producer_id", "i8"), ("epoch", "i2"), ("place", "i4"), ("offset", "i8"), ("timestamp", "i8")),
        ("is_commit", "?"),
        ("has_data", "?"),  # it ends a transaction, which begins at `first_offset`
        ("is_of_one", "?"),  # its epoch is that of this transaction alone
        ("first_offset", "i8"),
    ]
)
SLICE_SIZE = 250_000  # markers
_BLOCK_SIZE = 100_000


class Mismatch(Enum):
    """How markers of a producer in a partition differ from the decisions of its coordinator."""

    MISSING = "missing"  # a decision has no marker
    DOUBLED = "doubled"  # a marker is there again
    CONTRADICTING = "contradicting"  # a marker says something else, or COMMIT that nobody decided
    UNEXPLAINED = "unexplained"  # an ABORT marker that nobody decided, and that ends nothing


class Discrepancy(NamedTuple):
    """Where the decisions on a producer and its markers in a partition differ for the first time.

    Attributes:
        who: the producer, in words.
        decision: the one that differs, None if there is none for the marker.
        end: the marker that differs, or of a decision that has none the next one; None behind the last.
        before: the marker before that.
    """

    mismatch: Mismatch
    place: TopicAndPartition
    who: str
    decision: CoordinatorEntry | None
    end: np.void | None
    before: np.void | None


class _Slice(NamedTuple):
    """Some producers' markers, sorted: columns of ENDS, and one of them in one piece."""

    number: int
    ends: Table
    producer_ids: Int64Array


class Lives:
    """The markers of all transactions in `histories` beside the decisions on them.

    Markers are looked at by slices of producers, as a table of all takes as much memory as the histories.

    Attributes:
        places: the partitions, as tables of markers number them.
    """

    def __init__(self, histories: Histories, log: CoordinatorLog) -> None:
        self.histories, self.log = histories, log
        self.places = sorted(histories)
        count = sum(len(one.table) + len(one.empty_markers) for one in histories.values())
        self._slice_count = count // SLICE_SIZE + 1
        self._last_slice: _Slice | None = None

    @cached_property
    def discrepancies(self) -> list[Discrepancy]:
        """Compare markers with decisions, in order, where all of both are on record."""
        found = []
        for number in range(self._slice_count):
            decided = self._decided(number)
            asked = set(decided)
            asked |= {(producer_id, self.places[place]) for producer_id, place in _pairs(self._slice(number).ends)}
            for producer_id, place in sorted(asked):
                one = self._discrepancy(producer_id, place, decided.get((producer_id, place), []))
                found += [] if one is None else [one]
        return found

    def _decided(self, number: int) -> dict[tuple[int, TopicAndPartition], list[CoordinatorEntry]]:
        """Return the decisions on producers of a slice, oldest first, for each partition that they are about."""
        decided = defaultdict[tuple[int, TopicAndPartition], list[CoordinatorEntry]](list)
        for producer_id in self.log.decisions:
            if producer_id % self._slice_count == number:
                for entry in self.log.decisions[producer_id]:
                    for place in entry.metadata.partitions:
                        decided[producer_id, place].append(entry)
        return decided

    def is_compared(self, producer_id: int, place: TopicAndPartition) -> bool:
        """Whether all decisions on the producer and all its markers in the partition are on record."""
        history = self.histories.get(place)
        return history is not None and history.evidence.is_whole and self.log.knows_all_of(producer_id)

    def _discrepancy(
        self, producer_id: int, place: TopicAndPartition, decisions: list[CoordinatorEntry]
    ) -> Discrepancy | None:
        history = self.histories.get(place)
        if history is None or not self.is_compared(producer_id, place):
            return None
        ends = _without_administrators(self.ends_of(place, producer_id), decisions)
        is_decided_before = any(entry.timestamp < history.born_ms for entry in decisions)
        if is_decided_before or (ends["timestamp"] < self.log.born_ms).any():
            return None  # some were of a topic of the same name that was deleted
        wanted, found = _decided(decisions), _told(ends)
        if np.array_equal(wanted, found):
            return None
        first = _equal_count(wanted, found)
        is_inside = first < min(len(wanted), len(found)) or _equal_count(wanted[:first:-1], found[:first:-1]) > 0
        last_ms = decisions[-1].timestamp if len(wanted) > len(found) else int(ends["timestamp"][-1])
        if not is_inside and not self._is_end_known(producer_id, history, last_ms):
            return None
        owner = self.log.owners.get(producer_id)
        who = f"{f'{owner}, ' if owner else ''}producer {producer_id}"
        if len(wanted) > len(found):
            first = _unmarked(decisions, ends, first)
            end = ends[first] if first < len(ends) else None
            return Discrepancy(Mismatch.MISSING, place, who, decisions[first], end, None)
        if len(wanted) == len(found):
            return Discrepancy(Mismatch.CONTRADICTING, place, who, decisions[first], ends[first], None)
        first = _unasked(decisions, ends, first)
        before = ends[first - 1] if first else None
        decision = decisions[first] if first < len(decisions) else None
        return Discrepancy(_too_many(ends[first], before, decision), place, who, None, ends[first], before)

    def _is_end_known(self, producer_id: int, history: PartitionTransactions, last_ms: int) -> bool:
        """Whether neither log can have more: they may be copies of different moments, and markers be on their way."""
        owner = self.log.owner(producer_id)
        is_ending = owner is not None and owner[1].metadata.state in PREPARED
        partition, cluster = history.partition, history.evidence.cluster
        is_settled = last_ms < cluster.settled_ms and cluster.is_in_sync(*partition.key) is Known.YES
        return is_settled and not is_ending and not history.is_open(producer_id)

    def groups(self, *names: str) -> Iterator[Table]:
        """Yield markers that have these columns in common, where there are several: columns of ENDS."""
        for number in range(self._slice_count):
            ends = self._slice(number).ends
            is_first = np.ones(ends.size, np.bool_)
            is_first[1:] = np.logical_or.reduce([ends[name][1:] != ends[name][:-1] for name in names])
            bounds = np.append(np.flatnonzero(is_first), ends.size)
            for group in np.flatnonzero(np.diff(bounds) > 1).tolist():
                yield ends[bounds[group] : bounds[group + 1]]

    def ends_of(self, place: TopicAndPartition, producer_id: int) -> Table:
        """Return the markers of a producer in one partition, by offset: columns of ENDS."""
        found = self._slice(producer_id % self._slice_count)
        first, last = (np.searchsorted(found.producer_ids, producer_id, side=side) for side in ("left", "right"))
        ends = found.ends[first:last]
        ends = ends[ends["place"] == (self.places.index(place) if place in self.histories else NONE)]
        by_offset: Table = ends[np.argsort(ends["offset"], kind="stable")]
        return by_offset

    def _slice(self, number: int) -> _Slice:
        """Return the markers of every so many-th producer; the last slice is kept."""
        if self._last_slice is None or self._last_slice.number != number:
            self._last_slice = None  # there is room for one
            parts = [
                _ends(self.histories[place], index, self._slice_count, number)
                for index, place in enumerate(self.places)
            ]
            ends = np.concatenate([np.empty(0, ENDS), *parts])
            ends = ends[np.lexsort([ends[name] for name in ("offset", "place", "epoch", "producer_id")])]
            self._last_slice = _Slice(number, ends, np.ascontiguousarray(ends["producer_id"]))
        return self._last_slice

    def has_unanswered(self, place: TopicAndPartition, entries: list[CoordinatorEntry]) -> bool:
        """Whether more decisions than there are markers of their epochs name the partition.

        Args:
            entries: the decisions that count.
        """
        born_ms = self.histories[place].born_ms
        counts: dict[tuple[int, int], int] = defaultdict(int)
        for entry in entries:
            metadata = entry.metadata
            if metadata.state in PREPARED and place in metadata.partitions and entry.timestamp >= born_ms:
                counts[metadata.producer_id, metadata.producer_epoch] += 1
        return any(
            count > np.count_nonzero(self.ends_of(place, producer_id)["epoch"] == epoch)
            for (producer_id, epoch), count in counts.items()
        )


def _decided(decisions: Sequence[CoordinatorEntry]) -> Int64Array:
    """Epoch, and whether it is a commit, of each in one number."""
    found = [one.metadata.producer_epoch * 2 + (one.metadata.state is _COMMITTED) for one in decisions]
    return np.array(found, np.int64)


def _told(ends: Table) -> Int64Array:
    """Return the same of each marker."""
    found: Int64Array = ends["epoch"].astype(np.int64) * 2 + ends["is_commit"]
    return found


def _without_administrators(ends: Table, decisions: list[CoordinatorEntry]) -> Table:
    """Leave out ABORT markers that `kafka-transactions.sh … abort` may have written, of a transaction that hung."""
    while len(ends) > len(decisions):
        first = _equal_count(_decided(decisions), _told(ends))
        decision = decisions[first] if first < len(decisions) else None
        if ends["is_commit"][first] or not ends["has_data"][first] or _is_within(ends[first], decision):
            break
        ends = np.delete(ends, first)
    return ends


def _is_within(end: np.void, decision: CoordinatorEntry | None) -> bool:
    """Whether the marker came while the transaction was open that the coordinator decided later."""
    return decision is not None and bool(decision.metadata.start_timestamp_ms <= end["timestamp"] < decision.timestamp)


def _equal_count(one: Int64Array, other: Int64Array) -> int:
    """How many are equal from the beginning on."""
    count = min(one.size, other.size)
    different = np.flatnonzero(one[:count] != other[:count])
    return int(different[0]) if different.size else count


def _too_many(end: np.void, before: np.void | None, decision: CoordinatorEntry | None) -> Mismatch:
    """What a marker is that nobody decided; `decision` is the next one."""
    if before is not None and before["epoch"] == end["epoch"] and not end["has_data"]:
        return Mismatch.DOUBLED if before["is_commit"] == end["is_commit"] else Mismatch.CONTRADICTING
    is_against = decision is not None and decision.metadata.state is _COMMITTED and end["has_data"]
    return Mismatch.CONTRADICTING if end["is_commit"] or is_against else Mismatch.UNEXPLAINED


def _unasked(decisions: list[CoordinatorEntry], ends: Table, last: int) -> int:
    """Which of equal markers up to `last` is one too many: one before its decision, by the time, or without data.

    Brokers of different clocks may err about the place, not about that one is too many.
    """
    told, first = _told(ends[: last + 1]), last
    while first and told[first - 1] == told[last]:
        first -= 1
    run = range(first, last + 1)
    early = (row for row in run if row < len(decisions) and ends["timestamp"][row] < decisions[row].timestamp)
    without_data = (row for row in run if not ends["has_data"][row])
    return next(early, next(without_data, last))


def _unmarked(decisions: list[CoordinatorEntry], ends: Table, last: int) -> int:
    """Which of equal decisions up to `last` has no marker: the one whose marker would be of the next, by the time."""
    decided, first = _decided(decisions[: last + 1]), last
    while first and decided[first - 1] == decided[last] and ends["timestamp"][first - 1] >= decisions[first].timestamp:
        first -= 1
    return first


def _pairs(ends: Table) -> Iterator[tuple[int, int]]:
    """Yield producer id and place of markers, each pair once."""
    ids, places = ends["producer_id"], ends["place"]
    order = np.lexsort((places, ids))
    ids, places = ids[order], places[order]
    is_first = np.ones(ids.size, np.bool_)
    is_first[1:] = (ids[1:] != ids[:-1]) | (places[1:] != places[:-1])
    return zip(ids[is_first].tolist(), places[is_first].tolist(), strict=True)


def _ends(history: PartitionTransactions, place: int, slice_count: int, number: int) -> Table:
    """Return the markers of every producer whose id leaves `number` when it is divided by `slice_count`."""
    table, empty = (_of_slice(table, slice_count, number) for table in (history.table, history.empty_markers))
    found = np.zeros(table.size + empty.size, ENDS)
    found["place"] = place
    for part, markers in ((found[: table.size], table), (found[table.size :], empty)):
        part["producer_id"], part["epoch"] = markers["producer_id"], markers["marker_epoch"]
        part["offset"], part["is_commit"] = markers["marker_offset"], markers["is_commit"]
        part["timestamp"] = markers["marker_timestamp"]
    found["has_data"][: table.size] = True
    found["is_of_one"][: table.size] = table["marker_epoch"] > table["producer_epoch"]
    found["first_offset"] = NONE
    found["first_offset"][: table.size] = table["first_offset"]
    return found


def _of_slice(table: Table, slice_count: int, number: int) -> Table:
    """Return the rows that have a marker and are of the slice, looked for by blocks: all ids at once take much room."""
    blocks = (table[first : first + _BLOCK_SIZE] for first in range(0, len(table), _BLOCK_SIZE))
    found = [
        block[(block["marker_offset"] != NONE) & (block["producer_id"] % slice_count == number)] for block in blocks
    ]
    return np.concatenate([table[:0], *found])
