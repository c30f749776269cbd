"""Rules that only show when something went wrong: who is fenced for good, and from what epoch a producer goes on."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest

from logstore.client.consumer.assignors import ASSIGNORS
from logstore.coordinator.groups.membership import ConsumerGroupMetadata, Joining
from logstore.coordinator.groups.offsets import OffsetAndMetadata
from logstore.coordinator.transactions.outcomes import ProducerIdentity
from logstore.errors import (
    IllegalGenerationError,
    KafkaStorageError,
    UnknownMemberIdError,
)
from logstore.log.partition_log import PartitionLog
from logstore.model import FetchIsolation
from logstore.topics.transaction_state import TransactionState
from logstore.view.parallel_scan import scan_windows
from logstore.view.read import INT_MAX
from tests.recovery.cutting import cut_log
from tests.support.small_store import TransactionalClient, restarted_at_epoch, started

opened = partial(started, topics={"a": 1, "b": 1, "in": 1}, internal_partitions=1)
DAY_MS = 86_400_000
PLACE = ("in", 0)


def batches(log: PartitionLog) -> list[tuple[int, int, int]]:
    """Producer epoch, last offset and number of records of every batch."""
    data = log.read(0, INT_MAX, FetchIsolation.LOG_END).data
    found = []
    for table in scan_windows(data, 0, data.size):
        columns = (table.producer_epoch, table.last_offset, table.record_count)
        found += list(zip(*(np.asarray(column).tolist() for column in columns), strict=True))
    return found


@pytest.mark.parametrize("is_made_anew", [False, True])
def test_a_topic_that_is_deleted_while_its_marker_is_written_does_not_hold_the_transaction_up(
    is_made_anew: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path)
    client = TransactionalClient(store, "x")
    client.send("a", b"1")
    client.send("b", b"2")

    def fail(*_: object, **__: object) -> None:
        store.delete_topic("a")
        if is_made_anew:
            (tmp_path / "a-0").rename(tmp_path / "a-9")
            store.create_topic("a", partitions=1, config={})
        raise KafkaStorageError("the log is closed")

    monkeypatch.setattr(store.log("a", 0), "append_end_transaction", fail)
    client.end(is_commit=True)
    assert store.transactions.describe("x").state is TransactionState.COMPLETE_COMMIT
    assert store.values("b") == [b"2"]


def test_a_producer_goes_on_from_the_highest_epoch_that_a_partition_has_seen(tmp_path: Path) -> None:
    store = opened(tmp_path)
    client = TransactionalClient(store, "x")
    client.send("a", b"1")
    client.end(is_commit=True)
    kept = store.log("__transaction_state", 0).log_end_offset
    for value in (b"2", b"3"):
        client.send("a", value)
        client.end(is_commit=True)
    used = client.identity
    store.close()
    cut_log(tmp_path / "__transaction_state-0", kept)
    again = opened(tmp_path)
    one = again.transactions.describe("x")
    assert (one.producer_id, one.producer_epoch) == used
    client = TransactionalClient(again, "x")
    assert client.identity == (used[0], used[1] + 1)
    client.send("a", b"4")
    client.end(is_commit=True)
    assert again.values("a") == [b"1", b"2", b"3", b"4"]
    again.close()
    assert TransactionalClient(opened(tmp_path, was_clean=True), "x").identity[1] > used[1] + 1


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_lost_marker_is_written_again_with_the_epoch_of_its_decision(is_commit: bool, tmp_path: Path) -> None:
    store = opened(tmp_path)
    client = TransactionalClient(store, "x")
    for name in ("a", "b", "in"):
        client.send(name, name.encode())
    epoch = client.identity[1]
    client.end(is_commit=is_commit)
    store.close()
    cut_log(tmp_path / "b-0", 1)  # the marker is lost
    again = opened(tmp_path)
    assert [again.values("a"), again.values("b")] == ([[b"a"], [b"b"]] if is_commit else [[], []])
    # an abort that nobody asked for has the epoch of the data, as `kafka-transactions.sh abort` writes it
    assert batches(again.log("b", 0)) == [(epoch, 0, 1), (epoch + is_commit, 1, 1)]


@pytest.mark.parametrize("is_commit", [True, False])
def test_a_lost_marker_of_a_used_up_producer_id_is_written_again(is_commit: bool, tmp_path: Path) -> None:
    store = opened(tmp_path)
    client = TransactionalClient(store, "x")
    old_id, last_epoch = client.identity[0], 32766
    store = client.store = restarted_at_epoch(store, "x", last_epoch)
    client.identity = ProducerIdentity(old_id, last_epoch)
    for name in ("a", "b", "in"):
        client.send(name, name.encode())
    client.end(is_commit=is_commit)
    assert client.identity == (old_id + 1, 0)
    store.close()
    cut_log(tmp_path / "b-0", 1)  # the marker is lost
    again = opened(tmp_path)
    assert [again.values("a"), again.values("b")] == ([[b"a"], [b"b"]] if is_commit else [[], []])
    assert batches(again.log("b", 0)) == [(last_epoch, 0, 1), (last_epoch + is_commit, 1, 1)]
    found = again.transactions.describe("x")
    assert (found.producer_id, found.producer_epoch) == client.identity


def test_tombstones_of_transactional_ids_go_in_batches_that_a_topic_takes(tmp_path: Path) -> None:
    store = opened(tmp_path)
    names = [f"{number:03}" + "x" * 32_000 for number in range(40)]  # 1.2 MiB of keys
    for name in names:
        store.transactions.init_producer_id(name, 60_000)
    log = store.log("__transaction_state", 0)
    before = len(batches(log))
    store.time_ms += 7 * DAY_MS
    store.jobs["transactionalId-expiration"]()
    assert list(store.transactions) == []
    counts = [count for _, _, count in batches(log)[before:]]
    assert (sum(counts), len(counts)) == (40, 3)
    store.close()
    assert list(opened(tmp_path, was_clean=True).transactions) == []


@pytest.mark.parametrize("is_transactional", [False, True])
def test_a_member_that_commits_is_alive_unless_it_does_in_transactions_only(
    is_transactional: bool, tmp_path: Path
) -> None:
    store = opened(tmp_path)
    store.groups.join("g", Joining(member_id="m", topics=("a",), rebalance_timeout_ms=10_000, assignors=ASSIGNORS))
    member = ConsumerGroupMetadata("g", store.groups.sync("g", "m").generation, "m")
    client = TransactionalClient(store, "x")
    for number in range(3):
        store.time_ms += 8_000
        offsets = {PLACE: OffsetAndMetadata(number)}
        if not is_transactional:
            store.groups.commit(member, offsets)
        elif number == 0:
            store.transactions.commit_offsets("x", client.identity, member, offsets)
        store.groups.remove_silent()
        assert set(store.groups.describe("g").members) == (set() if is_transactional and number else {"m"})
    store.time_ms += 10_000
    store.groups.remove_silent()
    assert not store.groups.describe("g").members


@pytest.mark.parametrize("is_transactional", [False, True])
def test_a_zombie_is_told_whether_its_group_is_known(is_transactional: bool, tmp_path: Path) -> None:
    """A group that only commits is a classic group without members to Kafka, so `validateMember` refuses first."""
    store = opened(tmp_path)
    zombie = ConsumerGroupMetadata("g", 3, "m")
    client = TransactionalClient(store, "x")

    def commit() -> None:
        if is_transactional:
            store.transactions.commit_offsets("x", client.identity, zombie, {PLACE: OffsetAndMetadata(9)})
        else:
            store.groups.commit(zombie, {PLACE: OffsetAndMetadata(9)})

    with pytest.raises(IllegalGenerationError):
        commit()
    store.groups.commit(ConsumerGroupMetadata("g"), {PLACE: OffsetAndMetadata(1)})
    with pytest.raises(UnknownMemberIdError):
        commit()
    committed = store.groups.fetch("g")[PLACE]
    assert committed.offset == 1
