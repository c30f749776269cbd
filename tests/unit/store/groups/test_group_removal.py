"""Groups are forgotten, however many offsets they have, and whatever becomes of other groups."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from logstore.client.consumer.assignors import ASSIGNORS
from logstore.coordinator.groups.membership import ConsumerGroupMetadata, GroupMembership, GroupState, Joining
from logstore.coordinator.groups.offsets import OffsetAndMetadata, commit_records, encode_records
from logstore.errors import GroupIdNotFoundError, KafkaStorageError
from logstore.store.groups.partition import OffsetsPartition
from logstore.topics.consumer_offsets import OffsetKey
from tests.support.small_store import SmallStore, TransactionalClient, offline, started, topic_id_of

opened = partial(started, topics={"in": 1}, internal_partitions=2)
DAY_MS = 86_400_000
LARGE = "large-" * 40  # 6,000 tombstones with this name are larger than a batch may be
OFFSET_COUNT = 6_000


def commit_many(store: SmallStore, group_id: str = LARGE, topic: str = "in") -> None:
    """More offsets than one batch of tombstones can name, in batches, for partitions that the topic does not have.

    They are written to the log, which the coordinator loads when it is asked for the group.
    """
    log = store.log("__consumer_offsets", store.groups.partition_of(group_id))
    for first in range(0, OFFSET_COUNT, 1_000):
        places = [(topic, number) for number in range(first, first + 1_000)]
        records = commit_records(group_id, dict.fromkeys(places, OffsetAndMetadata(1)), now_ms=store.time_ms)
        encoded = encode_records(records)
        log.append_records([value for _, value in encoded], [key for key, _ in encoded])


def reopened_groups(store: SmallStore) -> list[str]:
    store.close()
    store = opened(store.directory)
    found = list(store.groups.group_ids())
    store.close()
    return found


def group_ids_of(store: SmallStore) -> list[str]:
    """Two groups, the first one's partition comes before the second one's."""
    by_number: dict[int, str] = {}
    for number in range(50):
        by_number.setdefault(store.groups.partition_of(f"g{number}"), f"g{number}")
    return [by_number[0], by_number[1]]


@pytest.mark.parametrize("how", ["deleted", "expired"])
def test_a_group_with_more_offsets_than_fit_a_batch_is_forgotten(tmp_path: Path, how: str) -> None:
    store = opened(tmp_path)
    commit_many(store)
    if how == "deleted":
        store.groups.delete(LARGE)
    else:
        store.time_ms += 8 * DAY_MS
        store.groups.remove_expired()
    assert store.groups.fetch(LARGE) == {}
    assert reopened_groups(store) == []


def test_a_deleted_topic_may_have_more_offsets_than_fit_a_batch(tmp_path: Path) -> None:
    store = opened(tmp_path)
    commit_many(store)
    store.create_topic("other", partitions=1, config={})
    store.groups.commit(ConsumerGroupMetadata(LARGE), {("other", 0): OffsetAndMetadata(1)})
    store.groups.topic_deleted("in", topic_id_of("in"))
    assert set(store.groups.fetch(LARGE)) == {("other", 0)}


def test_a_group_that_only_an_open_transaction_commits_for_is_described_and_deleted(tmp_path: Path) -> None:
    store = opened(tmp_path)
    client = TransactionalClient(store, "x")
    store.transactions.commit_offsets(
        "x", client.identity, ConsumerGroupMetadata("g"), {("in", 0): OffsetAndMetadata(7)}
    )
    assert list(store.groups.group_ids()) == ["g"]
    assert store.groups.describe("g").state is GroupState.EMPTY
    store.groups.delete("g")
    with pytest.raises(GroupIdNotFoundError):
        store.groups.describe("g")
    client.end(is_commit=True)
    assert store.groups.fetch("g") == {}
    assert reopened_groups(store) == []


def test_offsets_whose_tombstones_were_logged_before_a_failure_are_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path)
    commit_many(store)
    log = store.log("__consumer_offsets", store.groups.partition_of(LARGE))
    append = log.append_records
    sizes: list[int] = []

    def fail_later(values: Sequence[None], keys: Sequence[bytes], **named: int) -> object:
        if sizes:
            raise KafkaStorageError("the disk is full")
        sizes.append(len(keys))
        return append(values, keys, **named)

    monkeypatch.setattr(log, "append_records", fail_later)
    with pytest.raises(KafkaStorageError):
        store.groups.delete(LARGE)
    monkeypatch.undo()
    left = set(store.groups.fetch(LARGE))
    assert 0 < len(left) == OFFSET_COUNT - sizes[0]
    store.close()
    store = opened(tmp_path)
    assert set(store.groups.fetch(LARGE)) == left
    store.groups.delete(LARGE)
    assert reopened_groups(store) == []


def test_a_partition_that_cannot_be_written_does_not_keep_a_deleted_topics_offsets_elsewhere(tmp_path: Path) -> None:
    store = opened(tmp_path)
    first, second = group_ids_of(store)
    for group_id in (first, second):
        store.groups.commit(ConsumerGroupMetadata(group_id), {("in", 0): OffsetAndMetadata(1)})
    with offline(store.log("__consumer_offsets", 0)), pytest.raises(KafkaStorageError):
        store.groups.topic_deleted("in", topic_id_of("in"))
    assert (set(store.groups.fetch(first)), set(store.groups.fetch(second))) == ({("in", 0)}, set())


@pytest.mark.parametrize("failing", ["g1", "g2"])
def test_a_group_whose_offsets_cannot_be_removed_does_not_keep_others(
    failing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = started(tmp_path, {"in": 1}, internal_partitions=1)
    for group_id in ("g1", "g2"):
        store.groups.commit(ConsumerGroupMetadata(group_id), {("in", 0): OffsetAndMetadata(1)})
    remove = OffsetsPartition.remove

    def remove_some(partition: OffsetsPartition, keys: Sequence[OffsetKey], group_ids: Sequence[str] = ()) -> None:
        if any(key.group_id == failing for key in keys):
            raise KafkaStorageError("the disk is full")
        remove(partition, keys, group_ids)

    monkeypatch.setattr(OffsetsPartition, "remove", remove_some)
    store.time_ms += 8 * DAY_MS
    with pytest.raises(KafkaStorageError):
        store.groups.remove_expired()
    assert list(store.groups.group_ids()) == [failing]


def test_a_group_that_cannot_be_written_does_not_keep_silent_members_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = started(tmp_path, {"in": 1}, internal_partitions=1)
    for group_id in ("g1", "g2"):
        store.groups.join(group_id, Joining(member_id="m", topics=("in",), assignors=ASSIGNORS))
        assert store.groups.sync(group_id, "m") is not None
    write_group = OffsetsPartition.write_group

    def write_some(partition: OffsetsPartition, group: GroupMembership) -> None:
        if group.group_id == "g1":
            raise KafkaStorageError("the disk is full")
        write_group(partition, group)

    monkeypatch.setattr(OffsetsPartition, "write_group", write_some)
    store.time_ms += DAY_MS
    with pytest.raises(KafkaStorageError):
        store.groups.remove_silent()
    assert not store.groups.describe("g2").members
