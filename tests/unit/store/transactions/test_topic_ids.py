"""The offsets of a transaction have topic ids from Kafka 4.4 on, whose clients send them (KIP-1319)."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.coordinator.groups.membership import ConsumerGroupMetadata
from logstore.coordinator.groups.offsets import OffsetAndMetadata
from tests.support.formatted import formatted, level
from tests.support.small_store import TransactionalClient
from tests.support.stores import open_store


@pytest.mark.parametrize(
    ("metadata_version", "transaction_version", "kafka", "has_id"),
    [(30, 2, "4.3", False), (30, 2, "4.4", True), (33, 2, "4.3", True), (33, 1, "4.4", False), (33, 0, "4.4", False)],
)
def test_offsets_of_a_transaction_have_topic_ids_in_4_4_alone(
    tmp_path: Path, metadata_version: int, transaction_version: int, kafka: str, has_id: bool
) -> None:
    levels = [level("metadata.version", metadata_version), level("transaction.version", transaction_version)]
    root, group, place = formatted(tmp_path / "data", *levels), ConsumerGroupMetadata("g"), ("t", 0)
    with open_store(root, config={"logstore.kafka.version": kafka, "offsets.topic.num.partitions": 1}) as store:
        topic_id = store.create_topic("t").topic_id
        client = TransactionalClient(store, "x")
        if transaction_version < 2:
            store.transactions.add_offsets("x", client.identity, "g")
        store.transactions.commit_offsets("x", client.identity, group, {place: OffsetAndMetadata(7)})
        client.end(is_commit=True)
        committed = store.groups.fetch("g")[place]
        assert committed is not None
        assert committed.topic_id == (topic_id if has_id else None)
        store.groups.commit(group, {place: OffsetAndMetadata(8)})
        committed = store.groups.fetch("g")[place]
        assert committed.topic_id == topic_id
