"""Commits in a store with many open transactions and many groups, beside the same in one with next to nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import logstore
from benchmarks.measured import Measured, timed
from benchmarks.sizes import scaled
from logstore.client.embedded_store import EmbeddedStore
from logstore.coordinator.group_offsets import OffsetCommit
from logstore.topics.transaction_state import TransactionState

OPEN_COUNT = scaled(20, 10_000)  # transactional ids with a transaction that goes on
GROUP_COUNT = scaled(50, 100_000)
TIMEOUT_MS = 900_000  # nothing is aborted meanwhile
BESIDE_ONE = "beside one"


def filled(root: Path, open_count: int, group_count: int) -> EmbeddedStore:
    store = logstore.open(root)
    store.create_topic("orders", partitions=1)
    transactions, log, place = store.transactions, store.log("orders", 0), ("orders", 0)
    for number in range(open_count):
        name = f"open-{number}"
        producer_id, epoch = transactions.init_producer_id(name, TIMEOUT_MS)
        guard = transactions.begin_append(name, producer_id, epoch, place, sequence=0)
        log.append_records(
            [b"pending"],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=0,
            is_transactional=True,
            guard=guard,
        )
    for number in range(group_count):
        store.groups.commit(f"group-{number}", {place: OffsetCommit(number)})
    return store


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EmbeddedStore, EmbeddedStore]]:
    """One with many, one with one of each."""
    places = tmp_path_factory.mktemp("stores")
    with filled(places / "many", OPEN_COUNT, GROUP_COUNT) as many, filled(places / "one", 1, 1) as one:
        yield many, one


def transacting(store: EmbeddedStore) -> Callable[[], int]:
    """A transaction of one record and the offset of a group."""
    producer = store.producer(transactional_id="bench")
    producer.init_transactions()

    def transact() -> int:
        producer.begin_transaction()
        producer.send("orders", b"v" * 100)
        producer.send_offsets_to_transaction({("orders", 0): 1}, "bench")
        producer.commit_transaction()
        return 1

    return transact


def committing(store: EmbeddedStore) -> Callable[[], int]:
    """The offset of a group."""

    def commit() -> int:
        store.groups.commit("bench", {("orders", 0): OffsetCommit(1)})
        return 1

    return commit


@pytest.mark.parametrize("what", ["transaction", "group"])
def test_commit_beside_many(measured: Measured, stores: tuple[EmbeddedStore, EmbeddedStore], what: str) -> None:
    many, one = stores
    made = {"transaction": transacting, "group": committing}[what]
    words = {"transaction": "a transaction of a record and an offset", "group": "commit an offset of a group"}
    count = measured(
        made(many),
        title=f"{words[what]} beside {OPEN_COUNT:,} open transactions and {GROUP_COUNT:,} groups",
        count=1,
        unit="commits",
        peers={BESIDE_ONE: timed(made(one))},
    )
    assert count == 1
    assert sum(one.state is TransactionState.ONGOING for one in many.transactions) == OPEN_COUNT
    assert sum(1 for _ in many.groups.group_ids()) > GROUP_COUNT
