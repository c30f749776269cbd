"""Commits in a store with many open transactions and many groups, beside the same in one with next to nothing.

Both keep house meanwhile, as a program's store does.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import logstore
from benchmarks.measured import Measured, timed
from benchmarks.sizes import scaled
from logstore.client.store import Store
from logstore.coordinator.groups.membership import ConsumerGroupMetadata
from logstore.coordinator.groups.offsets import OffsetAndMetadata
from logstore.topics.transaction_state import TransactionState

OPEN_COUNT = scaled(20, 10_000)  # transactional ids with a transaction that goes on
GROUP_COUNT = scaled(50, 100_000)
TIMEOUT_MS = 900_000  # nothing is aborted meanwhile
HOUSEKEEPING = {"log.initial.task.delay.ms": 0}  # by default nothing is done in the 30 seconds that all is measured in
GROUP, PLACE = "bench", ("orders", 0)
BESIDE_ONE = "beside one"


def filled(root: Path, open_count: int, group_count: int) -> Store:
    store = logstore.open(root, config=HOUSEKEEPING)
    store.create_topic("orders", partitions=1)
    transactions, log, place = store.transactions, store.log("orders", 0), ("orders", 0)
    for number in range(open_count):
        name = f"open-{number}"
        identity = transactions.init_producer_id(name, TIMEOUT_MS)
        guard = transactions.begin_append(name, identity, place, sequence=0)
        log.append_records(
            [b"pending"],
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            base_sequence=0,
            is_transactional=True,
            guard=guard,
        )
    for number in range(group_count):
        store.groups.commit(ConsumerGroupMetadata(f"group-{number}"), {place: OffsetAndMetadata(number)})
    return store


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Store]]:
    """One with many, one with one of each."""
    places = tmp_path_factory.mktemp("stores")
    with filled(places / "many", OPEN_COUNT, GROUP_COUNT) as many, filled(places / "one", 1, 1) as one:
        yield many, one


class Commits:
    """Commits in one store, each of the offset that follows on the one before."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.log = store.log(*PLACE)
        self.count = 0

    def commit(self) -> int:
        """The offset of a group; it is returned."""
        self.count += 1
        self.store.groups.commit(ConsumerGroupMetadata(GROUP), {PLACE: OffsetAndMetadata(self.count)})
        return self.count

    def found(self) -> int:
        """The offset that the group has."""
        committed = self.store.groups.fetch(GROUP, [PLACE])[PLACE]
        assert committed is not None
        return committed.offset


class Transactions(Commits):
    """The same, in transactions of one record."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.producer = store.producer(transactional_id=GROUP)
        self.producer.init_transactions()
        self.first_offset = self.log.log_end_offset

    def commit(self) -> int:
        self.count += 1
        self.producer.begin_transaction()
        self.producer.send("orders", b"v" * 100)
        self.producer.send_offsets_to_transaction({PLACE: self.count}, GROUP)
        self.producer.commit_transaction()
        return self.count

    def found(self) -> int:
        record_count = (self.log.log_end_offset - self.first_offset) // 2  # each with its marker
        assert record_count == super().found()
        return record_count


@pytest.mark.parametrize("what", ["transaction", "group"])
def test_commit_beside_many(measured: Measured, stores: tuple[Store, Store], what: str) -> None:
    made = {"transaction": Transactions, "group": Commits}[what]
    many, one = map(made, stores)
    words = {"transaction": "a transaction of a record and an offset", "group": "commit an offset of a group"}
    measured(
        many.commit,
        title=f"{words[what]} beside {OPEN_COUNT:,} open transactions and {GROUP_COUNT:,} groups",
        count=1,
        unit="commits",
        peers={BESIDE_ONE: timed(one.commit)},
        floor="the one beside one is what it is measured against",
        hashed=lambda count: count - many.found(),  # 0: each has been written, however many there were
    )
    assert many.found() == many.count
    assert not one.count or one.found() == one.count
    store = stores[0]
    assert sum(each.state is TransactionState.ONGOING for each in store.transactions) == OPEN_COUNT
    assert sum(1 for _ in store.groups.group_ids()) > GROUP_COUNT
    assert not store.failures  # of what keeps house
