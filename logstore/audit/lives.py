"""The one matcher of coordinators' decisions and the markers in partitions.

A decision and its markers have producer id and epoch in common. With transaction version 2, and where a producer was
fenced, the epoch is of one transaction alone; before that a producer ends one after the other with the same epoch, so
that only their order can be compared.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..cached_property import cached_property
from ..columns.batch_table import BoolArray, Int64Array
from ..topics.transaction_state import PREPARED, TransactionState
from .cluster import Known
from .facts.coordinators import CoordinatorLog
from .facts.states import CoordinatorEntry
from .facts.transactions import NONE, TRANSACTIONS, PartitionTransaction, PartitionTransactions, Table
from .finding import Silence

TopicAndPartition = tuple[str, int]
_COMMITTED = (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)
EPOCH_BUMPING_VERSION = 2  # transaction.version whose markers carry the next epoch
Histories = Mapping[TopicAndPartition, PartitionTransactions]
ENDS = np.dtype([*TRANSACTIONS.descr, ("place", "i4")])  # of markers, with or without data
SLICE_SIZE = 125_000  # markers
_NO_ROWS = np.empty(0, np.int64)


class Mismatch(Enum):
    """How markers of a producer in a partition differ from the decisions of its coordinator."""

    MISSING = "missing"  # a decision has no marker
    DOUBLED = "doubled"  # a marker is there again
    CONTRADICTING = "contradicting"  # a marker says something else, or COMMIT that nobody decided
    UNEXPLAINED = "unexplained"  # an ABORT marker that nobody decided, and that ends nothing


class Discrepancy(NamedTuple):
    """The first difference between the decisions on a producer and its markers in a partition.

    Attributes:
        who: the producer, in words.
        decision: the decision that differs; None if the marker has none.
        end: the marker that differs, or the one behind the missing one; None behind the last.
        before: the marker before `end`.
        silence: why it may be no fault; None if nothing explains it.
    """

    mismatch: Mismatch
    place: TopicAndPartition
    who: str
    decision: CoordinatorEntry | None
    end: np.void | None
    before: np.void | None
    silence: Silence | None = None


class Lives:
    """The markers of all transactions in `histories` beside the decisions on them.

    Markers are read by slices of producers: a table of all would take as much memory as the histories.

    Attributes:
        places: the partitions, as tables of markers number them.
        uncompared: those where not all markers, or not all decisions on them, are on record; after `discrepancies`.
    """

    def __init__(self, histories: Histories, log: CoordinatorLog) -> None:
        self.histories, self.log = histories, log
        self.places = sorted(histories)
        self.uncompared = set[TopicAndPartition]()
        count = sum(len(one.table) + len(one.empty_markers) for one in histories.values())
        self._slice_count = count // SLICE_SIZE + 1
        self._last_slice: tuple[int, Table] | None = None

    @cached_property
    def discrepancies(self) -> list[Discrepancy]:
        """Compare markers with decisions, in order, where all of both are on record."""
        found = []
        for number in range(self._slice_count):
            decided = self._decided(number)
            ends = {
                (int(group[0]["producer_id"]), self.places[group[0]["place"]]): group
                for group in self._groups(number, "producer_id", "place")
            }
            for producer_id, place in sorted(decided.keys() | ends.keys()):
                here, one = ends.get((producer_id, place), np.empty(0, ENDS)), None
                if self.is_compared(producer_id, place):
                    one = self._discrepancy(producer_id, place, decided.get((producer_id, place), []), here)
                elif place in self.histories:
                    self.uncompared.add(place)
                found += [] if one is None else [one]
                if here.size and (one is None or one.silence is not None):
                    found += self._contradictions(producer_id, place, here)
        return found

    def _contradictions(self, producer_id: int, place: TopicAndPartition, ends: Table) -> list[Discrepancy]:
        """Return the first marker that says another thing than a record of its transaction, whatever else is on record.

        With transaction version 2 an epoch is of one transaction. Before that the last one is known by its time, where
        one broker's clock gave all times.
        """
        log, ends = self.log, ends[has_data(ends)]
        last = log.entries([log.completed[producer_id]] if producer_id in log.completed else [])
        bumped = [
            entry
            for entry in [*last, *log.entries(log.decisions.get(producer_id, []))]
            if entry.metadata.client_transaction_version >= EPOCH_BUMPING_VERSION
        ]
        wrong = _against_epochs(bumped, ends)
        if self.histories[place].evidence.cluster.is_alone is Known.YES:
            wrong += [(entry, end) for entry in last for end in ends[_is_against(entry, ends)]]
        return [Discrepancy(Mismatch.CONTRADICTING, place, self._who(producer_id), *one, None) for one in wrong[:1]]

    def _decided(self, number: int) -> dict[tuple[int, TopicAndPartition], list[CoordinatorEntry]]:
        """Return the decisions on producers of a slice, oldest first, for each partition that they are about."""
        decided = defaultdict[tuple[int, TopicAndPartition], list[CoordinatorEntry]](list)
        for producer_id, rows in self.log.decisions.items():
            if producer_id % self._slice_count == number:
                for entry in self.log.entries(rows):
                    for place in entry.metadata.partitions:
                        decided[producer_id, place].append(entry)
        return decided

    def is_compared(self, producer_id: int, place: TopicAndPartition) -> bool:
        """Return whether all decisions on the producer and all its markers in the partition are on record."""
        history = self.histories.get(place)
        return history is not None and history.evidence.is_whole and self.log.knows_all_of(producer_id)

    def _discrepancy(
        self, producer_id: int, place: TopicAndPartition, decisions: list[CoordinatorEntry], ends: Table
    ) -> Discrepancy | None:
        ends = _without_administrators(ends, decisions)
        wanted, found = _decision_codes(decisions), _marker_codes(ends)
        if np.array_equal(wanted, found):
            return None
        first, silence = _equal_count(wanted, found), self._silence(producer_id, place, decisions, ends)
        who, before, decision, end = self._who(producer_id), None, None, None
        if len(wanted) > len(found):
            mismatch, first = Mismatch.MISSING, _unanswered_row(decisions, ends, first)
            decision, end = decisions[first], ends[first] if first < len(ends) else None
        elif len(wanted) == len(found):
            mismatch, decision, end = Mismatch.CONTRADICTING, decisions[first], ends[first]
        else:
            first = _surplus_row(decisions, ends, first)
            end, before = ends[first], ends[first - 1] if first else None
            mismatch = _surplus_mismatch(end, before, decisions[first] if first < len(decisions) else None)
        return Discrepancy(mismatch, place, who, decision, end, before, silence)

    def _silence(
        self, producer_id: int, place: TopicAndPartition, decisions: list[CoordinatorEntry], ends: Table
    ) -> Silence | None:
        """Return why decisions and markers that differ may be right; None if nothing explains it."""
        history, wanted, found = self.histories[place], _decision_codes(decisions), _marker_codes(ends)
        is_decided_before = any(entry.timestamp < history.born_ms for entry in decisions)
        if is_decided_before or (ends["marker_timestamp"] < self.log.born_ms).any():
            return Silence.MADE_AGAIN
        first = _equal_count(wanted, found)
        is_inside = first < min(len(wanted), len(found)) or _equal_count(wanted[:first:-1], found[:first:-1]) > 0
        last_ms = decisions[-1].timestamp if len(wanted) > len(found) else int(ends["marker_timestamp"][-1])
        is_known = is_inside or self._is_end_known(producer_id, history, last_ms)
        return None if is_known else Silence.UNSETTLED

    def _who(self, producer_id: int) -> str:
        owner = self.log.owners.get(producer_id)
        return f"{f'{owner}, ' if owner else ''}producer {producer_id}"

    def _is_end_known(self, producer_id: int, history: PartitionTransactions, last_ms: int) -> bool:
        """Return whether neither log can have more: copies may be of different moments, and markers on their way."""
        owner = self.log.owner(producer_id)
        is_ending = owner is not None and owner[1].metadata.state in PREPARED
        partition, cluster = history.partition, history.evidence.cluster
        is_settled = last_ms < history.settled_ms and cluster.is_in_sync(*partition.key) is Known.YES
        return is_settled and not is_ending and not history.is_open(producer_id)

    def falling_epochs(self) -> Iterator[tuple[np.void, np.void]]:
        """Yield each marker with the next of its producer and partition, if that has a lower coordinator epoch."""
        for number in range(self._slice_count):
            ends = self._slice(number)
            order = np.lexsort([ends[name] for name in ("marker_offset", "place", "producer_id")])
            epochs = ends["coordinator_epoch"][order]
            is_back = epochs[1:] < epochs[:-1]
            for name in ("place", "producer_id"):
                column = ends[name][order]
                is_back &= column[1:] == column[:-1]
            for row in np.flatnonzero(is_back).tolist():
                yield ends[order[row]], ends[order[row + 1]]

    def groups(self, *names: str) -> Iterator[Table]:
        """Yield markers that have these columns in common, where there are several: columns of ENDS."""
        for number in range(self._slice_count):
            yield from self._groups(number, *names, size_min=2)

    def _groups(self, number: int, *names: str, size_min: int = 1) -> Iterator[Table]:
        ends = self._slice(number)
        ends = ends[np.lexsort([ends[name] for name in ("marker_offset", "place", *reversed(names))])]
        is_first = np.ones(ends.size, np.bool_)
        is_first[1:] = np.logical_or.reduce([ends[name][1:] != ends[name][:-1] for name in names])
        bounds = np.append(np.flatnonzero(is_first), ends.size)
        for group in np.flatnonzero(np.diff(bounds) >= size_min).tolist():
            yield ends[bounds[group] : bounds[group + 1]]

    @cached_property
    def _slices(self) -> list[npt.NDArray[np.unsignedinteger[Any]]]:
        return [self.histories[place].slices(self._slice_count) for place in self.places]

    def _slice(self, number: int) -> Table:
        """Return the markers of every so many-th producer; the last slice is kept."""
        if self._last_slice is None or self._last_slice[0] != number:
            self._last_slice = None  # there is room for one
            rows = [np.flatnonzero(slices == number) if slices.size else _NO_ROWS for slices in self._slices]
            counts = list(map(len, rows))
            ends, start = np.empty(sum(counts), ENDS), 0
            columns = ends[list(PartitionTransaction._fields)]
            for place in np.flatnonzero(counts).tolist():  # most partitions have none
                for block in self.histories[self.places[place]].at(rows[place]):
                    columns[start : start + len(block)] = block
                    start += len(block)
            ends["place"] = np.repeat(np.arange(len(rows)), counts)
            self._last_slice = number, ends
        return self._last_slice[1]

    def has_unanswered(
        self, place: TopicAndPartition, transaction: PartitionTransaction, entries: list[CoordinatorEntry]
    ) -> bool:
        """Return whether a decision that names the partition has no marker, which the open `transaction` waits for.

        One of the `entries` that was made after the transaction's data was written would have ended it; of others there
        may be more than markers of their epochs.
        """
        history = self.histories[place]
        decisions = [one for one in entries if one.metadata.state in PREPARED and place in one.metadata.partitions]
        written_ms, _ = history.times.written_by(transaction.last_offset)
        if any(one.timestamp > written_ms for one in decisions):
            return True
        born_ms = history.born_ms if history.born_ms <= written_ms else 0  # by a producer's clock that is ahead
        counted = [one.metadata for one in decisions if one.timestamp >= born_ms]
        counts = Counter((one.producer_id, one.producer_epoch) for one in counted)
        return any(count > _count(history, *one) for one, count in counts.items())


def _count(history: PartitionTransactions, producer_id: int, epoch: int) -> int:
    """Return how many markers of this epoch a producer has."""
    return len(history.markers(lambda rows: (rows["producer_id"] == producer_id) & (rows["marker_epoch"] == epoch)))


def _decision_codes(decisions: Sequence[CoordinatorEntry]) -> Int64Array:
    """Return a number for each decision: twice its epoch, and 1 for a commit."""
    found = [one.metadata.producer_epoch * 2 + (one.metadata.state in _COMMITTED) for one in decisions]
    return np.array(found, np.int64)


def _marker_codes(ends: Table) -> Int64Array:
    """Return the same number for each marker."""
    found: Int64Array = ends["marker_epoch"].astype(np.int64) * 2 + ends["is_commit"]
    return found


def _without_administrators(ends: Table, decisions: list[CoordinatorEntry]) -> Table:
    """Leave out ABORT markers that an administrator may have written to end a transaction that hung."""
    while len(ends) > len(decisions):
        first = _equal_count(_decision_codes(decisions), _marker_codes(ends))
        decision = decisions[first] if first < len(decisions) else None
        if ends["is_commit"][first] or not has_data(ends[first]) or _is_within(ends[first], decision):
            break
        ends = np.delete(ends, first)
    return ends


def _is_within(end: np.void, decision: CoordinatorEntry | None) -> bool:
    """Return whether the marker was written while the transaction of a later decision was open."""
    return decision is not None and bool(
        decision.metadata.start_timestamp_ms <= end["marker_timestamp"] < decision.timestamp
    )


def _against_epochs(entries: list[CoordinatorEntry], ends: Table) -> list[tuple[CoordinatorEntry, np.void]]:
    """Return records with markers of the same epoch, of no other transaction, that say another thing."""
    by_epoch = {entry.metadata.producer_epoch: entry for entry in entries}
    for is_commit in (True, False):
        epochs = [epoch for epoch, entry in by_epoch.items() if (entry.metadata.state in _COMMITTED) is is_commit]
        is_wrong = is_of_one(ends) & (ends["is_commit"] != is_commit) & np.isin(ends["marker_epoch"], epochs)
        if is_wrong.any():
            return [(by_epoch[int(end["marker_epoch"])], end) for end in ends[is_wrong]]
    return []


def _is_against(entry: CoordinatorEntry, ends: Table) -> BoolArray:
    """Return which markers were written within the transaction that ended with `entry`, and say another thing."""
    metadata, times = entry.metadata, ends["marker_timestamp"]
    is_within = (metadata.start_timestamp_ms < times) & (times <= entry.timestamp)
    is_within &= ends["marker_epoch"] == metadata.producer_epoch
    found: BoolArray = is_within & (ends["is_commit"] != (metadata.state in _COMMITTED))
    return found


def _equal_count(one: Int64Array, other: Int64Array) -> int:
    """Return how many elements are equal, from the first on."""
    count = min(one.size, other.size)
    different = np.flatnonzero(one[:count] != other[:count])
    return int(different[0]) if different.size else count


def _surplus_mismatch(end: np.void, before: np.void | None, decision: CoordinatorEntry | None) -> Mismatch:
    """Classify a marker that nobody decided; `decision` is the next one."""
    if before is not None and before["marker_epoch"] == end["marker_epoch"] and not has_data(end):
        return Mismatch.DOUBLED if before["is_commit"] == end["is_commit"] else Mismatch.CONTRADICTING
    is_against = decision is not None and decision.metadata.state in _COMMITTED and has_data(end)
    return Mismatch.CONTRADICTING if end["is_commit"] or is_against else Mismatch.UNEXPLAINED


def _surplus_row(decisions: list[CoordinatorEntry], ends: Table, last: int) -> int:
    """Return which of equal markers up to `last` is surplus: one written before its decision, or one without data.

    Clocks of brokers may differ, so the place may be wrong; that one is surplus is not.
    """
    codes, first = _marker_codes(ends[: last + 1]), last
    while first and codes[first - 1] == codes[last]:
        first -= 1
    run = range(first, last + 1)
    early = (row for row in run if row < len(decisions) and ends["marker_timestamp"][row] < decisions[row].timestamp)
    without_data = (row for row in run if not has_data(ends[row]))
    return next(early, next(without_data, last))


def _unanswered_row(decisions: list[CoordinatorEntry], ends: Table, last: int) -> int:
    """Return which of equal decisions up to `last` has no marker: by time, the next marker is that of the next."""
    decided, first = _decision_codes(decisions[: last + 1]), last
    while (
        first
        and decided[first - 1] == decided[last]
        and ends["marker_timestamp"][first - 1] >= decisions[first].timestamp
    ):
        first -= 1
    return first


def has_data(ends: Any) -> Any:
    """Return which markers end data; others have none before them."""
    return ends["first_offset"] != NONE


def is_of_one(ends: Any) -> Any:
    """Return which markers have an epoch of their own, which no other transaction of the producer shares."""
    return ends["marker_epoch"] > ends["producer_epoch"]
