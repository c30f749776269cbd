"""The partitions that a consumer reads now, and up to where it has (`SubscriptionState`, `OffsetFetcher`)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping

from ..errors import (
    IllegalStateError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
    UsageError,
)
from ..model import FetchIsolation, TopicPartition
from ..store.internal_topic import log_or_none
from ..store.store import Store
from .fetching import end_offset
from .group_metadata import ILLEGAL_ARGUMENT

EARLIEST, LATEST = "earliest", "latest"
_LOGGER = logging.getLogger("logstore")


class Positions:
    """Of one consumer.

    Attributes:
        paused: partitions that are passed over.
        is_shared: a group says which partitions there are.
        change_count: incremented by every change that is not made by handing records out.
    """

    def __init__(self, store: Store, isolation: FetchIsolation, reset_policy: str) -> None:
        """`reset_policy`: `auto.offset.reset`."""
        self.paused: set[TopicPartition] = set()
        self.is_shared = False
        self.change_count = 0
        self._store, self._isolation, self._reset_policy = store, isolation, reset_policy
        self._positions: dict[TopicPartition, int | None] = {}
        self._topic_ids: dict[TopicPartition, str | None] = {}  # of the topic that a position is in

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._positions)

    def __contains__(self, partition: object) -> bool:
        return partition in self._positions

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these; those that were read already go on where they are."""
        self.change_count += 1
        known = self._positions
        self._positions = {one: known.get(one) for one in partitions}
        self.paused &= self._positions.keys()

    def get(self, partition: TopicPartition) -> int | None:
        """The next offset to be read; None if that is not known yet."""
        return self._positions[partition]

    def seek(self, partition: TopicPartition, offset: int | None) -> None:
        """Go on at an offset; None: where the group is, or `auto.offset.reset` says.

        Raises:
            UsageError: a negative offset.
            IllegalStateError: the partition is not read.
        """
        if offset is not None and offset < 0:
            raise UsageError("seek offset must not be a negative number", java_class=ILLEGAL_ARGUMENT)
        self.require(partition)
        self.change_count += 1
        self.note_topic_id(partition)
        self._positions[partition] = offset

    def pause(self, partitions: Iterable[TopicPartition], *, is_paused: bool) -> None:
        """Pass partitions over, or not any more; raises IllegalStateError for one that is not read."""
        wanted = set(partitions)
        for partition in wanted:
            self.require(partition)
        self.change_count += 1
        self.paused = self.paused | wanted if is_paused else self.paused - wanted

    def note_topic_id(self, partition: TopicPartition) -> None:
        """The topic that is there now is the one that the next position will be in; to be told before that is known."""
        self._topic_ids[partition] = self._topic_id(partition)

    def require(self, partition: TopicPartition) -> None:
        """Raise IllegalStateError unless the partition is read."""
        if partition not in self._positions:
            raise IllegalStateError(f"No current assignment for partition {partition}")

    def unknown(self) -> list[TopicPartition]:
        """The partitions without a position."""
        return [one for one, position in self._positions.items() if position is None]

    def known(self) -> dict[TopicPartition, int]:
        """All positions there are."""
        self.reset_recreated_topics()
        return {one: position for one, position in self._positions.items() if position is not None}

    def reset_recreated_topics(self) -> None:
        """A position in a topic that was deleted says nothing of the one that was made anew under its name.

        It is looked for again: where the group is, or `auto.offset.reset` says (`Metadata.updateLatestMetadata`).
        """
        for partition, position in self._positions.items():
            if position is None or self._topic_id(partition) in (None, self._topic_ids.get(partition)):
                continue
            _LOGGER.warning("Topic of %s was made anew: forgetting position %d in the old one", partition, position)
            self.change_count += 1
            self._positions[partition] = None

    def readable(self, moved: Mapping[TopicPartition, int]) -> list[TopicPartition]:
        """The partitions that are not paused and have something behind the position, or are out of range.

        Args:
            moved: positions that count in the place of those here.

        Raises:
            UnknownTopicOrPartitionError: one of them is gone; not for those of a group, which will share others.
        """
        self.reset_recreated_topics()
        found = []
        for partition, position in self._positions.items():
            if position is None or partition in self.paused:
                continue
            position = moved.get(partition, position)
            try:
                log = self._store.log(*partition)
            except UnknownTopicOrPartitionError:
                if not self.is_shared:
                    raise
                continue
            if position != end_offset(log, self._isolation) or position < log.log_start_offset:
                found.append(partition)
        return found

    @property
    def current(self) -> dict[TopicPartition, int | None]:
        """All positions, for `take_back`."""
        return self._positions

    def advance_all(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Everything below these was given, or is for nobody; in one step, which leaves `current` as it was."""
        if offsets:
            known = self._positions
            self._positions = known | {one: offset for one, offset in offsets.items() if one in known}

    def take_back(self, before: dict[TopicPartition, int | None]) -> None:
        """Go back to the positions `before` the last step: an interrupt came, and nothing was given."""
        self._positions = before

    def advance(self, partition: TopicPartition, offset: int) -> None:
        """Everything below was given, or is for nobody; the partition may be gone meanwhile."""
        if partition in self._positions:
            self._positions[partition] = offset

    def reset(self, partitions: Iterable[TopicPartition]) -> None:
        """Begin where `auto.offset.reset` says.

        Raises:
            NoOffsetForPartitionError: it says none.
            UnknownTopicOrPartitionError: one of them is gone; not for those of a group.
        """
        wanted = list(partitions)
        if wanted and self._reset_policy not in (EARLIEST, LATEST):
            names = ", ".join(map(str, wanted))
            raise NoOffsetForPartitionError(f"Undefined offset with no reset policy for partitions: [{names}]")
        for partition in wanted:
            self.note_topic_id(partition)
            self.change_count += 1
            try:
                self.advance(partition, self.bound(partition, self._reset_policy))
            except UnknownTopicOrPartitionError:
                if not self.is_shared:
                    raise

    def out_of_range(self, partition: TopicPartition, position: int) -> None:
        """Begin anew where the log does not have `position` any more, or not yet.

        Raises:
            OffsetOutOfRangeError: `auto.offset.reset` is none.
        """
        if self._reset_policy not in (EARLIEST, LATEST):
            log = self._store.log(*partition)
            raise OffsetOutOfRangeError(
                f"Fetch position {position} is out of range for partition {partition}",
                offset=position,
                expected=f"{log.log_start_offset} to {end_offset(log, self._isolation)}",
                found=position,
                advice="seek, or set auto.offset.reset",
            )
        self.reset([partition])

    def bound(self, partition: TopicPartition, policy: str) -> int:
        """The earliest or the latest offset of a partition."""
        log = self._store.log(*partition)
        return log.log_start_offset if policy == EARLIEST else end_offset(log, self._isolation)

    def _topic_id(self, partition: TopicPartition) -> str | None:
        log = log_or_none(self._store, *partition)
        return None if log is None else log.topic_id
