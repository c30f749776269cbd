"""Tables of the coordinators' topics, as a coordinator knows them when it has loaded its log.

`group_offsets`, by `__consumer_offsets`: the offsets that consumer groups have committed, and pending ones, whose
transaction is not decided; see `logstore.view.group_offsets`.

`transaction_state`, by `__transaction_state`: what was last written of every transactional id; ids that were forgotten
are not there.
"""

from __future__ import annotations

from collections.abc import Iterator

from logstore.errors import LogstoreError
from logstore.topics import consumer_offsets, transaction_state
from logstore.topics.transaction_state import TransactionMetadata
from logstore.view.group_offsets import Commits, ReplayedOffsets
from logstore.view.partition_reader import PartitionReader
from logstore.view.replay import ReplayedRecord, replayed

from .directories import ListedPartition
from .options import Options
from .schemas import PARTITIONS, columns_of
from .tables import Row, microseconds, partition_table


def _group_offsets(partition: ListedPartition, options: Options) -> Iterator[Row | LogstoreError]:
    reader = PartitionReader(partition.files.path)
    offsets = ReplayedOffsets()
    for item in replayed(reader):
        offsets.replay_item(item)
    yield from _offset_rows(offsets.committed, is_pending=False)
    pending: Commits = {}
    for commits in offsets.undecided.values():
        for group_id, in_group in commits.items():
            for key, commit in in_group.items():
                held = pending.setdefault(group_id, {})
                held[key] = max(commit, held.get(key, commit), key=lambda one: one.record_offset)
    yield from _offset_rows(pending, is_pending=True)
    if reader.problem is not None:
        yield reader.problem


def _offset_rows(commits: Commits, *, is_pending: bool) -> Iterator[Row]:
    for group_id, in_group in commits.items():
        for (topic, partition), (value, _, _) in in_group.items():
            yield {
                "group_id": group_id,
                "topic": topic,
                "partition": partition,
                "offset": value.offset,
                "leader_epoch": None if value.leader_epoch < 0 else value.leader_epoch,
                "metadata": value.metadata,
                "commit_timestamp": microseconds(value.commit_timestamp_ms),
                "expire_timestamp": microseconds(value.expire_timestamp_ms),
                "topic_id": value.topic_id,
                "is_pending": is_pending,
            }


def _transaction_state(partition: ListedPartition, options: Options) -> Iterator[Row | LogstoreError]:
    reader = PartitionReader(partition.files.path)
    found: dict[str, Row] = {}
    for record in replayed(reader):
        if isinstance(record, ReplayedRecord) and record.key is not None:
            transactional_id = transaction_state.decode_key(record.key, offset=record.offset)
            metadata = transaction_state.decode_value(record.value, offset=record.offset)
            if metadata is None:
                found.pop(transactional_id, None)
            else:
                found[transactional_id] = _state_row(transactional_id, metadata, record.offset)
    yield from found.values()
    if reader.problem is not None:
        yield reader.problem


def _state_row(transactional_id: str, metadata: TransactionMetadata, offset: int) -> Row:
    return {
        "transactional_id": transactional_id,
        "producer_id": metadata.producer_id,
        "producer_epoch": metadata.producer_epoch,
        "state": metadata.state.name,
        "transaction_timeout_ms": metadata.transaction_timeout_ms,
        "partitions": [{"topic": topic, "partition": partition} for topic, partition in metadata.partitions],
        "start_timestamp": microseconds(metadata.start_timestamp_ms),
        "last_update_timestamp": microseconds(metadata.last_update_timestamp_ms),
        "previous_producer_id": metadata.previous_producer_id,
        "next_producer_id": metadata.next_producer_id,
        "next_producer_epoch": metadata.next_producer_epoch,
        "client_transaction_version": metadata.client_transaction_version,
        "offset": offset,
    }


GROUP_OFFSETS = partition_table(
    columns_of(
        "group_id string, topic string, partition int, offset long, leader_epoch int, metadata string, "
        "commit_timestamp timestamp, expire_timestamp timestamp, topic_id string, is_pending bool"
    ),
    _group_offsets,
    topic=consumer_offsets.TOPIC,
)
TRANSACTION_STATE = partition_table(
    {
        **columns_of(
            "transactional_id string, producer_id long, producer_epoch int, state string, transaction_timeout_ms int"
        ),
        "partitions": PARTITIONS,
        **columns_of(
            "start_timestamp timestamp, last_update_timestamp timestamp, previous_producer_id long, "
            "next_producer_id long, next_producer_epoch int, client_transaction_version int, offset long"
        ),
    },
    _transaction_state,
    topic=transaction_state.TOPIC,
)
