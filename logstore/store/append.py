"""Appends of whole batches, as a produce request brings them (`KafkaApis.handleProduceRequest`, `ReplicaManager`).

The content of internal topics decides whether the store opens again, so no producer may write them. A transactional
batch joins its transaction, or is verified, before the log takes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..columns.batch_table import ByteArray, scan
from ..coordinator.transactions.outcomes import ProducerIdentity
from ..errors import InvalidTopicError, LogstoreError
from ..folds.verification import VerificationGuard
from ..layout.batch import TRANSACTIONAL_FLAG
from ..log.append.request import AppendInfo
from ..model import TopicPartition
from ..topics import INTERNAL_TOPICS

if TYPE_CHECKING:
    from .data_directory import DataDirectory


def refuse_internal(topic: str) -> None:
    """Raise InvalidTopicError for a topic that only coordinators write."""
    if topic in INTERNAL_TOPICS:
        raise InvalidTopicError(f"Cannot append to internal topic {topic}", found=topic)


def append_batches(
    store: DataDirectory,
    batches: Mapping[TopicPartition, ByteArray],
    *,
    transactional_id: str | None = None,
    transaction_version: int | None = None,
) -> dict[TopicPartition, AppendInfo | LogstoreError]:
    """Append to several partitions; return for each where its records are, or why they were refused.

    Args:
        batches: for each partition bytes of whole batches, as a client sends them.
        transactional_id, transaction_version: as for `append_batch`.
    """
    results: dict[TopicPartition, AppendInfo | LogstoreError] = {}
    for partition, batch in batches.items():
        try:
            results[partition] = append_batch(
                store, partition, batch, transactional_id=transactional_id, transaction_version=transaction_version
            )
        except LogstoreError as error:
            results[partition] = error
    return results


def append_batch(
    store: DataDirectory,
    partition: TopicPartition,
    batch: ByteArray,
    *,
    transactional_id: str | None = None,
    transaction_version: int | None = None,
) -> AppendInfo:
    """Append batches of one producer to a partition.

    Args:
        transactional_id: of the producer; None outside of transactions.
        transaction_version: 2 if partitions join with their first batch (KIP-890), 0 if they have joined before; None:
            what the store's level of `transaction.version` says.

    Raises:
        InvalidTopicError: the topic is internal.
        UnknownTopicOrPartitionError: there is no such partition.
        LogstoreError: as `TransactionCoordinator.begin_append` and `PartitionLog.append_as_leader`.
    """
    refuse_internal(partition.topic)
    log = store.log(*partition)
    guard = None
    if transactional_id is not None:
        guard = _begin(store, partition, batch, transactional_id, transaction_version)
    return log.append_as_leader(batch, leader_epoch=log.leader_epoch, guard=guard)


def _begin(
    store: DataDirectory,
    partition: TopicPartition,
    batch: ByteArray,
    transactional_id: str,
    transaction_version: int | None,
) -> VerificationGuard | None:
    table = scan(batch)
    is_transactional = table.attributes & TRANSACTIONAL_FLAG != 0
    if not is_transactional.any():
        return None
    first = table.row(int(is_transactional.argmax()))
    return store.transactions.begin_append(
        transactional_id,
        ProducerIdentity(first["producer_id"], first["producer_epoch"]),
        partition,
        sequence=first["base_sequence"],
        transaction_version=transaction_version,
    )
