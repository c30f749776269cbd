"""One partition of `__consumer_offsets`: its groups, one call at a time (`GroupCoordinatorShard`).

A change is logged, then replayed in memory. After an exception or a signal in the middle of that the table is dropped:
its next use loads it from the log, as after a crash. Members are consumers of this process, which no record knows well
enough to let them join again: they stay.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Collection, Mapping, Sequence

from ...calls import GROUPS, alone
from ...coordinator.groups.membership import GroupMembership
from ...coordinator.groups.offsets import OffsetAndMetadata, commit_records, encode_records
from ...coordinator.groups.records import group_record
from ...coordinator.groups.table import GroupTable
from ...coordinator.transactions.outcomes import MarkerEntry, ProducerIdentity
from ...errors import GroupSubscribedToTopicError, NonEmptyGroupError
from ...folds.producer_update import AppendOrigin
from ...folds.verification import VerificationGuard
from ...layout.batch import NO_PRODUCER_ID
from ...model import TopicPartition
from ...replay.internal_topic import ControlBatch, errors_of, replayed
from ...topics.consumer_offsets import CommittedOffset, GroupKey, OffsetKey, encode_key, encode_value
from ...topics.frames import is_known_type, read_type
from ..host import Host
from ..internal_topic import CoordinatorTopic, append_marker, for_each_then_raise

_LOGGER = logging.getLogger("logstore")
_TABLE = "consumer_offsets"


class OffsetsPartition:
    """The groups of one partition; the caller of a method holds `lock`, unless the method takes it."""

    def __init__(self, host: Host, topic: CoordinatorTopic, number: int) -> None:
        """Load the log, and expel all members: their process has ended."""
        self.lock = threading.RLock()
        self._host, self._topic, self._number = host, topic, number
        self._table = self._loaded({})
        self._is_whole = True
        self._expel_members()

    @property
    def table(self) -> GroupTable:
        """The groups, loaded anew if a change of them was cut off."""
        if not self._is_whole:
            self._table = self._loaded({name: group for name, group in self._table.groups.items() if group.members})
            self._is_whole = True
        return self._table

    def expel_members(self) -> None:
        """Log every group without its members, for whom a broker would wait."""
        with alone(GROUPS), self.lock:
            self._expel_members()

    def _expel_members(self) -> None:
        def expel(known: GroupMembership) -> None:
            group = known.copied()
            group.remove_all(ticks_ms=self._host.ticks_ms())
            group.complete_rebalance({}, now_ms=self._host.now_ms())
            self.write_group(group)

        for_each_then_raise([group for group in self.table.groups.values() if group.members], expel)

    def _loaded(self, members: dict[str, GroupMembership]) -> GroupTable:
        """Return the groups of the log, beside `members`.

        Records of a type that only a newer Kafka knows are skipped; those of a newer version not
        (`CoordinatorLoaderImpl`).
        """
        table, log, unknown_types, ticks_ms = GroupTable(), self._topic.log(self._number), set(), self._host.ticks_ms()
        for record in replayed(log):
            if isinstance(record, ControlBatch):
                table.offsets.replay_marker(record.producer_id, is_commit=record.is_commit())
            elif record.key is not None:
                with errors_of(log.path, record.offset):
                    record_type = read_type(record.key)
                    if is_known_type(_TABLE, record_type):
                        table.replay(record.key, record.value, record.offset, record.producer_id, ticks_ms)
                    else:
                        unknown_types.add(record_type)
        for record_type in sorted(unknown_types):
            _LOGGER.warning(
                "Unknown record type %d while loading offsets and group metadata from %s. Ignoring it. "
                "It could be a left over from an aborted upgrade.",
                *(record_type, log.path),
            )
        table.groups |= members
        return table

    def records(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        topic_ids: Mapping[TopicPartition, str | None],
        now_ms: int,
    ) -> list[tuple[OffsetKey, CommittedOffset]]:
        """Return the records of a commit; raises as `commit_records`."""
        size_max = self._host.config["offset.metadata.max.bytes"]
        return commit_records(group_id, offsets, topic_ids=topic_ids, now_ms=now_ms, metadata_size_max=size_max)

    def write(self, records: Sequence[tuple[OffsetKey, CommittedOffset]]) -> None:
        """Log committed offsets as one batch."""
        table, encoded = self.table, encode_records(records)
        self._is_whole = False
        info = self._topic.append(self._number, encoded)
        for offset, (key, value) in enumerate(records, info.first_offset):
            table.offsets.replay(key, value, record_offset=offset)
        self._is_whole = True

    def write_undecided(
        self,
        records: Sequence[tuple[OffsetKey, CommittedOffset]],
        identity: ProducerIdentity,
        *,
        guard: VerificationGuard | None,
        now_ms: int,
    ) -> None:
        """Log offsets of a transaction, which wait for its marker. Each batch has sequence 0, as in Kafka."""
        table, log, encoded = self.table, self._topic.log(self._number), encode_records(records)
        self._is_whole = False
        info = log.append_records(
            [value for _, value in encoded],
            [key for key, _ in encoded],
            [now_ms] * len(encoded),
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            base_sequence=0,
            is_transactional=True,
            guard=guard,
            origin=AppendOrigin.COORDINATOR,
        )
        for offset, (key, value) in enumerate(records, info.first_offset):
            table.offsets.replay(key, value, record_offset=offset, producer_id=identity.producer_id)
        self._is_whole = True

    def write_marker(self, marker: MarkerEntry) -> None:
        """Log the marker of a transaction, which decides on the offsets that wait for it."""
        with alone(GROUPS), self.lock:
            table = self.table
            self._is_whole = False
            append_marker(self._topic.log(self._number), marker)
            table.offsets.replay_marker(marker.producer_id, is_commit=marker.is_commit)
            self._is_whole = True

    def write_group(self, group: GroupMembership) -> None:
        """Log the present state of a group; only then it is visible: nobody may act on what was not written."""
        table, (key, value) = self.table, group_record(group)
        self._topic.append(self._number, [(encode_key(key), encode_value(value))])
        table.groups[group.group_id] = group

    def remove(self, keys: Sequence[OffsetKey], group_ids: Sequence[str] = (), others: Sequence[bytes] = ()) -> None:
        """Log tombstones of offsets, then of groups, in as many batches as needed; see `OtherGroups.tombstones`."""
        table = self.table
        removed: list[OffsetKey | GroupKey] = [*keys]
        removed += [GroupKey(group_id) for group_id in group_ids if group_id in table.groups]
        self._is_whole = False
        for batch in self._topic.append_tombstones(self._number, [*map(encode_key, removed), *others]):
            for key in batch:
                table.replay(key, None, -1, NO_PRODUCER_ID, 0)
        self._is_whole = True

    def delete_offsets(self, group_id: str, partitions: Collection[TopicPartition]) -> None:
        """Forget offsets of a group, see `GroupCoordinator.delete_offsets`."""
        with alone(GROUPS), self.lock:
            group, others = self.table.group(group_id), self.table.other_groups
            if any(group.is_subscribed(topic) for topic, _ in partitions):
                raise GroupSubscribedToTopicError
            if others.has_members(group_id, ticks_ms=self._host.ticks_ms()):
                raise NonEmptyGroupError
            offsets = self.table.offsets.tombstones(group_id)
            self.remove(tuple(key for key in offsets if (key.topic, key.partition) in partitions))

    def remove_topic(self, topic: str, topic_id: str | None) -> None:
        """Forget the offsets of a deleted topic in all groups."""
        with alone(GROUPS), self.lock:
            self.remove(self.table.offsets.tombstones_of_topic(topic, topic_id))

    def remove_expired(self, retention_ms: int, now_ms: int) -> None:
        """Forget expired offsets of all groups, and groups that have nothing left; raise the first error at the end."""

        def remove(group_id: str) -> None:
            expired, is_over = self.table.expired(group_id, retention_ms=retention_ms, now_ms=now_ms)
            self.remove(expired, [group_id] if is_over else [])
            if expired:
                topics = ", ".join(sorted({key.topic for key in expired}))
                _LOGGER.warning(
                    "Group %s: committed offsets in %d partition(s) of %s have expired, see offsets.retention.minutes; "
                    "its next consumer begins there by auto.offset.reset",
                    *(group_id, len(expired), topics),
                )

        with alone(GROUPS), self.lock:
            for_each_then_raise({*self.table.offsets.groups(), *self.table.groups}, remove)
