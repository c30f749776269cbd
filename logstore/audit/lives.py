"""The one matcher of what coordinators decided and the markers that partitions have.

A decision and its markers have producer id and epoch in common. With transaction version 2, and where a producer was
fenced, the epoch is of one transaction alone; before that a producer ends one after the other with the same epoch, so
that only their numbers can be compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ..topics.transaction_state import TransactionState
from .coordinator_log import PREPARED, CoordinatorEntry, CoordinatorLog
from .markers import Marker
from .partition_transactions import PartitionTransaction, PartitionTransactions

Place = tuple[str, int]  # topic and partition
Histories = Mapping[Place, PartitionTransactions]


class End(NamedTuple):
    """A marker in a partition, and the transaction that it ends; None if there was no data."""

    history: PartitionTransactions
    marker: Marker
    transaction: PartitionTransaction | None

    @property
    def is_of_one(self) -> bool:
        """Whether the marker's epoch belongs to its transaction alone."""
        return self.transaction is not None and self.transaction.has_own_epoch


class Life(NamedTuple):
    """All that there is of a producer with one epoch of its markers, in one partition.

    Attributes:
        decisions: of its coordinator that name the partition, by offset.
        ends: by offset.
        transactional_id: None if no coordinator's record at hand names it.
    """

    place: Place
    producer_id: int
    epoch: int
    transactional_id: str | None
    decisions: list[CoordinatorEntry]
    ends: list[End]

    @property
    def commit_decision_count(self) -> int:
        """How often it was decided to commit."""
        return sum(entry.metadata.state is TransactionState.PREPARE_COMMIT for entry in self.decisions)

    @property
    def commits(self) -> list[Marker]:
        """The COMMIT markers."""
        return [end.marker for end in self.ends if end.marker.is_commit]


class Lives:
    """The lives of all transactions in `histories`; iterates over them by producer id, epoch and partition."""

    def __init__(self, histories: Histories, log: CoordinatorLog) -> None:
        self.histories = histories
        self._lives: dict[tuple[int, int, Place], Life] = {}
        self._waiting = {
            (place, transaction.producer_id)
            for place, history in histories.items()
            for transaction in history.open_transactions
        }
        for transactional_id, entries in log.history.items():
            for entry in entries:
                metadata = entry.metadata
                if metadata.state in PREPARED:
                    for place in metadata.partitions:
                        life = self._life(metadata.producer_id, metadata.producer_epoch, place, transactional_id)
                        life.decisions.append(entry)
        for place, history in histories.items():
            ends = [End(history, one.marker, one) for one in history.transactions if one.marker is not None]
            ends += [End(history, marker, None) for marker in history.empty_markers]
            for end in sorted(ends, key=lambda end: end.marker.offset):
                marker = end.marker
                self._life(marker.producer_id, marker.producer_epoch, place, None).ends.append(end)

    def __iter__(self) -> Iterator[Life]:
        return (self._lives[key] for key in sorted(self._lives))

    def across_partitions(self) -> Iterator[list[Life]]:
        """Yield the lives of one producer and epoch, in all partitions."""
        found: dict[tuple[int, int], list[Life]] = defaultdict(list)
        for life in self:
            found[life.producer_id, life.epoch].append(life)
        yield from found.values()

    def is_open(self, place: Place, producer_id: int) -> bool:
        """Whether the producer has a transaction open there, which is a finding of its own if it should not have."""
        return (place, producer_id) in self._waiting

    def has_unanswered(self, place: Place, entries: list[CoordinatorEntry]) -> bool:
        """Whether more decisions than there are markers of their epochs name the partition.

        Args:
            entries: the decisions that count.
        """
        history = self.histories[place]
        counts: dict[tuple[int, int], int] = defaultdict(int)
        for entry in entries:
            metadata = entry.metadata
            if metadata.state in PREPARED and place in metadata.partitions and entry.timestamp >= history.born_ms:
                counts[metadata.producer_id, metadata.producer_epoch] += 1
        return any(count > len(self._life(*key, place, None).ends) for key, count in counts.items())

    def _life(self, producer_id: int, epoch: int, place: Place, transactional_id: str | None) -> Life:
        key = (producer_id, epoch, place)
        if key not in self._lives:
            self._lives[key] = Life(place, producer_id, epoch, transactional_id, [], [])
        return self._lives[key]
