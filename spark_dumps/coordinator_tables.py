"""Tables of the coordinators' topics, as a coordinator knows them when it has loaded its log.

`group_offsets`, by `__consumer_offsets`: the offsets that consumer groups have committed, and pending ones. A tombstone
removes an offset; one in a transaction that is not decided is pending. Of commits in and outside of transactions that
of the later record counts (`OffsetMetadataManager.replayEndTransactionMarker`).

`transaction_state`, by `__transaction_state`: what was last written of every transactional id; ids that were forgotten
are not there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from logstore.layout.batch import NO_PRODUCER_ID
from logstore.topics import consumer_offsets, transaction_state
from logstore.topics.consumer_offsets import CommittedOffset, OffsetKey
from logstore.topics.transaction_state import TransactionMetadata
from logstore.view.partition_reader import PartitionReader
from logstore.view.replay import ControlBatch, replayed

from .directories import ListedPartition
from .options import Options
from .schemas import PARTITIONS, columns_of
from .tables import Row, microseconds, partition_table


class _Record(NamedTuple):
    """One record with a key.

    Attributes:
        is_pending: of a transaction that is not decided.
    """

    offset: int
    key: bytes
    value: bytes | None
    is_pending: bool


def _records(partition: ListedPartition) -> Iterator[_Record]:
    """Yield the records as the coordinator takes them on load: a transaction's when it is committed, pending ones last.

    Unlike a read_committed consumer it does not wait for the transactions before (`CoordinatorLoaderImpl`).

    Raises:
        LogstoreError: damage, behind what was before it.
    """
    reader = PartitionReader(partition.files.path)
    pending: dict[int, list[_Record]] = {}
    for item in replayed(reader):
        if isinstance(item, ControlBatch):
            decided = pending.pop(item.producer_id, [])
            yield from decided if item.is_commit() else ()
        elif item.key is not None:
            record = _Record(item.offset, item.key, item.value, is_pending=False)
            if item.producer_id == NO_PRODUCER_ID:
                yield record
            else:
                pending.setdefault(item.producer_id, []).append(record)
    if reader.problem is not None:
        raise reader.problem
    for records in pending.values():
        yield from (record._replace(is_pending=True) for record in records)


def _group_offsets(partition: ListedPartition, options: Options) -> Iterator[Row]:
    found: dict[tuple[OffsetKey, bool], tuple[int, Row]] = {}  # the record's offset with each
    for record in _records(partition):
        key = consumer_offsets.decode_key(record.key, offset=record.offset)
        if isinstance(key, OffsetKey):
            value = consumer_offsets.decode_value(key, record.value, offset=record.offset)
            place = key, record.is_pending
            if not isinstance(value, CommittedOffset):
                found.pop(place, None)
            elif place not in found or record.offset > found[place][0]:
                found[place] = record.offset, _offset_row(key, value, is_pending=record.is_pending)
    yield from (row for _, row in found.values())


def _offset_row(key: OffsetKey, value: CommittedOffset, *, is_pending: bool) -> Row:
    return {
        "group_id": key.group_id,
        "topic": key.topic,
        "partition": key.partition,
        "offset": value.offset,
        "leader_epoch": None if value.leader_epoch < 0 else value.leader_epoch,
        "metadata": value.metadata,
        "commit_timestamp": microseconds(value.commit_timestamp_ms),
        "expire_timestamp": microseconds(value.expire_timestamp_ms),
        "topic_id": value.topic_id,
        "is_pending": is_pending,
    }


def _transaction_state(partition: ListedPartition, options: Options) -> Iterator[Row]:
    found: dict[str, Row] = {}
    for record in _records(partition):
        transactional_id = transaction_state.decode_key(record.key, offset=record.offset)
        metadata = transaction_state.decode_value(record.value, offset=record.offset)
        if metadata is None:
            found.pop(transactional_id, None)
        else:
            found[transactional_id] = _state_row(transactional_id, metadata, record.offset)
    yield from found.values()


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
