"""The committed offsets of groups, and the records that change them (`OffsetMetadataManager`).

The state is a fold of the records (`replay.group_offsets`): its owner makes records here, logs them, and replays them
with the offsets that they got in the log.

>>> offsets = GroupOffsets()
>>> records = commit_records("billing", {("payments", 0): OffsetAndMetadata(17)}, now_ms=5)
>>> offsets.replay(records[0][0], records[0][1], record_offset=0, producer_id=4000)
>>> offsets.fetch("billing", ("payments", 0)) is None
True
>>> offsets.replay_marker(4000, is_commit=True)
>>> offsets.fetch("billing", ("payments", 0), require_stable=True).offset
17
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from ...errors import OffsetMetadataTooLargeError, UnstableOffsetCommitError
from ...model import TopicPartition
from ...replay.group_offsets import ReplayedCommit, ReplayedOffsets
from ...topics.consumer_offsets import CommittedOffset, OffsetKey, encode_key, encode_value

METADATA_SIZE_MAX = 4096  # UTF-16 units; the default of `offset.metadata.max.bytes`
NO_LEADER_EPOCH = -1

Record = tuple[bytes, bytes]


class OffsetAndMetadata(NamedTuple):
    """A committed offset, which is the next one to read, and a text of the user (`OffsetAndMetadata`)."""

    offset: int
    metadata: str = ""
    leader_epoch: int | None = None


def commit_records(
    group_id: str,
    commits: Mapping[TopicPartition, OffsetAndMetadata],
    *,
    now_ms: int,
    topic_ids: Mapping[TopicPartition, str | None] | None = None,
    metadata_size_max: int = METADATA_SIZE_MAX,
) -> list[tuple[OffsetKey, CommittedOffset]]:
    """Return the records of a commit, at a time in ms since 1970, with the `topic_ids` that it has.

    Raises OffsetMetadataTooLargeError if a text has more UTF-16 units than `metadata_size_max`; nothing is committed.
    Kafka commits the other partitions and answers with this error for one.
    """
    for (topic, number), commit in commits.items():
        if len(commit.metadata.encode("utf-16-le", "surrogatepass")) // 2 > metadata_size_max:
            raise OffsetMetadataTooLargeError(advice=f"shorten the metadata of {topic}-{number}")
    return [
        (
            OffsetKey(group_id, *partition),
            CommittedOffset(
                offset=commit.offset,
                leader_epoch=NO_LEADER_EPOCH if commit.leader_epoch is None else commit.leader_epoch,
                metadata=commit.metadata,
                commit_timestamp_ms=now_ms,
                expire_timestamp_ms=-1,
                topic_id=(topic_ids or {}).get(partition),
            ),
        )
        for partition, commit in commits.items()
    ]


def encode_records(records: Iterable[tuple[OffsetKey, CommittedOffset]]) -> list[Record]:
    """Return keys and values as bytes to log."""
    return [(encode_key(key), encode_value(value)) for key, value in records]


class GroupOffsets(ReplayedOffsets):
    """Committed and undecided offsets of all groups. Not thread-safe."""

    def fetch(
        self, group_id: str, partition: TopicPartition, *, require_stable: bool = False
    ) -> CommittedOffset | None:
        """Return the committed offset, None if there is none.

        Raises UnstableOffsetCommitError if it has to be stable and an open transaction commits another.
        """
        for producer_id, groups in self.undecided.items() if require_stable else ():
            if partition in groups.get(group_id, {}):
                found = f"an open transaction of producer {producer_id}, which commits another"
                advice = "end it, or wait for its timeout: `logstore txns list` tells whose it is"
                raise UnstableOffsetCommitError(found=found, advice=advice)
        commit = self.committed.get(group_id, {}).get(partition)
        return None if commit is None else commit.value

    def partitions(self, group_id: str) -> Iterator[TopicPartition]:
        """Iterate over the partitions with a committed offset of the group."""
        return iter(self.committed.get(group_id, {}))

    def groups(self) -> Iterator[str]:
        """Iterate over the groups with committed or undecided offsets."""
        return iter(self.committed.keys() | set(chain.from_iterable(self.undecided.values())))

    def has_any(self, group_id: str) -> bool:
        """Return whether the group has a committed or an undecided offset."""
        return any(self.partitions(group_id)) or self.has_undecided(group_id)

    def has_undecided(self, group_id: str, partition: TopicPartition | None = None) -> bool:
        """Return whether an undecided transaction commits an offset of `partition`, or of any partition for None."""
        return any(partition is None or partition in in_group for in_group in self._undecided_of(group_id))

    def tombstones(self, group_id: str) -> list[OffsetKey]:
        """Return keys of tombstones for all of the group's offsets, undecided ones too."""
        known = dict.fromkeys(chain(self.committed.get(group_id, {}), *self._undecided_of(group_id)))
        return [OffsetKey(group_id, topic, partition) for topic, partition in known]

    def tombstones_of_topic(self, topic: str, topic_id: str | None = None) -> list[OffsetKey]:
        """Return keys of tombstones for all groups' offsets of a deleted topic.

        Offsets with another topic id stay: they belong to a later topic with the same name.
        """
        found: dict[OffsetKey, None] = {}
        for commits in (self.committed, *self.undecided.values()):
            for group_id, in_group in commits.items():
                for (name, partition), commit in in_group.items():
                    if name == topic and commit.value.topic_id in (None, topic_id):
                        found[OffsetKey(group_id, name, partition)] = None
        return list(found)

    def expired(
        self,
        group_id: str,
        *,
        base_timestamp_ms: Callable[[CommittedOffset], int] | None,
        is_subscribed: Callable[[str], bool],
        retention_ms: int,
        now_ms: int,
    ) -> list[OffsetKey]:
        """Return keys of tombstones for offsets whose retention is over (`cleanupExpiredOffsets`).

        `base_timestamp_ms` and `is_subscribed` are `expiry_base()` and `is_subscribed` of `membership`.
        """
        if base_timestamp_ms is None:
            return []
        return [
            OffsetKey(group_id, *partition)
            for partition, commit in self.committed.get(group_id, {}).items()
            if not is_subscribed(partition.topic)
            and not self.has_undecided(group_id, partition)
            and _is_expired(commit.value, base_timestamp_ms(commit.value), retention_ms, now_ms)
        ]

    def _undecided_of(self, group_id: str) -> Iterator[dict[TopicPartition, ReplayedCommit]]:
        return (groups[group_id] for groups in self.undecided.values() if group_id in groups)


def _is_expired(value: CommittedOffset, base_timestamp_ms: int, retention_ms: int, now_ms: int) -> bool:
    if value.expire_timestamp_ms != -1:
        return now_ms >= value.expire_timestamp_ms
    return now_ms - base_timestamp_ms >= retention_ms
