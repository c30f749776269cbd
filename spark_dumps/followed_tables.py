"""Tables that are made by following logs from their starts, with errors for what is no batch.

`transactions`: each transaction, decided or open, in each of its partitions.

`group_offsets` and `transaction_state` have the state of a coordinator that has loaded its log: from
`__consumer_offsets` the committed offsets of consumer groups, and the pending ones of open transactions (see
`logstore.replay.group_offsets`); from `__transaction_state` the last state of each transactional id that has not
expired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from logstore.audit.cluster import Cluster
from logstore.audit.evidence import AuditedBatches, Evidence, Follower
from logstore.audit.facts.transactions import PartitionTransactions
from logstore.audit.log_pass import follow
from logstore.audit.partition import open_partition
from logstore.errors import CorruptRecordError, LogstoreError, SchemaError
from logstore.replay.group_offsets import Commits, ReplayedOffsets
from logstore.replay.internal_topic import ControlBatch, ReplayedRecord, replayed_rows
from logstore.rows.groups import CommittedOffsetRow
from logstore.rows.schema import row_of
from logstore.rows.transactions import TransactionalIdRow, TransactionRow
from logstore.topics import consumer_offsets, transaction_state
from logstore.view.walk import Damage

from .listed_partition import ListedPartition
from .schemas import columns_of
from .tables import Row, partition_table

_OF_MARKER = ("marker_offset", "marker_timestamp", "marker_epoch", "coordinator_epoch")


def _evidence(partition: ListedPartition, cluster: Cluster) -> Evidence:
    return Evidence(open_partition(partition.files.path, cluster.checkpoints), cluster)


def _follow(evidence: Evidence, follower: Follower) -> list[LogstoreError]:
    """Let a follower read the whole log of a partition; return errors of damage, behind which it goes on.

    A cut batch, or zeros, at the end of the last segment are being written, and no damage.
    """
    damage = _DamageErrors(evidence)
    follow(evidence, [follower, damage])
    return damage.errors


class _DamageErrors(Follower):
    """Keeps an error of each damage."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._tail: list[LogstoreError] = []  # what may be a batch that is being written
        self.errors: list[LogstoreError] = []

    def skip(self, piece: Damage) -> None:
        segment = self._evidence.segment
        assert segment is not None
        if segment is self._evidence.partition.last_segment and not piece.may_hide_batches:
            return
        error = CorruptRecordError(
            "bytes that are no batch",
            path=segment.log,
            position=piece.start,
            offset=piece.offset,
            expected=piece.expected,
            found=piece.found,
        )
        (self._tail if piece.is_tail else self.errors).append(error)

    def end(self) -> None:
        self.errors += [] if self._evidence.is_growing else self._tail
        self._tail = []


def _transactions(partition: ListedPartition, cluster: Cluster) -> Iterator[TransactionRow | LogstoreError]:
    history = PartitionTransactions(_evidence(partition, cluster))
    damage = _follow(history.evidence, history)
    for transaction in history.transactions:
        unknown = dict.fromkeys(_OF_MARKER) if transaction.is_open else {}
        yield row_of(TransactionRow, partition, transaction, state=transaction.outcome, **unknown)
    yield from damage


def _group_offsets(partition: ListedPartition, cluster: Cluster) -> Iterator[Row]:
    offsets = ReplayedOffsets()
    errors = _replay(partition, cluster, offsets.replay_item)
    yield from _offset_rows(offsets.committed, is_pending=False)
    pending: Commits = {}
    for commits in offsets.undecided.values():
        for group_id, in_group in commits.items():
            for key, commit in in_group.items():
                held = pending.setdefault(group_id, {})
                held[key] = max(commit, held.get(key, commit), key=lambda one: one.record_offset)
    yield from _offset_rows(pending, is_pending=True)
    yield from errors


class _Records(Follower):
    """Hands over each record and marker from the log start on; keeps `errors` of those that do not parse."""

    def __init__(self, take: Callable[[ReplayedRecord | ControlBatch], None], first_offset: int) -> None:
        self.errors: list[LogstoreError] = []
        self._take, self._first_offset = take, first_offset

    def step(self, batches: AuditedBatches) -> None:
        for item in replayed_rows(*batches.run, self._first_offset):
            try:
                if isinstance(item, LogstoreError):
                    raise item
                self._take(item)
            except LogstoreError as error:
                error.path = error.path or batches.segment.log
                self.errors.append(error)


def _replay(
    partition: ListedPartition, cluster: Cluster, take: Callable[[ReplayedRecord | ControlBatch], None]
) -> list[LogstoreError]:
    """Hand over all records and markers of a partition; return errors of those that do not parse."""
    records = _Records(take, partition.log_start_offset)
    return [*_follow(_evidence(partition, cluster), records), *records.errors]


def _offset_rows(commits: Commits, *, is_pending: bool) -> Iterator[Row]:
    for group_id, in_group in commits.items():
        for (topic, partition), (value, _, _) in in_group.items():
            yield row_of(
                CommittedOffsetRow,
                value,
                group_id=group_id,
                topic=topic,
                partition=partition,
                leader_epoch=None if value.leader_epoch < 0 else value.leader_epoch,
                commit_timestamp=value.commit_timestamp_ms,
                expire_timestamp=value.expire_timestamp_ms,
                is_pending=is_pending,
            )


def _transaction_state(partition: ListedPartition, cluster: Cluster) -> Iterator[Row]:
    found: dict[str, TransactionalIdRow] = {}

    def take(record: ReplayedRecord | ControlBatch) -> None:
        if not isinstance(record, ReplayedRecord):
            return
        if record.key is None:
            raise SchemaError("The record has no key", offset=record.offset)
        transactional_id = transaction_state.decode_key(record.key, offset=record.offset)
        metadata = transaction_state.decode_value(record.value, offset=record.offset)
        if metadata is None:
            found.pop(transactional_id, None)
        else:
            found[transactional_id] = row_of(
                TransactionalIdRow,
                metadata,
                transactional_id=transactional_id,
                state=metadata.state.name,
                partitions=[{"topic": topic, "partition": number} for topic, number in metadata.partitions],
                start_timestamp=metadata.start_timestamp_ms,
                last_update_timestamp=metadata.last_update_timestamp_ms,
                offset=record.offset,
            )

    errors = _replay(partition, cluster, take)
    yield from found.values()
    yield from errors


TRANSACTIONS = partition_table(columns_of(TransactionRow), _transactions)
GROUP_OFFSETS = partition_table(columns_of(CommittedOffsetRow), _group_offsets, topic=consumer_offsets.TOPIC)
TRANSACTION_STATE = partition_table(columns_of(TransactionalIdRow), _transaction_state, topic=transaction_state.TOPIC)
