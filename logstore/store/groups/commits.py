"""Offsets of groups: committed, waiting for a transaction, forgotten (`OffsetMetadataManager`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from ...coordinator.groups.membership import ANYBODY, GroupMemberIdentity, GroupMembership, check_offset_commit
from ...coordinator.groups.offsets import OffsetCommit, commit_records
from ...coordinator.transactions.outcomes import MarkerEntry, ProducerIdentity
from ...errors import GroupIdNotFoundError, GroupSubscribedToTopicError
from ...folds.verification import VerificationGuard
from ...log.append.request import AppendInfo
from ...model import TopicPartition
from ...topics.consumer_offsets import CommittedOffset
from ..internal_topic import for_each_then_raise, log_or_none
from ..metadata.topics import unknown_topic
from .partition import GroupPartition, GroupPartitions

if TYPE_CHECKING:
    from ..data_directory import DataDirectory

_MINUTE_MS = 60_000


class GroupCommits:
    """The part of a group coordinator that is about offsets; see `groups`."""

    def __init__(self, store: DataDirectory) -> None:
        """Nothing is read yet."""
        self._store = store
        self._partitions = GroupPartitions(store)

    def partition_of(self, group_id: str) -> int:
        """Return the partition of `__consumer_offsets` that keeps a group; make the topic for the first one."""
        return self._partitions.number_of(group_id)

    def commit(
        self, group_id: str, offsets: Mapping[TopicPartition, OffsetCommit], member: GroupMemberIdentity = ANYBODY
    ) -> None:
        """Commit offsets, the next ones to read.

        Raises:
            UnknownMemberIdError, FencedInstanceIdError, IllegalGenerationError: `member` is not in the group.
            OffsetMetadataTooLargeError: see `commit_records`.
            UnknownTopicOrPartitionError: some partitions do not exist; the others are committed.
            KafkaStorageError: the partition of `__consumer_offsets` cannot be written.
        """
        partition = self._partitions.of(group_id)
        with partition.lock:
            now_ms = self._store.now_ms()
            self._check_commit(partition, group_id, member, is_transactional=False)
            unknown = self._unknown(offsets)
            records = commit_records(
                group_id,
                {one: self._with_topic_id(one, commit) for one, commit in offsets.items() if one not in unknown},
                now_ms=now_ms,
                metadata_size_max=self._store.config["offset.metadata.max.bytes"],
            )
            if records:
                partition.write(records)
        _require_known(unknown)

    def commit_transactional(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetCommit],
        identity: ProducerIdentity,
        *,
        member: GroupMemberIdentity = ANYBODY,
        guard: VerificationGuard | None = None,
    ) -> AppendInfo:
        """Log offsets that wait for the marker of their transaction; see `TransactionCoordinator.commit_offsets`.

        Raises:
            UnknownTopicOrPartitionError: some partitions do not exist; nothing is logged.
            LogstoreError: as `commit`, and `GroupPartition.write_undecided`.
        """
        partition = self._partitions.of(group_id)
        now_ms = self._store.now_ms()
        with partition.lock:
            self._check_commit(partition, group_id, member, is_transactional=True)
            _require_known(self._unknown(offsets))
            records = commit_records(
                group_id, offsets, now_ms=now_ms, metadata_size_max=self._store.config["offset.metadata.max.bytes"]
            )
            return partition.write_undecided(records, identity, guard=guard, now_ms=now_ms)

    def write_marker(self, number: int, marker: MarkerEntry) -> AppendInfo:
        """Write the marker of a transaction to a partition of `__consumer_offsets`, which settles its offsets.

        Raises:
            LogstoreError: as `PartitionLog.append_end_transaction`.
        """
        partition = self._partitions[number]
        with partition.lock:
            return partition.write_marker(marker)

    def fetch(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None, *, require_stable: bool = False
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """Return the committed offsets of partitions, by default of all that have one; None where nothing is committed.

        An offset of a topic that was deleted and made anew under its name does not count.

        Raises:
            UnstableOffsetCommitError: with `require_stable`, a transaction is about to replace one of them.
        """
        partition = self._partitions.find(group_id)
        if partition is None:
            return dict.fromkeys(partitions or (), None)
        with partition.lock:
            offsets = partition.offsets
            wanted = list(offsets.partitions(group_id) if partitions is None else partitions)
            return {
                one: self._of_this_topic(one, offsets.fetch(group_id, one, require_stable=require_stable))
                for one in wanted
            }

    def delete_offsets(self, group_id: str, partitions: Iterable[TopicPartition]) -> None:
        """Forget committed offsets (`OffsetDelete`).

        Raises:
            GroupIdNotFoundError: there is no such group.
            GroupSubscribedToTopicError: a member reads one of the topics; nothing is forgotten.
        """
        wanted = list(partitions)
        partition = self._known(group_id)
        with partition.lock:
            group = partition.groups.get(group_id)
            for topic, _ in wanted:
                if group is not None and group.is_subscribed(topic):
                    raise GroupSubscribedToTopicError(found=topic)
            partition.remove(partition.offsets.tombstones(group_id, wanted))

    def topic_deleted(self, topic: str, topic_id: str | None) -> None:
        """Forget the offsets of a topic that was deleted, in all groups.

        Raises:
            LogstoreError: of the first partition that cannot be read or written; the others have been seen to.
        """

        def remove(number: int) -> None:
            partition = self._partitions[number]
            with partition.lock:
                partition.remove(partition.offsets.tombstones_of_topic(topic, topic_id))

        for_each_then_raise(self._partitions.numbers(), remove)

    def remove_expired(self) -> None:
        """Forget offsets whose `offsets.retention.minutes` are over; to be called now and then.

        Raises:
            LogstoreError: of the first group that cannot be read or written; the others have been seen to.
        """
        retention_ms = self._store.config["offsets.retention.minutes"] * _MINUTE_MS

        def remove(number: int) -> None:
            partition = self._partitions[number]
            with partition.lock:
                group_ids = {*partition.offsets.groups(), *partition.groups}
                for_each_then_raise(
                    group_ids, lambda group_id: self._remove_expired_of(partition, group_id, retention_ms)
                )

        for_each_then_raise(self._partitions.numbers(), remove)

    def _check_commit(
        self, partition: GroupPartition, group_id: str, member: GroupMemberIdentity, *, is_transactional: bool
    ) -> None:
        """See `check_offset_commit`; a member that commits is alive.

        Not one that commits in a transaction: its producer may go on without it (`OffsetMetadataManager`).
        """
        group = partition.groups.get(group_id)
        check_offset_commit(
            group, member, has_offsets=partition.has_offsets(group_id), is_transactional=is_transactional
        )
        if group is not None and not is_transactional:
            group.keep_alive(member.member_id, now_ms=self._store.now_ms())

    def _known(self, group_id: str) -> GroupPartition:
        """Return the partition of a group that has offsets, members or a record; raises GroupIdNotFoundError."""
        partition = self._partitions.find(group_id)
        if partition is not None:
            with partition.lock:
                if group_id in partition.groups or any(partition.offsets.partitions(group_id)):
                    return partition
        raise GroupIdNotFoundError(f"Group {group_id} not found.")

    def _remove_expired_of(self, partition: GroupPartition, group_id: str, retention_ms: int) -> None:
        group = partition.groups.get(group_id) or GroupMembership(group_id)
        expired = partition.offsets.expired(
            group_id,
            base_timestamp_ms=group.expiry_base(),
            is_subscribed=group.is_subscribed,
            retention_ms=retention_ms,
            now_ms=self._store.now_ms(),
        )
        left = set(partition.offsets.partitions(group_id)) - {(key.topic, key.partition) for key in expired}
        is_over = not left and not group.members and not partition.offsets.has_undecided(group_id)
        partition.remove(expired, [group_id] if is_over else [])

    def _unknown(self, partitions: Iterable[TopicPartition]) -> list[TopicPartition]:
        """Return the missing partitions (`KafkaApis.handleOffsetCommitRequest`, `handleTxnOffsetCommitRequest`)."""
        return [one for one in partitions if log_or_none(self._store, *one) is None]

    def _with_topic_id(self, partition: TopicPartition, commit: OffsetCommit) -> OffsetCommit:
        """Add the id of the topic to a commit, as the Java client of 4.3.1 does."""
        log = None if commit.topic_id else log_or_none(self._store, *partition)
        return commit if log is None else replace(commit, topic_id=log.topic_id)

    def _of_this_topic(self, partition: TopicPartition, committed: CommittedOffset | None) -> CommittedOffset | None:
        """Return None for an offset of an earlier topic of the same name (`isMismatchedTopicId`)."""
        if committed is None or committed.topic_id is None:
            return committed
        log = log_or_none(self._store, *partition)
        return committed if log is None or log.topic_id in (None, committed.topic_id) else None


def _require_known(unknown: list[TopicPartition]) -> None:
    if unknown:
        raise unknown_topic(", ".join(f"{topic}-{partition}" for topic, partition in unknown))
