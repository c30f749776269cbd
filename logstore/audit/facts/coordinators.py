"""The content of `__transaction_state` and `__consumer_offsets` in a data directory (KIP-98, KIP-447, KIP-890).

The topics are compacted, so only some of the older records are left. A broker holds only some of their partitions.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from ...topics.partition_for import partition_for
from ...topics.transaction_state import IDLE, PREPARED, TransactionState
from .state_changes import COMPLETED, difference, difference_of_first
from .states import CoordinatorEntry, StateRecords
from .times import Times


class Misfit(NamedTuple):
    """A record that does not follow on the one before, if there is one: what was expected of it, and what it has."""

    before: CoordinatorEntry | None
    entry: CoordinatorEntry
    expected: str
    found: str


class CoordinatorLog:
    """The records of `__transaction_state` that are here.

    Attributes:
        history: the records of each transactional id, oldest first, as numbers for `entries`; none of forgotten ids.
        owners: from producer id to the transactional id that has, had, or will have it.
        decisions: the same on each producer id, also of transactional ids that were forgotten.
        completed: by producer id, the last record of a transaction that is over.
        misfits: records that cannot follow the one before of their transactional id.
        is_newer: a newer Kafka wrote it, whose records may follow on each other otherwise.
        is_complete: all partitions of the topic are here: no coordinator knows what they do not have.
        is_whole: complete, and no record was ever removed.
        bad_count: records that cannot be read, which may be decisions.
        has_damage: bytes of the topic are no good batch, and may have been decisions.
        times: of each partition that was read.
        born_ms: when the topic was made; earlier decisions are not in it.
    """

    def __init__(
        self,
        parts: Sequence[StateRecords] = (),
        whole_from: Mapping[int, int] | None = None,
        whole: Collection[int] = (),
        count: int | None = None,
    ) -> None:
        """Join the records of partitions of the topic.

        A transactional id in two of them, as where partitions were added to the topic, is as it is where its
        coordinator looks for it.

        Args:
            whole_from: by partition, the offset from which the only missing records are those that newer ones have
                replaced; 0 by default.
            whole: partitions that have every record that was ever written.
            count: of all partitions, if it is known.
        """
        self._parts, self._whole_from, self._whole = parts, whole_from or {}, whole
        self.history: dict[str, array[int]] = {}
        self.owners: dict[int, str] = {}
        self.decisions: dict[int, array[int]] = {}
        self.completed: dict[int, int] = {}
        self.misfits: list[Misfit] = []
        self.is_complete = self.is_whole = self.has_damage = self.is_newer = False
        self.bad_count = self.born_ms = 0
        self.times: dict[int, Times] = {}
        self._forgotten = set[int]()  # producer ids of transactional ids that were removed since
        self._last: dict[str, CoordinatorEntry] = {}
        self._known = defaultdict[str, set[int]](set)
        for number, part in enumerate(parts):
            for row, (transactional_id, entry) in enumerate(part):
                last = self._last.get(transactional_id)
                if last is None or last.partition == part.partition:
                    self._take(transactional_id, row * len(parts) + number, entry)
                elif count is None or partition_for(transactional_id, count) == part.partition:
                    del self._last[transactional_id], self.history[transactional_id]
                    self._take(transactional_id, row * len(parts) + number, entry)
                elif entry is not None:
                    self._note(transactional_id, row * len(parts) + number, None, entry)
        self._last.clear()
        self._known.clear()

    def _take(self, transactional_id: str, row: int, entry: CoordinatorEntry | None) -> None:
        """Add the next record of a transactional id."""
        before = self._last.pop(transactional_id, None)
        if entry is None:
            if before is not None and before.metadata.state not in IDLE and self._is_followed(before):
                found = "a tombstone, which forgets the transactional id"
                self.misfits.append(Misfit(before, before, "an end behind it", found))
            self.history.pop(transactional_id, None)
            self._forgotten |= self._known.pop(transactional_id, set())
        else:
            self._known[transactional_id].add(entry.metadata.producer_id)
            self._last[transactional_id] = entry
            self._add(transactional_id, row, before, entry)

    def _add(self, transactional_id: str, row: int, before: CoordinatorEntry | None, entry: CoordinatorEntry) -> None:
        metadata = entry.metadata
        found = None
        if before is not None and self._is_followed(before):
            found = difference(before.metadata, metadata)
        elif before is None and entry.partition in self._whole:
            found = difference_of_first(metadata)
        self.misfits += [] if found is None else [Misfit(before, entry, *found)]
        self.history.setdefault(transactional_id, array("q")).append(row)
        self._note(transactional_id, row, before, entry)

    def _note(self, transactional_id: str, row: int, before: CoordinatorEntry | None, entry: CoordinatorEntry) -> None:
        metadata = entry.metadata
        # one that could not be replicated is written again, and decides nothing more
        if metadata.state in PREPARED and (before is None or before.metadata.state is not metadata.state):
            self.decisions.setdefault(metadata.producer_id, array("q")).append(row)
        if metadata.state in COMPLETED:
            self.completed[metadata.producer_id] = row
        ids = metadata.producer_id, metadata.previous_producer_id, metadata.next_producer_id
        self.owners |= {producer_id: transactional_id for producer_id in ids if producer_id >= 0}

    def entries(self, rows: Iterable[int]) -> list[CoordinatorEntry]:
        """Return records by their numbers, which are never those of tombstones."""
        places = (divmod(row, len(self._parts)) for row in rows)
        return [entry for row, part in places if (entry := self._parts[part].record(row)[1]) is not None]

    def knows_all_of(self, producer_id: int) -> bool:
        """Return whether every decision on the producer is on record.

        It is if no record was ever removed, or if the transactional id has its first record and all behind it; the
        cleaner removes the records of an id that was forgotten.
        """
        rows = self.history.get(self.owners.get(producer_id, ""))
        if not rows or self.bad_count or self.is_whole or producer_id in self._forgotten:
            return self.is_whole and not self.bad_count
        (entry,) = self.entries(rows[:1])
        first = entry.metadata
        return (
            self._is_followed(entry)
            and first.state is TransactionState.EMPTY
            and first.start_timestamp_ms < 0
            and first.producer_epoch == 0
        )

    def _is_followed(self, entry: CoordinatorEntry) -> bool:
        """Return whether no record behind it is missing."""
        return entry.offset >= self._whole_from.get(entry.partition, 0)

    def owner(self, producer_id: int) -> tuple[str, CoordinatorEntry] | None:
        """Return the transactional id that has the producer id, and its last record; None without one."""
        transactional_id = self.owners.get(producer_id, "")
        rows = self.history.get(transactional_id)
        return (transactional_id, self.entries(rows[-1:])[0]) if rows else None


class Commit(NamedTuple):
    """A committed offset of a group in a partition of a topic.

    Attributes:
        offset: the next one to read.
        producer_id: of the transaction that committed it; None without one.
        place: partition of `__consumer_offsets` and offset of the record in it.
        commit_timestamp: ms.
    """

    offset: int
    producer_id: int | None
    place: tuple[int, int]
    commit_timestamp: int


Target = tuple[str, str, int]  # group, topic, partition
GroupLog = dict[Target, list[Commit]]  # in the order in which they took effect
