"""Committed offsets of groups, and offsets in undecided transactions (`OffsetMetadataManager`).

A fold of the records of `__consumer_offsets`. A transactional commit waits for the marker of its producer id in the
same partition of the topic: COMMIT makes it the committed offset unless a later record has set another, ABORT drops it.
A tombstone removes an offset at once, also an undecided one.
"""

from __future__ import annotations

from typing import NamedTuple

from ..errors import SchemaError
from ..layout.batch import NO_PRODUCER_ID
from ..model import TopicPartition
from ..topics.consumer_offsets import CommittedOffset, OffsetKey, decode_key, decode_value
from .internal_topic import ControlBatch, ReplayedRecord


class ReplayedCommit(NamedTuple):
    """A group's commit for one partition.

    Attributes:
        value: the content of the record.
        record_offset: offset of the record in `__consumer_offsets`.
        producer_id: of the transaction that committed it; -1 without one.
    """

    value: CommittedOffset
    record_offset: int
    producer_id: int


Commits = dict[str, dict[TopicPartition, ReplayedCommit]]


class ReplayedOffsets:
    """The offsets of the groups of one partition of the topic, or of several. Not thread-safe.

    Attributes:
        committed: by group and partition.
        undecided: by producer id, group and partition.
    """

    def __init__(self) -> None:
        self.committed: Commits = {}
        self.undecided: dict[int, Commits] = {}

    def replay_item(self, item: ReplayedRecord | ControlBatch) -> None:
        """Apply a record or a marker; other kinds change nothing. Raises SchemaError, or the marker's LogstoreError."""
        if isinstance(item, ControlBatch):
            self.replay_marker(item.producer_id, is_commit=item.is_commit())
            return
        if item.key is None:
            raise SchemaError("The record has no key", offset=item.offset)
        key = decode_key(item.key, offset=item.offset)
        value = decode_value(key, item.value, offset=item.offset)
        if isinstance(key, OffsetKey):
            assert value is None or isinstance(value, CommittedOffset)
            self.replay(key, value, record_offset=item.offset, producer_id=item.producer_id)

    def replay(
        self,
        key: OffsetKey,
        value: CommittedOffset | None,
        *,
        record_offset: int,
        producer_id: int = NO_PRODUCER_ID,
    ) -> None:
        """Apply the record at `record_offset`; None is a tombstone, `producer_id` is a transactional batch's."""
        partition = TopicPartition(key.topic, key.partition)
        if value is None:
            self.remove(key.group_id, partition)
            return
        commit = ReplayedCommit(value, record_offset, producer_id)
        if producer_id == NO_PRODUCER_ID:
            self.put(key.group_id, partition, commit)
        else:
            self.undecided.setdefault(producer_id, {}).setdefault(key.group_id, {})[partition] = commit

    def replay_marker(self, producer_id: int, *, is_commit: bool) -> None:
        """Apply the marker of a producer, with or without undecided offsets.

        Safe to repeat after an interrupt: the offsets stay undecided until all are settled.
        """
        if is_commit:
            for group_id, commits in self.undecided.get(producer_id, {}).items():
                for partition, commit in commits.items():
                    known = self.committed.get(group_id, {}).get(partition)
                    if known is None or commit.record_offset > known.record_offset:
                        self.put(group_id, partition, commit)
        self.undecided.pop(producer_id, None)

    def put(self, group_id: str, partition: TopicPartition, commit: ReplayedCommit) -> None:
        """Make a commit the committed offset."""
        self.committed.setdefault(group_id, {})[partition] = commit

    def remove(self, group_id: str, partition: TopicPartition) -> None:
        """Forget the offset of a partition, also undecided ones."""
        for groups in (self.committed, *self.undecided.values()):
            in_group = groups.get(group_id, {})
            in_group.pop(partition, None)
            if not in_group:
                groups.pop(group_id, None)
