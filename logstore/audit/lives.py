"""The one matcher of what coordinators decided and the markers that partitions have.

A decision and its markers have producer id and epoch in common. With transaction version 2, and where a producer was
fenced, the epoch is of one transaction alone; before that a producer ends one after the other with the same epoch, so
that only their numbers can be compared.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from .facts.coordinators import PREPARED, CoordinatorEntry, CoordinatorLog
from .facts.transactions import NONE, PartitionTransactions, Table

TopicAndPartition = tuple[str, int]
Histories = Mapping[TopicAndPartition, PartitionTransactions]
_ENDS = np.dtype(
    [
        *(("producer_id", "i8"), ("epoch", "i2"), ("place", "i4"), ("offset", "i8")),
        *(("is_commit", "?"), ("has_data", "?"), ("is_of_one", "?")),
    ]
)


class Lives:
    """The markers of all transactions in `histories` beside the decisions on them.

    Attributes:
        ends: markers by producer id, epoch, partition and offset. `has_data`: they end a transaction; `is_of_one`:
            their epoch is that of this transaction alone. `place` is a number in `places`.
        decisions: on a producer with one epoch in one partition: the transactional id, and the entries of its
            coordinator that name the partition, by offset.
    """

    def __init__(self, histories: Histories, log: CoordinatorLog) -> None:
        self.histories, self.log = histories, log
        self.places = sorted(histories)
        self.ends = np.concatenate(
            [np.empty(0, _ENDS), *(_ends(histories[place], number) for number, place in enumerate(self.places))]
        )
        self.ends = self.ends[np.lexsort([self.ends[name] for name in ("offset", "place", "epoch", "producer_id")])]
        self._producer_ids = np.ascontiguousarray(self.ends["producer_id"])
        self.decisions: dict[tuple[int, int, TopicAndPartition], tuple[str, list[CoordinatorEntry]]] = {}
        for transactional_id, entries in log.history.items():
            for entry in entries:
                metadata = entry.metadata
                for place in metadata.partitions if metadata.state in PREPARED else ():
                    key = metadata.producer_id, metadata.producer_epoch, place
                    self.decisions.setdefault(key, (transactional_id, []))[1].append(entry)

    def groups(self, *names: str) -> Iterator[Table]:
        """Yield neighbours in `ends` that have these columns in common, where there are several."""
        ends = self.ends
        is_first = np.ones(ends.size, np.bool_)
        is_first[1:] = np.logical_or.reduce([ends[name][1:] != ends[name][:-1] for name in names])
        bounds = np.append(np.flatnonzero(is_first), ends.size)
        for group in np.flatnonzero(np.diff(bounds) > 1).tolist():
            yield ends[bounds[group] : bounds[group + 1]]

    def ends_of(self, place: TopicAndPartition, producer_id: int, epoch: int) -> Table:
        """Return the markers of a producer with one epoch in one partition, by offset."""
        number = self.places.index(place) if place in self.histories else NONE
        first, last = (np.searchsorted(self._producer_ids, producer_id, side=side) for side in ("left", "right"))
        found: Table = self.ends[first:last]
        is_wanted = (found["epoch"] == epoch) & (found["place"] == number)
        wanted: Table = found[is_wanted]
        return wanted

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
        return any(count > self.ends_of(place, *key).size for key, count in counts.items())


def _ends(history: PartitionTransactions, number: int) -> npt.NDArray[np.void]:
    table = history.table[history.table["marker_offset"] != NONE]
    found = np.zeros(table.size + history.empty_markers.size, _ENDS)
    found["place"] = number
    for part, markers in ((found[: table.size], table), (found[table.size :], history.empty_markers)):
        part["producer_id"], part["epoch"] = markers["producer_id"], markers["marker_epoch"]
        part["offset"], part["is_commit"] = markers["marker_offset"], markers["is_commit"]
    found["has_data"][: table.size] = True
    found["is_of_one"][: table.size] = table["marker_epoch"] > table["producer_epoch"]
    return found
