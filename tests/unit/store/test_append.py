"""Batches as a client sends them: each partition answers for itself, and the version of the request counts."""

from __future__ import annotations

import pytest

from logstore.client.store import Store
from logstore.columns.batch_table import ByteArray
from logstore.errors import (
    InvalidProducerEpochError,
    InvalidTopicError,
    InvalidTxnStateError,
    TransactionAbortableError,
    UnknownTopicOrPartitionError,
)
from logstore.log.append.request import AppendInfo
from logstore.model import TopicPartition
from logstore.store.append import append_batch, append_batches
from tests.support.built import build_batch_from_records

TOPICS = {"orders": 2}
A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)


def batch(identity: tuple[int, int] = (-1, -1), sequence: int = -1) -> ByteArray:
    producer_id, producer_epoch = identity
    return build_batch_from_records(
        [(None, b"paid", 1, ()), (None, b"sent", 2, ())],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=sequence,
        is_transactional=producer_id >= 0,
    )


def test_each_partition_has_its_own_answer(store: Store) -> None:
    places = [A, TopicPartition("orders", 7), TopicPartition("__transaction_state", 0), B]
    found = append_batches(store, dict.fromkeys(places, batch()))
    kinds = [AppendInfo, UnknownTopicOrPartitionError, InvalidTopicError, AppendInfo]
    assert [type(found[place]) for place in places] == kinds
    assert [store.log(*place).log_end_offset for place in (A, B)] == [2, 2]


def test_a_partition_joins_the_transaction_with_its_first_batch(store: Store) -> None:
    identity = store.transactions.init_producer_id("t", 60_000)
    found = append_batches(store, {A: batch(identity, 0), B: batch(identity, 0)}, transactional_id="t")
    assert [type(one) for one in found.values()] == [AppendInfo, AppendInfo]
    assert store.transactions.describe("t").partitions == {A, B}
    following = store.transactions.end_transaction("t", identity, is_commit=True)
    assert following[1] == identity[1] + 1
    assert store.log(*A).last_stable_offset == 3
    with pytest.raises(InvalidProducerEpochError):
        append_batch(store, A, batch(identity, 2), transactional_id="t")


def test_a_client_of_version_0_asks_first_and_keeps_its_epoch(store: Store) -> None:
    identity = store.transactions.init_producer_id("t", 60_000)
    with pytest.raises(TransactionAbortableError):
        append_batch(store, A, batch(identity, 0), transactional_id="t", transaction_version=0)
    store.transactions.add_partitions("t", identity, [A], transaction_version=0)
    append_batch(store, A, batch(identity, 0), transactional_id="t", transaction_version=0)
    assert store.transactions.end_transaction("t", identity, is_commit=False, transaction_version=0) == identity
    assert store.log(*A).last_stable_offset == store.log(*A).log_end_offset == 3


def test_a_transactional_batch_without_a_transactional_id_is_refused(store: Store) -> None:
    identity = store.transactions.init_producer_id("t", 60_000)
    with pytest.raises(InvalidTxnStateError):
        append_batch(store, A, batch(identity, 0))
    assert store.log(*A).log_end_offset == 0
