"""The partitions of `__consumer_offsets`, each with the offsets and members of its groups.

The log is the truth: records are made, logged, and replayed with the offsets that they got. After an interrupt between
these steps `settle` replays the rest from the log.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from ...columns.small_batch import build_batch_from_records
from ...coordinator.groups.membership import GroupMembership
from ...coordinator.groups.offsets import GroupOffsets, encode_records
from ...coordinator.groups.records import group_from_record, group_record
from ...coordinator.transactions.outcomes import MarkerEntry, ProducerIdentity
from ...folds.producer_update import AppendOrigin
from ...folds.verification import VerificationGuard
from ...log.append.request import AppendInfo
from ...topics.consumer_offsets import (
    TOPIC,
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
from ...view.replay import ControlBatch, ReplayedRecord, errors_of, replayed
from ..internal_topic import CoordinatorTopic

if TYPE_CHECKING:
    from ..data_directory import DataDirectory

_LOGGER = logging.getLogger("logstore")
_TABLE = "consumer_offsets"
#: record types that say that a group is of another protocol: consumer (KIP-848), share and streams groups
_OTHER_GROUPS = frozenset({"ConsumerGroupMetadataKey", "ShareGroupMetadataKey", "StreamsGroupMetadataKey"})


class GroupPartition:
    """The groups of a partition; the caller of a method holds `lock`.

    Attributes:
        offsets: committed and undecided ones.
        groups: those with members or a record of their own; a group that only commits has neither.
        other_group_ids: groups of a protocol that this coordinator does not speak.
    """

    def __init__(self, topic: CoordinatorTopic, number: int) -> None:
        """Nothing is known yet, see `load`."""
        self.number = number
        self.lock = threading.RLock()
        self.offsets = GroupOffsets()
        self.groups: dict[str, GroupMembership] = {}
        self.other_group_ids: set[str] = set()
        self._topic = topic
        self._next_offset = 0  # what is below is replayed
        self._is_settled = True

    def load(self, now_ms: int) -> None:
        """Replay the log, and remove the members that are in it: their process is gone.

        Records of a type that only a newer Kafka knows are passed over, those of such a version are not
        (`CoordinatorLoaderImpl`).

        Raises:
            SchemaError, LogstoreError: a record or batch that cannot be read, with the path of the partition and its
                offset; or a log that cannot be written.
        """
        self._replay_log(now_ms)
        for group in list(self.groups.values()):
            if group.members:
                group.remove_all(now_ms=now_ms)
                group.complete_rebalance({}, now_ms=now_ms)
                self.write_group(group)

    def settle(self, now_ms: Callable[[], int]) -> None:
        """Replay what an interrupted call has logged.

        A group that has members stays as they know it: its next generation is logged again.

        Raises:
            LogstoreError: the log cannot be read.
        """
        if not self._is_settled:
            with self.lock:
                self._replay_log(now_ms(), keeps_members=True)
                self._is_settled = True

    def _replay_log(self, now_ms: int, *, keeps_members: bool = False) -> None:
        log, unknown_types = self._topic.log(self.number), set()
        kept = {name for name, group in self.groups.items() if keeps_members and group.members}
        end_offset = log.log_end_offset
        for one in replayed(log, self._next_offset):
            if isinstance(one, ControlBatch):
                self.offsets.replay_marker(one.producer_id, is_commit=one.is_commit())
            elif one.key is not None:
                with errors_of(log.directory.path, one.offset):
                    record_type = read_type(one.key)
                    if is_known_type(_TABLE, record_type):
                        self._replay(one, now_ms, kept)
                    else:
                        unknown_types.add(record_type)
        for record_type in sorted(unknown_types):
            _LOGGER.warning(
                "Unknown record type %d while loading offsets and group metadata from %s. Ignoring it. "
                "It could be a left over from an aborted upgrade.",
                *(record_type, log.directory.path),
            )
        self._next_offset = end_offset

    def write(self, records: Sequence[tuple[OffsetKey, CommittedOffset]]) -> AppendInfo:
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
        return info

    def write_undecided(
        self,
        records: Sequence[tuple[OffsetKey, CommittedOffset]],
        identity: ProducerIdentity,
        *,
        guard: VerificationGuard | None,
        now_ms: int,
    ) -> AppendInfo:
        """Log offsets of a transaction, which wait for its marker. Each batch has the sequence 0, as Kafka's.

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
        return info

    def write_marker(self, marker: MarkerEntry) -> AppendInfo:
        """Log the marker of a transaction, which settles the offsets that wait for it.

        Raises:
            LogstoreError: as `PartitionLog.append_end_transaction`.
        """
        self._is_settled = False
        log = self._topic.log(self.number)
        info = log.append_end_transaction(
            marker.producer_id,
            marker.producer_epoch,
            is_commit=marker.is_commit,
            coordinator_epoch=marker.coordinator_epoch,
            transaction_version=marker.transaction_version,
            leader_epoch=log.leader_epoch,
        )
        self.offsets.replay_marker(marker.producer_id, is_commit=marker.is_commit)
        self._end()
        return info

    def write_group(self, group: GroupMembership) -> None:
        """Log a group as it is now.

        Raises:
            LogstoreError: as `CoordinatorTopic.append`.
        """
        key, value = group_record(group)
        self._topic.append(self.number, [(encode_key(key), encode_value(value))])

    def remove(self, keys: Sequence[OffsetKey], group_ids: Sequence[str] = ()) -> None:
        """Log tombstones of offsets, then of groups, in as many batches as they need.

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

    def has_offsets(self, group_id: str) -> bool:
        """Return whether offsets of the group are committed, or wait for a transaction."""
        return self.offsets.has_undecided(group_id) or any(self.offsets.partitions(group_id))

    def _end(self) -> None:
        """Note that everything that was logged is replayed."""
        self._next_offset = self._topic.log(self.number).log_end_offset
        self._is_settled = True

    def _forget(self, key: OffsetKey | GroupKey) -> None:
        if isinstance(key, OffsetKey):
            self.offsets.replay(key, None, record_offset=-1)
        else:
            self.groups.pop(key.group_id, None)

    def _replay(self, record: ReplayedRecord, now_ms: int, kept: Collection[str]) -> None:
        assert record.key is not None
        key = decode_key(record.key, offset=record.offset)
        value = decode_value(key, record.value, offset=record.offset)
        if isinstance(key, OffsetKey):
            assert value is None or isinstance(value, CommittedOffset)
            self.offsets.replay(key, value, record_offset=record.offset, producer_id=record.producer_id)
        elif isinstance(key, GroupKey):
            if key.group_id in kept:
                return
            if isinstance(value, GroupMetadata):
                self.groups[key.group_id] = group_from_record(key, value, now_ms=now_ms)
            else:
                self.groups.pop(key.group_id, None)
        elif isinstance(key, CoordinatorKey) and key.message.name in _OTHER_GROUPS:
            group_id = key.fields["groupId"]
            (self.other_group_ids.discard if value is None else self.other_group_ids.add)(group_id)


class GroupPartitions:
    """The partitions of `__consumer_offsets`, each loaded when the first of its groups is asked for."""

    def __init__(self, store: DataDirectory) -> None:
        """Nothing is made or read yet."""
        self._store = store
        self._topic = CoordinatorTopic(store, TOPIC)
        self._loaded: dict[int, GroupPartition] = {}
        self._loading = threading.Lock()

    def number_of(self, group_id: str) -> int:
        """Return the number of a group's partition; make the topic for the first one."""
        if self._topic.partition_count == 0:
            self._topic.make()
        return self._topic.partition_of(group_id)

    def of(self, group_id: str) -> GroupPartition:
        """Return the partition of a group; make the topic for the first one."""
        return self[self.number_of(group_id)]

    def find(self, group_id: str) -> GroupPartition | None:
        """Return the partition of a group; None before the topic is made."""
        return self[self._topic.partition_of(group_id)] if self._topic.partition_count else None

    def __getitem__(self, number: int) -> GroupPartition:
        """Return a partition by its number, loaded.

        Raises:
            LogstoreError: as `GroupPartition.load`; it is tried again the next time.
        """
        partition = self._loaded.get(number)
        if partition is None:
            with self._loading:
                partition = self._loaded.get(number)
                if partition is None:
                    partition = GroupPartition(self._topic, number)
                    partition.load(self._store.now_ms())
                    self._loaded[number] = partition
        partition.settle(self._store.now_ms)
        return partition

    def loaded(self) -> list[GroupPartition]:
        """Return the loaded partitions; no other has members."""
        return [self[number] for number in list(self._loaded)]

    def __iter__(self) -> Iterator[GroupPartition]:
        """Iterate over all partitions, loaded; none before the topic is made."""
        for number in self.numbers():
            yield self[number]

    def numbers(self) -> range:
        """Return the numbers of all partitions; none before the topic is made."""
        return range(self._topic.partition_count)
