"""Records of internal topics that a newer Kafka wrote, or that are damaged: what a loader does with each."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import logstore
from logstore.coordinator.groups.membership import ConsumerGroupMetadata
from logstore.coordinator.groups.offsets import OffsetAndMetadata
from logstore.disk.seam import Seam
from logstore.errors import SchemaError
from logstore.topics import consumer_offsets, transaction_state
from logstore.topics.consumer_offsets import GroupKey, GroupMember, GroupMetadata, OffsetKey
from logstore_tools.takeover.adoption import adopt
from tests.support.small_store import START_MS

STATE, OFFSETS = "__transaction_state", "__consumer_offsets"
CONFIG = {"transaction.state.log.num.partitions": 1, "offsets.topic.num.partitions": 1}
KEY = transaction_state.encode_key("a")
OFFSET_KEY = consumer_offsets.encode_key(OffsetKey("group", "t", 0))


def written(path: Path, topic: str, key: bytes, value: bytes | None) -> None:
    """A directory with a transactional id and an offset, and behind them this record in one of the two topics."""
    with logstore.open(path, config=CONFIG) as store:
        store.create_topic("t", partitions=1)
        assert store.transactions.init_producer_id("a", 60_000) == (0, 0)
        store.groups.commit(ConsumerGroupMetadata("group"), {("t", 0): OffsetAndMetadata(17)})
        store.log(topic, 0).append_records([value], [key])


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        (b"\x00\x07newer", b"\x00\x00", "Unknown message key with version 7 while loading transaction state from "),
        (KEY, b"\x00\x63newer", "Unknown message value with version 99 while loading transaction state from "),
    ],
    ids=["key", "value"],
)
def test_transactional_ids_of_a_newer_kafka_are_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, key: bytes, value: bytes, told: str
) -> None:
    written(tmp_path, STATE, key, value)
    with caplog.at_level(logging.WARNING, "logstore"), logstore.open(tmp_path) as store:
        assert [one.transactional_id for one in store.transactions] == ["a"]  # as its last record that can be read
        assert store.transactions.init_producer_id("a", 60_000) == (0, 1)
    assert [message for message in caplog.messages if told in message and "__transaction_state-0" in message]


def test_records_of_a_newer_kafka_do_not_stop_an_adoption(tmp_path: Path) -> None:
    written(tmp_path, STATE, KEY, b"\x00\x63newer")
    (tmp_path / "meta.properties").unlink()
    adopt(str(tmp_path), seam=Seam(), now_ms=lambda: START_MS)
    with logstore.open(tmp_path) as store:
        assert [one.transactional_id for one in store.transactions] == ["a"]


@pytest.mark.parametrize("key", [b"\x00", b"\x00\x00\x7f\xff", KEY], ids=["short key", "long key", "value"])
def test_a_damaged_record_of_transactional_ids_says_where_it_is(tmp_path: Path, key: bytes) -> None:
    written(tmp_path, STATE, key, b"\x00\x01damaged")
    with pytest.raises(SchemaError) as caught:
        logstore.open(tmp_path)
    assert (caught.value.path, caught.value.offset) == (str(tmp_path / "__transaction_state-0"), 1)
    assert "read_only" in str(caught.value)


@pytest.mark.parametrize("subscription", ["", "0001 00000001 0001 74 ffffffff"], ids=["none", "without its last field"])
def test_a_member_whose_client_encodes_its_topics_otherwise_keeps_no_group_shut(
    tmp_path: Path, subscription: str
) -> None:
    """A broker loads such groups with a warning, or without: Sarama's version 1 has the fields of version 0."""
    member = GroupMember("m", None, "sarama", "/127.0.0.1", 60_000, 30_000, bytes.fromhex(subscription), b"")
    value = GroupMetadata("consumer", 4, "range", "m", START_MS, (member,))
    key = consumer_offsets.encode_key(GroupKey("members"))
    written(tmp_path, OFFSETS, key, consumer_offsets.encode_value(value))
    with logstore.open(tmp_path) as store:
        committed = store.groups.fetch("group")[("t", 0)]
        assert (committed and committed.offset, store.groups.describe("members").members) == (17, {})


def test_groups_of_a_type_that_a_newer_kafka_wrote_are_passed_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    written(tmp_path, OFFSETS, b"\x00\x63newer", b"\x00\x00")
    with caplog.at_level(logging.WARNING, "logstore"), logstore.open(tmp_path) as store:
        committed = store.groups.fetch("group")[("t", 0)]
        assert committed.offset == 17
    told = "Unknown record type 99 while loading offsets and group metadata from "
    assert [message for message in caplog.messages if told in message and "__consumer_offsets-0" in message]


def test_a_group_that_was_upgraded_keeps_its_offsets(tmp_path: Path) -> None:
    """Its old kind ends behind them, and the cleaner has left only a part of its new one (KAFKA-19862, KAFKA-20254)."""
    name, member = b"\x00\x05group", b"\x00\x02m1"
    written(tmp_path, OFFSETS, b"\x00\x02" + name, None)  # GroupMetadataKey
    with logstore.open(tmp_path) as store:
        log = store.log(OFFSETS, 0)
        log.append_records([None], [b"\x00\x08" + name + member])  # ConsumerGroupCurrentMemberAssignmentKey
        log.append_records([b"\x00\x00\x00\x00\x00\x05\x00"], [b"\x00\x03" + name])  # ConsumerGroupMetadataKey
    with logstore.open(tmp_path) as store:
        assert store.groups.fetch("group")[("t", 0)].offset == 17
    assert [(row.group_id, row.offset) for row in logstore.groups(tmp_path)] == [("group", 17)]


@pytest.mark.parametrize("value", [b"\x00\x63newer", b"\x00\x04damaged"], ids=["newer", "damaged"])
def test_an_offset_that_cannot_be_read_says_where_it_is(tmp_path: Path, value: bytes) -> None:
    written(tmp_path, OFFSETS, OFFSET_KEY, value)
    with logstore.open(tmp_path) as store, pytest.raises(SchemaError) as caught:
        store.groups.fetch("group")
    assert (caught.value.path, caught.value.offset) == (str(tmp_path / "__consumer_offsets-0"), 1)
