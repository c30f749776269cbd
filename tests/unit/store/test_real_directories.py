"""Directories that real brokers wrote go on here: open transactions are ended, groups keep their offsets."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from logstore.coordinator.groups.membership import ConsumerGroupMetadata
from logstore.coordinator.groups.offsets import OffsetAndMetadata
from logstore.coordinator.transactions.outcomes import ProducerIdentity
from logstore.replay.internal_topic import ReplayedRecord, replayed
from logstore.topics.transaction_state import TransactionState
from tests.support import small_store
from tests.support.golden import Golden
from tests.support.small_store import SmallStore, TransactionalClient

OPEN_PLACES = (("orders", 0), ("payments", 0))
Taken = Callable[[str, int], SmallStore]


@pytest.fixture
def taken(golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Taken:
    """`taken(NAME, version)` is a copy of a golden directory, opened."""
    monkeypatch.setattr(small_store, "topic_id_of", lambda name: None)

    def open_copy(name: str, version: int) -> SmallStore:
        for partition in golden(name).iterdir():
            if partition.is_dir() and not partition.name.startswith("__cluster_metadata"):
                shutil.copytree(partition, tmp_path / partition.name)
        return SmallStore(tmp_path, version=version).start()

    return open_copy


def last_stable(store: SmallStore) -> list[bool]:
    """Whether each place that was open is no more."""
    logs = [store.log(*place) for place in OPEN_PLACES]
    return [log.last_stable_offset == log.log_end_offset for log in logs]


@pytest.mark.parametrize("is_commit", [True, False])
@pytest.mark.parametrize(("name", "version"), [("killed", 2), ("transactions", 2), ("transactions-v1", 1)])
def test_a_transaction_that_was_open_there_is_ended_here(
    name: str, version: int, is_commit: bool, taken: Taken
) -> None:
    store = taken(name, version)
    assert last_stable(store) == [False, False]
    left_open = store.transactions.describe("left-open")
    assert left_open.state is TransactionState.ONGOING
    identity = ProducerIdentity(left_open.producer_id, left_open.producer_epoch)
    store.transactions.end_transaction("left-open", identity, is_commit=is_commit)
    assert last_stable(store) == [True, True]
    for place in OPEN_PLACES:
        records = [one for one in replayed(store.log(*place)) if isinstance(one, ReplayedRecord)]
        own = {one.value for one in records if one.producer_id == left_open.producer_id}
        assert own
        assert own & set(store.values(*place)) == (own if is_commit else set())


def test_a_new_producer_fences_the_one_that_was_there(taken: Taken) -> None:
    store = taken("killed", 2)
    before = store.values("orders")
    client = TransactionalClient(store, "left-open")
    assert client.identity == (9, 2)
    client.send("orders", b"from here")
    store.transactions.commit_offsets(
        "left-open", client.identity, ConsumerGroupMetadata("copiers"), {("payments", 0): OffsetAndMetadata(99)}
    )
    client.end(is_commit=True)
    assert store.values("orders") == [*before, b"from here"]
    found = store.groups.fetch("copiers", require_stable=True)
    assert {place: one.offset for place, one in found.items() if one is not None} == {
        ("payments", 0): 99,
        ("orders", 0): 3,
    }


def test_groups_of_all_protocols_keep_their_offsets(taken: Taken) -> None:
    store = taken("groups", 2)
    offsets = {
        group_id: {f"{topic}-{partition}": one.offset for (topic, partition), one in found.items() if one is not None}
        for group_id in store.groups.group_ids()
        if (found := store.groups.fetch(group_id))
    }
    everything = {"in-0": 5, "in-1": 5, "in-too-0": 10}
    assert offsets == {
        "half-forgotten": {"in-1": 8},
        "moved": {"in-0": 2},
        "new-by-pattern": everything,
        "new-protocol": {**everything, "in-too-0": 4},
        "range": everything,
        "standalone-ü": {"in-0": 2, "in-1": 3},
        "sticky": everything,
        "still-there": {"in-0": 5, "in-1": 5},
        "still-there-too": {"in-0": 5, "in-1": 0},
    }
    assert store.groups.describe("range").members == {}
