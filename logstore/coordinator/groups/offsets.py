"""The offsets of groups as a coordinator asks for them and makes records of them (`OffsetMetadataManager`).

The state is a fold of the records (`view.group_offsets`): its owner makes records here, logs them, and replays them
with the offsets that they got.

>>> offsets = GroupOffsets()
>>> records = commit_records("billing", {("payments", 0): OffsetAndMetadata(17)}, now_ms=5)
>>> offsets.replay(records[0][0], records[0][1], record_offset=0, producer_id=4000)
>>> offsets.fetch("billing", ("payments", 0), require_stable=True)
Traceback (most recent call last):
logstore.errors.UnstableOffsetCommitError: There are unstable offsets that need to be cleared.
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
from ...topics.consumer_offsets import CommittedOffset, OffsetKey, encode_key, encode_value
from ...view.group_offsets import ReplayedCommit, ReplayedOffsets

METADATA_SIZE_MAX = 4096  # `offset.metadata.max.bytes`, which counts UTF-16 units
NO_LEADER_EPOCH = -1

Record = tuple[bytes, bytes]


class OffsetAndMetadata(NamedTuple):
    """A committed offset, which is the next to be read, and a text beside it (`OffsetAndMetadata`)."""

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
    """Return the records of a commit; those of a transactional one go into a batch of its producer.

    `topic_ids`: by partition, where the commit tells which topic it is for.

    Raises OffsetMetadataTooLargeError for a text that is too long: nothing is committed then. Kafka commits the other
    partitions and names this one in its answer.
    """
    for (topic, partition), commit in commits.items():
        if len(commit.metadata.encode("utf-16-le", "surrogatepass")) // 2 > metadata_size_max:
            raise OffsetMetadataTooLargeError(advice=f"shorten the metadata of {topic}-{partition}")
    return [
        (
            OffsetKey(group_id, *place),
            CommittedOffset(
                offset=commit.offset,
                leader_epoch=NO_LEADER_EPOCH if commit.leader_epoch is None else commit.leader_epoch,
                metadata=commit.metadata,
                commit_timestamp_ms=now_ms,
                expire_timestamp_ms=-1,
                topic_id=(topic_ids or {}).get(place),
            ),
        )
        for place, commit in commits.items()
    ]


def encode_records(records: Iterable[tuple[OffsetKey, CommittedOffset]]) -> list[Record]:
    """Return keys and values as they are logged."""
    return [(encode_key(key), encode_value(value)) for key, value in records]


class GroupOffsets(ReplayedOffsets):
    """Committed and undecided offsets of all groups. Not thread-safe."""

    def fetch(
        self, group_id: str, partition: TopicPartition, *, require_stable: bool = False
    ) -> CommittedOffset | None:
        """Return the committed offset, None if there is none.

        Raises UnstableOffsetCommitError if it has to be stable and a transaction is about to replace it.
        """
        if require_stable and self.has_undecided(group_id, partition):
            raise UnstableOffsetCommitError
        commit = self.committed.get(group_id, {}).get(partition)
        return None if commit is None else commit.value

    def partitions(self, group_id: str) -> Iterator[TopicPartition]:
        """Iterate over the partitions that the group has a committed offset of."""
        return iter(self.committed.get(group_id, {}))

    def groups(self) -> Iterator[str]:
        """Iterate over the groups with committed or undecided offsets."""
        return iter(self.committed.keys() | set(chain.from_iterable(self.undecided.values())))

    def has_undecided(self, group_id: str, partition: TopicPartition | None = None) -> bool:
        """Return whether an undecided transaction commits for `partition`, or for any partition."""
        return any(partition is None or partition in in_group for in_group in self._undecided_of(group_id))

    def tombstones(self, group_id: str, partitions: Iterable[TopicPartition] | None = None) -> list[OffsetKey]:
        """Return keys of tombstones for the group's offsets of `partitions` (None: all), undecided ones too."""
        known = dict.fromkeys(chain(self.committed.get(group_id, {}), *self._undecided_of(group_id)))
        wanted = known if partitions is None else [partition for partition in partitions if partition in known]
        return [OffsetKey(group_id, topic, partition) for topic, partition in wanted]

    def tombstones_of_topic(self, topic: str, topic_id: str | None = None) -> list[OffsetKey]:
        """Return keys of tombstones for all groups' offsets of a deleted topic.

        Offsets with another topic id are of a later topic of the same name, and stay.
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

        Args:
            base_timestamp_ms: when an offset's retention begins; None if the group's offsets do not expire now.
            is_subscribed: whether the group still reads a topic (see `membership`).
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
        """Iterate over what each open transaction commits for a group, if it does."""
        return (groups[group_id] for groups in self.undecided.values() if group_id in groups)


def _is_expired(value: CommittedOffset, base_timestamp_ms: int, retention_ms: int, now_ms: int) -> bool:
    if value.expire_timestamp_ms != -1:
        return now_ms >= value.expire_timestamp_ms
    return now_ms - base_timestamp_ms >= retention_ms
