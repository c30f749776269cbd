"""Keeps a consumer's partitions and its position in each (`SubscriptionState`, `OffsetFetcher`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import cast

from ...coordinator.groups.offsets import OffsetAndMetadata
from ...errors import (
    IllegalStateError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
    UnstableOffsetCommitError,
    UsageError,
)
from ...folds.leader_epochs import LeaderEpochs
from ...log.partition_log import PartitionLog
from ...model import FetchIsolation, TopicPartition
from ...store.data_directory import DataDirectory
from ...store.metadata.topics import TopicDescription
from ...store.read_only import ReadOnlyDirectory
from ...view.log_view import ReadableLog
from ...view.partition_reader import PartitionReader
from ..arguments import ILLEGAL_ARGUMENT
from .config import reset_duration_ms
from .subscription import SubscriptionState

EARLIEST, LATEST = "earliest", "latest"
_LOGGER = logging.getLogger("logstore")


class Positions:
    """Partitions of one consumer, each with the next offset to read; None if that is not known yet.

    Attributes:
        subscription: what the program asked for; the partitions follow from it.
        isolation: whether the consumer stops at the last stable offset or at the high watermark.
        paused: partitions that are skipped.
        change_count: counts changes other than handing records out, after which records read before are not valid.
        look_count: counts events other than appends that may give an idle partition something to read.
        is_beside_writer: another process writes the logs.
        sought: partitions that `seek` has moved since `Fetcher.collect` began.
    """

    def __init__(self, store: DataDirectory, isolation: FetchIsolation, reset_policy: str) -> None:
        self.subscription = SubscriptionState()
        self.isolation = isolation
        self.paused: set[TopicPartition] = set()
        self.change_count = self.look_count = 0
        self._known_for: int | None = None  # `look_count` for which all positions are known
        self.sought: set[TopicPartition] = set()
        self._store, self._reset_policy = store, reset_policy
        self.is_beside_writer = isinstance(store, ReadOnlyDirectory)
        self._positions: dict[TopicPartition, int | None] = {}
        self._topics: Mapping[str, TopicDescription] = {}  # the store's, when `reset_recreated_topics` last looked
        self._topic_ids: dict[TopicPartition, str | None] = {}  # topic to which each position belongs
        self._cut: dict[TopicPartition, OffsetOutOfRangeError] = {}
        self._begun: dict[TopicPartition, int] = {}  # positions that `auto.offset.reset` has chosen last
        self._epochs: dict[TopicPartition, LeaderEpochs] = {}  # of another process's log, at the last look

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._positions)

    def __contains__(self, partition: object) -> bool:
        return partition in self._positions

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions; those that were read before keep their positions."""
        self._changed()
        known = self._positions
        self._positions = {partition: known.get(partition) for partition in partitions}
        self.paused &= self._positions.keys()
        self._begun = {partition: offset for partition, offset in self._begun.items() if partition in self._positions}

    def get(self, partition: TopicPartition) -> int | None:
        """Return the next offset to read; None if it is not known yet, or the partition is not read."""
        return self._positions.get(partition)

    def seek(self, partition: TopicPartition, offset: int, leader_epoch: int | None = None) -> None:
        """Read on at an offset, in front of which is a record of the epoch; see `_in_log`.

        Raises UsageError if the offset is negative, IllegalStateError if the partition is not read.
        """
        if offset < 0:
            raise UsageError("seek offset must not be a negative number", java_class=ILLEGAL_ARGUMENT)
        self.require(partition)
        offset = self._in_log(partition, offset, leader_epoch)
        self._changed()
        self._note_topic_id(partition)
        self.sought.add(partition)
        self._positions[partition] = offset

    def seek_to(self, policy: str, partitions: Iterable[TopicPartition]) -> None:
        """Read on at the earliest or latest offset; raises IllegalStateError for a partition that is not read."""
        for partition in partitions:
            self.require(partition)
            self.seek(partition, self._bound(partition, policy))

    def pause(self, partitions: Iterable[TopicPartition], *, is_paused: bool) -> None:
        """Skip partitions, or stop skipping them; raises IllegalStateError for one that is not read."""
        wanted = set(partitions)
        for partition in wanted:
            self.require(partition)
        self._changed()
        self.paused = self.paused | wanted if is_paused else self.paused - wanted

    def require(self, partition: TopicPartition) -> None:
        """Raise IllegalStateError unless the partition is read."""
        if partition not in self._positions:
            raise IllegalStateError(f"No current assignment for partition {partition}")

    def unknown(self) -> list[TopicPartition]:
        """Return the partitions without a position."""
        if self._known_for == self.look_count:  # a position gets lost only with a change that counts
            return []
        unknown = [partition for partition, position in self._positions.items() if position is None]
        if not unknown:
            self._known_for = self.look_count
        return unknown

    def known(self) -> dict[TopicPartition, int]:
        """Return all known positions."""
        self.reset_recreated_topics()
        return {partition: position for partition, position in self._positions.items() if position is not None}

    def find(
        self, partitions: Iterable[TopicPartition], committed: Callable[[TopicPartition], OffsetAndMetadata | None]
    ) -> None:
        """Begin at the group's offset, else by `auto.offset.reset`; a partition with an unstable offset stays unknown.

        So does one whose log a crash cut below it, if `auto.offset.reset` is none; `log` then raises that.
        `committed` returns the group's offset or None, or raises UnstableOffsetCommitError. Raises as `reset`.
        """
        uncommitted = []
        for partition in partitions:
            self._note_topic_id(partition)
            self._cut.pop(partition, None)
            try:
                commit = committed(partition)
                offset = None if commit is None else self._in_log(partition, commit.offset, commit.leader_epoch)
            except UnstableOffsetCommitError:
                continue
            except OffsetOutOfRangeError as error:
                self._cut[partition] = error.with_traceback(None)  # its frames would keep a consumer that is dropped
                continue
            if offset is None:
                uncommitted.append(partition)
            else:
                self.look_count += 1
                self._advance(partition, offset)
        self.reset(uncommitted)

    def reset_recreated_topics(self) -> None:
        """Forget positions in topics that were deleted and created anew with the same name.

        `find` then determines them again (`Metadata.updateLatestMetadata`).
        """
        topics = self._store.topics
        if topics is self._topics:  # the store replaces the mapping with every change of a topic
            return
        self.look_count += 1
        for partition, position in self._positions.items():
            topic = topics.get(partition.topic)
            if position is None or topic is None or topic.topic_id == self._topic_ids.get(partition):
                continue
            _LOGGER.warning("Topic of %s was made anew: forgetting position %d in the old one", partition, position)
            self.change_count += 1
            self._positions[partition] = None
        self._topics = topics

    def log(self, partition: TopicPartition) -> PartitionLog | None:
        """Return the log of a partition; None if it is paused, or gone and assigned by a group.

        Raises UnknownTopicOrPartitionError if it is gone and the program assigned it; and as `find` says.
        """
        if partition in self.paused:
            return None
        if partition in self._cut and self._positions.get(partition) is None:
            raise self._cut[partition]
        try:
            return self._store.log(*partition)
        except UnknownTopicOrPartitionError as error:
            error.partitions = (partition,)
            if not self.subscription.is_shared:
                raise
            return None

    def followed(self, partition: TopicPartition, position: int, log: ReadableLog) -> int:
        """Return the position, or where another process has cut the log below it since the last look; see `_in_log`."""
        epochs = log.view().epochs
        before = self._epochs.get(partition, epochs)
        if before is not epochs:
            offset = self._in_log(partition, position, before.epoch_of(position - 1))
            if offset != position:
                self._changed()
                self._positions[partition] = position = offset
        self._epochs[partition] = epochs
        return position

    def advance_all(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Move behind what was handed out or skipped."""
        known = self._positions
        if not offsets.keys() <= known.keys():
            offsets = {partition: offset for partition, offset in offsets.items() if partition in known}
        known.update(offsets)

    def take_back(self, before: dict[TopicPartition, int | None]) -> None:
        """Return to the positions `before`, as an interrupt kept records from being handed out."""
        self._positions.update(before)
        self.look_count += 1

    def reset(self, partitions: Iterable[TopicPartition]) -> None:
        """Set positions by `auto.offset.reset`; raise NoOffsetForPartitionError if it is none.

        If a partition that no group assigned is gone, set the others, and raise UnknownTopicOrPartitionError.
        """
        wanted, gone = list(partitions), None
        if wanted and self._reset_policy == "none":
            names = ", ".join(map(str, wanted))
            text = f"Undefined offset with no reset policy for partitions: [{names}]"
            raise NoOffsetForPartitionError(text, partitions=tuple(wanted))
        for partition in wanted:
            self._note_topic_id(partition)
            try:
                offset = self._bound(partition, self._reset_policy)
            except UnknownTopicOrPartitionError as error:
                gone = error
                continue
            self._changed()
            self._begun[partition] = offset
            self._advance(partition, offset)
        if gone is not None and not self.subscription.is_shared:
            raise gone

    def begin_again(self, partition: TopicPartition) -> None:
        """Read on from where `auto.offset.reset` has begun in this partition; raises as `reset`."""
        if partition in self._begun:
            self.seek(partition, self._begun[partition])
        else:
            self.reset([partition])

    def out_of_range(self, partition: TopicPartition, position: int) -> None:
        """Set the position anew, as the log does not reach from or to it.

        Raises OffsetOutOfRangeError if `auto.offset.reset` is none.
        """
        if self._reset_policy == "none":
            log = self._store.log(*partition)
            raise OffsetOutOfRangeError(
                f"Fetch position {position} is out of range for partition {partition}",
                offset=position,
                partitions=(partition,),
                expected=f"{log.log_start_offset} to {self.isolation.end_offset(log)}",
                found=position,
                advice="seek, or set auto.offset.reset",
            )
        self.reset([partition])

    def _changed(self) -> None:
        self.change_count += 1
        self.look_count += 1

    def _bound(self, partition: TopicPartition, policy: str) -> int:
        log, duration_ms = self._store.log(*partition), reset_duration_ms(policy)
        if policy == EARLIEST:
            return log.log_start_offset
        if duration_ms is not None:
            found = log.offset_for_timestamp(max(self._store.now_ms() - duration_ms, 0), self.isolation)
            if found is not None:
                return found.offset
        return self.isolation.end_offset(log)

    def _advance(self, partition: TopicPartition, offset: int) -> None:
        if partition in self._positions:  # a rebalance may have taken it meanwhile
            self._positions[partition] = offset

    def _in_log(self, partition: TopicPartition, offset: int, leader_epoch: int | None) -> int:
        """Return an offset, or where a crash cut the log below it, as other records have it then (KIP-320).

        Nothing is known of it without the epoch of the record before it.
        Raises OffsetOutOfRangeError for a cut if `auto.offset.reset` is none (`LogTruncationException`).
        """
        end = None
        if leader_epoch is not None:
            with suppress(UnknownTopicOrPartitionError):  # the read raises it, in the turn of the partition
                log = self._store.log(*partition)
                if self.is_beside_writer and offset > log.high_watermark:
                    cast("PartitionReader", log).refresh()  # it may have been written since
                end = log.end_offset_of_epoch(leader_epoch)
        if end is None or end >= offset:
            return offset
        if self._reset_policy == "none":
            raise OffsetOutOfRangeError(
                f"Truncation detected for partition {partition} at offset {offset}",
                offset=offset,
                partitions=(partition,),
                expected=f"an offset up to {end}, where what was written in leader epoch {leader_epoch} ends",
                found=offset,
                advice="seek, or set auto.offset.reset",
            )
        text = "Truncation detected for partition %s at offset %d: reading on at %d, where the log was cut"
        _LOGGER.warning(text, partition, offset, end)
        return end

    def _note_topic_id(self, partition: TopicPartition) -> None:
        """Note the topic of the next position, before that is read: the topic may be created anew in between."""
        topic = self._store.topics.get(partition.topic)
        self._topic_ids[partition] = None if topic is None else topic.topic_id
        self._epochs.pop(partition, None)
