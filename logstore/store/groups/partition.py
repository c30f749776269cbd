"""Partitions of `__consumer_offsets`, each with the offsets and members of its groups.

The log is the truth: records are made, logged, and replayed with the offsets they got. After an interrupt between these
steps `settle` replays the rest from the log.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Sequence

from ...calls import GROUPS, alone
from ...columns.small_batch import build_batch_from_records
from ...coordinator.groups.membership import ConsumerGroupMetadata, GroupMembership, check_offset_commit
from ...coordinator.groups.offsets import GroupOffsets, encode_records
from ...coordinator.groups.other_groups import OtherGroups
from ...coordinator.groups.records import group_from_record, group_record
from ...coordinator.transactions.outcomes import MarkerEntry, ProducerIdentity
from ...errors import GroupIdNotFoundError
from ...folds.producer_update import AppendOrigin
from ...folds.verification import VerificationGuard
from ...replay.internal_topic import ControlBatch, ReplayedRecord, errors_of, replayed
from ...topics.consumer_offsets import (
    CommittedOffset,
    GroupKey,
    GroupMetadata,
    OffsetKey,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from ...topics.frames import CoordinatorKey, is_known_type, read_type
from ..internal_topic import CoordinatorTopic, append_marker, for_each_then_raise

_LOGGER = logging.getLogger("logstore")
_TABLE = "consumer_offsets"


class GroupPartition:
    """The groups of one partition; the caller of a method holds `lock`, unless the method takes it.

    Attributes:
        offsets: committed and undecided ones.
        groups: those with members or a record; a group that only commits has neither.
        other_groups: those of a protocol that this coordinator does not speak.
    """

    def __init__(self, topic: CoordinatorTopic, number: int) -> None:
        """Start empty; see `load`."""
        self.number = number
        self.lock = threading.RLock()
        self.offsets = GroupOffsets()
        self.groups: dict[str, GroupMembership] = {}
        self.other_groups = OtherGroups()
        self._topic = topic
        self._next_offset = 0  # everything below it was replayed
        self._is_settled = True

    def load(self, *, now_ms: int, ticks_ms: int) -> None:
        """Replay the log, and expel all members: their process has ended.

        Records of a type that only a newer Kafka knows are skipped, those of a newer version are not
        (`CoordinatorLoaderImpl`).

        Raises:
            SchemaError, LogstoreError: a record or batch cannot be read, with the path of the partition and its offset;
                or the log cannot be written.
        """
        self._replay_log(ticks_ms)
        self._expel_members(now_ms, ticks_ms)

    def expel_members(self, *, now_ms: int, ticks_ms: int) -> None:
        """Log every group without its members, which a broker would wait for.

        Raises:
            LogstoreError: of the first group that cannot be written; all were tried.
        """
        with alone(GROUPS), self.lock:
            self._expel_members(now_ms, ticks_ms)

    def _expel_members(self, now_ms: int, ticks_ms: int) -> None:
        def expel(known: GroupMembership) -> None:
            group = known.copied()
            group.remove_all(ticks_ms=ticks_ms)
            group.complete_rebalance({}, now_ms=now_ms)
            self.write_group(group)
            self.groups[group.group_id] = group

        for_each_then_raise([group for group in self.groups.values() if group.members], expel)

    def settle(self, ticks_ms: Callable[[], int]) -> None:
        """Replay what an interrupted call has logged.

        A group with members keeps its state in memory: its next generation is logged again.

        Raises:
            LogstoreError: the log cannot be read.
        """
        if not self._is_settled:
            with alone(GROUPS), self.lock:
                if not self._is_settled:  # again: it may have been a call of another thread, which has ended
                    self._replay_log(ticks_ms(), keeps_members=True)
                    self._is_settled = True

    def _replay_log(self, ticks_ms: int, *, keeps_members: bool = False) -> None:
        log, unknown_types = self._topic.log(self.number), set()
        kept = {name for name, group in self.groups.items() if keeps_members and group.members}
        end_offset = log.log_end_offset
        for one in replayed(log, self._next_offset):
            if isinstance(one, ControlBatch):
                self.offsets.replay_marker(one.producer_id, is_commit=one.is_commit())
            elif one.key is not None:
                with errors_of(log.path, one.offset):
                    record_type = read_type(one.key)
                    if is_known_type(_TABLE, record_type):
                        self._replay(one, ticks_ms, kept)
                    else:
                        unknown_types.add(record_type)
        for record_type in sorted(unknown_types):
            _LOGGER.warning(
                "Unknown record type %d while loading offsets and group metadata from %s. Ignoring it. "
                "It could be a left over from an aborted upgrade.",
                *(record_type, log.path),
            )
        self._next_offset = end_offset

    def group(self, group_id: str) -> GroupMembership:
        """Return a group; an unknown one is empty."""
        return self.groups.get(group_id) or GroupMembership(group_id)

    def require_classic(self, group_id: str) -> None:
        """Raise GroupIdNotFoundError for a group of another protocol."""
        if group_id in self.other_groups.protocols:
            raise GroupIdNotFoundError(f"Group {group_id} is not a classic group.")

    def check_commit(self, member: ConsumerGroupMetadata, *, is_transactional: bool, ticks_ms: int) -> None:
        """Refuse a commit as `check_offset_commit` and `OtherGroups` do; a member that commits is alive.

        A commit in a transaction proves nothing: its producer may outlive the member (`OffsetMetadataManager`).

        Raises:
            UnknownMemberIdError, FencedInstanceIdError, IllegalGenerationError: `member` is not in the group.
            GroupIdNotFoundError: it is a share group.
        """
        if member.group_id in self.other_groups.protocols:
            self.other_groups.check_commit(member, is_transactional=is_transactional, ticks_ms=ticks_ms)
            return
        group = self.groups.get(member.group_id)
        has_offsets = self.offsets.has_undecided(member.group_id) or any(self.offsets.partitions(member.group_id))
        check_offset_commit(group, member, has_offsets=has_offsets, is_transactional=is_transactional)
        if group is not None and not is_transactional:
            group.keep_alive(member.member_id, ticks_ms=ticks_ms)

    def write(self, records: Sequence[tuple[OffsetKey, CommittedOffset]]) -> None:
        """Log committed offsets as one batch.

        Raises:
            LogstoreError: as `CoordinatorTopic.append`; nothing has changed then.
        """
        encoded = encode_records(records)
        self._is_settled = False
        info = self._topic.append(self.number, encoded)
        for offset, (key, value) in enumerate(records, info.first_offset):
            self.offsets.replay(key, value, record_offset=offset)
        self._end()

    def write_undecided(
        self,
        records: Sequence[tuple[OffsetKey, CommittedOffset]],
        identity: ProducerIdentity,
        *,
        guard: VerificationGuard | None,
        now_ms: int,
    ) -> None:
        """Log offsets of a transaction, which wait for its marker. Each batch has sequence 0, as in Kafka.

        Raises:
            InvalidProducerEpochError, InvalidTxnStateError: the producer is a zombie, or was not verified.
            LogstoreError: as `PartitionLog.append_as_leader`.
        """
        batch = build_batch_from_records(
            [(key, value, now_ms, ()) for key, value in encode_records(records)],
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            base_sequence=0,
            is_transactional=True,
        )
        self._is_settled = False
        log = self._topic.log(self.number)
        info = log.append_as_leader(batch, leader_epoch=log.leader_epoch, origin=AppendOrigin.COORDINATOR, guard=guard)
        for offset, (key, value) in enumerate(records, info.first_offset):
            self.offsets.replay(key, value, record_offset=offset, producer_id=identity.producer_id)
        self._end()

    def write_marker(self, marker: MarkerEntry) -> None:
        """Log the marker of a transaction, and settle the offsets that wait for it.

        Raises:
            LogstoreError: as `PartitionLog.append_end_transaction`.
        """
        self._is_settled = False
        append_marker(self._topic.log(self.number), marker)
        self.offsets.replay_marker(marker.producer_id, is_commit=marker.is_commit)
        self._end()

    def write_group(self, group: GroupMembership) -> None:
        """Log the present state of a group.

        Raises:
            LogstoreError: as `CoordinatorTopic.append`.
        """
        key, value = group_record(group)
        self._topic.append(self.number, [(encode_key(key), encode_value(value))])

    def remove(self, keys: Sequence[OffsetKey], group_ids: Sequence[str] = ()) -> None:
        """Log tombstones of offsets, then of groups, in as many batches as needed.

        Raises:
            LogstoreError: as `CoordinatorTopic.append`; the batches before it are logged.
        """
        removed: dict[bytes, OffsetKey | GroupKey] = {encode_key(key): key for key in keys}
        groups = [GroupKey(group_id) for group_id in group_ids if group_id in self.groups]
        removed.update((encode_key(key), key) for key in groups)
        self._is_settled = False
        for batch in self._topic.append_tombstones(self.number, list(removed)):
            for key in batch:
                self._forget(removed[key])
        self._end()

    def remove_topic(self, topic: str, topic_id: str | None) -> None:
        """Forget the offsets of a deleted topic in all groups; raises LogstoreError as `remove`."""
        with alone(GROUPS), self.lock:
            self.remove(self.offsets.tombstones_of_topic(topic, topic_id))

    def remove_expired(self, retention_ms: int, now_ms: int) -> None:
        """Forget expired offsets of all groups, and groups that have nothing left.

        Raises:
            LogstoreError: of the first group that cannot be written; all were tried.
        """

        def remove(group_id: str) -> None:
            group = self.group(group_id)
            expired = self.offsets.expired(
                group_id,
                base_timestamp_ms=group.expiry_base(),
                is_subscribed=group.is_subscribed,
                retention_ms=retention_ms,
                now_ms=now_ms,
            )
            left = set(self.offsets.partitions(group_id)) - {(key.topic, key.partition) for key in expired}
            is_over = not left and not group.members and not self.offsets.has_undecided(group_id)
            self.remove(expired, [group_id] if is_over else [])

        with alone(GROUPS), self.lock:
            for_each_then_raise({*self.offsets.groups(), *self.groups}, remove)

    def _end(self) -> None:
        """Note that everything logged was replayed."""
        self._next_offset = self._topic.log(self.number).log_end_offset
        self._is_settled = True

    def _forget(self, key: OffsetKey | GroupKey) -> None:
        if isinstance(key, OffsetKey):
            self.offsets.replay(key, None, record_offset=-1)
        else:
            self.groups.pop(key.group_id, None)

    def _replay(self, record: ReplayedRecord, ticks_ms: int, kept: Collection[str]) -> None:
        assert record.key is not None
        key = decode_key(record.key)
        value = decode_value(key, record.value)
        if isinstance(key, OffsetKey):
            assert value is None or isinstance(value, CommittedOffset)
            self.offsets.replay(key, value, record_offset=record.offset, producer_id=record.producer_id)
        elif isinstance(key, GroupKey):
            if key.group_id in kept:
                return
            if isinstance(value, GroupMetadata):
                self.groups[key.group_id] = group_from_record(key, value, ticks_ms=ticks_ms)
            else:
                self.groups.pop(key.group_id, None)
        elif isinstance(key, CoordinatorKey):
            self.other_groups.replay(key, is_tombstone=value is None, ticks_ms=ticks_ms)
