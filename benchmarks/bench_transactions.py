"""Transactions: of an embedded store beside the Java client with a real local broker; of one log, while other producers
have transactions open, beside Kafka's; and commits in a store with few and with many open transactions and groups,
which keeps house meanwhile, as a program's store does.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import logstore
from benchmarks.peers.kafka import HeldLog, LocalBroker, WarmKafka
from benchmarks.support.data import SEGMENT, scaled, steps, values, write_producers
from benchmarks.support.floors import writing_each
from benchmarks.support.logs import NAME, opened, sizes_of_one, twin, written
from benchmarks.support.measure import Growth, Measured
from logstore.client.store import Store
from logstore.clock import now_ms
from logstore.coordinator.groups.membership import ConsumerGroupMetadata
from logstore.coordinator.groups.offsets import OffsetAndMetadata
from logstore.log.partition_log import PartitionLog
from logstore.topics.transaction_state import TransactionState

VALUE_SIZE, RECORD_SIZE = 100, 107
KAFKA_CALLS = {1: 200, 10: 150, 1000: 30}  # transactions a round, by records each
KAFKA_CALL_COUNT = 500
PRODUCER_ID = 2_000_000_000
WRITTEN_SIZES = (172, 78)  # bytes of a batch with one record of 100, and of a marker
GROUPS_PER_TRANSACTION = 10  # in a store
TIMEOUT_MS = 900_000  # nothing is aborted meanwhile
HOUSEKEEPING = {"log.initial.task.delay.ms": 0}  # by default nothing is done in the 30 seconds that all is measured in
GROUP, PLACE = "bench", ("orders", 0)

Opened = tuple[PartitionLog, int, Path]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with logstore.open(tmp_path / "data") as store:
        store.create_topic("orders", partitions=1)
        yield store


@pytest.mark.parametrize("record_count", KAFKA_CALLS)
def test_transaction(
    measured: Measured,
    kafka: WarmKafka,
    broker: LocalBroker,
    store: Store,
    tmp_path: Path,
    record_count: int,
) -> None:
    producer = store.producer(transactional_id="bench")
    producer.init_transactions()
    batch, count = values(record_count, VALUE_SIZE), 0

    def transact() -> int:
        nonlocal count
        producer.begin_transaction()
        for value in batch:
            producer.send("orders", value)
        producer.commit_transaction()
        count += 1
        return record_count

    def kafkas() -> float:
        calls = scaled(3, KAFKA_CALLS[record_count])
        order = {"op": "transact", "bootstrap": broker.bootstrap, "topic": broker.topic("orders")}
        sizes = {"records": record_count, "count": calls, "size": VALUE_SIZE}
        return kafka.seconds(**order, **sizes, call_count=calls, expected_count=calls * record_count)

    transact()  # the first one adds more
    sizes = sizes_of_one(tmp_path / "data", transact)
    log = store.log("orders", 0)
    measured(
        transact,
        title=f"transaction of {record_count:,} records",
        size=record_count * RECORD_SIZE,
        count=1,
        unit="transactions",
        peers={"broker": broker.asked(kafkas)},
        floor=writing_each(tmp_path / "floor", sizes, 100),
        growth=Growth("records of a transaction", "transaction", record_count),
        hashed=lambda count: (count, *written(log, record_count + 1)),
    )
    assert log.last_stable_offset == log.log_end_offset == count * (record_count + 1)


@pytest.fixture(scope="module", params=steps(1, 1000, 1_000_000))
def log(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Opened]:
    """Yield a log with so many open transactions, their number, and a copy of its directory for Kafka."""
    directory = tmp_path_factory.mktemp("markers") / NAME
    directory.mkdir()
    write_producers(directory / SEGMENT, request.param, is_transactional=True, now_ms=now_ms())
    copy = twin(directory)
    log = opened(directory, was_clean=False)
    yield log, request.param, copy
    log.close()


def test_transaction_beside_open_ones(measured: Measured, kafka: WarmKafka, log: Opened, tmp_path: Path) -> None:
    opened_log, open_count, directory = log
    batch, sequence = values(1), 0

    def transact() -> int:
        nonlocal sequence
        opened_log.append_records(
            batch, producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=sequence, is_transactional=True
        )
        opened_log.append_end_transaction(PRODUCER_ID, 0, is_commit=True, coordinator_epoch=0, transaction_version=1)
        sequence += 1
        return opened_log.last_stable_offset

    kafkas = HeldLog(kafka, directory, PRODUCER_ID)

    def kafkas_transaction() -> float:
        # the first open transaction began at offset 0: it is the last stable offset however many end
        return kafkas.seconds("mark", KAFKA_CALL_COUNT, expected_count=0)

    stable = measured(
        transact,
        title=f"transaction, marker and LSO beside {open_count:,} open ones",
        size=sum(WRITTEN_SIZES),
        count=1,
        unit="transactions",
        peers={"Kafka": kafkas_transaction},
        floor=writing_each(tmp_path / "floor", WRITTEN_SIZES, 1000),
        growth=Growth("open transactions", "transaction, marker, LSO", open_count),
        hashed=lambda stable: (stable, *written(opened_log, 2)),
    )
    kafkas.release()
    assert stable == 0
    assert opened_log.log_end_offset == open_count + 2 * sequence


def test_last_stable_offset_of_transactions(measured: Measured, log: Opened) -> None:
    opened_log, open_count, _ = log
    growth = Growth("open transactions", "LSO", open_count)
    title = f"LSO of {open_count:,} open transactions"
    look = {"count": 1, "unit": "looks", "growth": growth, "floor": "a word of memory: less than a call"}
    assert measured(lambda: opened_log.last_stable_offset, title=title, **look) == 0
    assert opened_log.state.producers.state.transactions.ongoing_count == open_count


@pytest.fixture(scope="module", params=steps(1, 100, 10_000))
def crowded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, int]]:
    """Yield a store with its timers, so many open transactions and ten times as many groups; and their number."""
    open_count: int = request.param
    with logstore.open(tmp_path_factory.mktemp("crowded") / "data", config=HOUSEKEEPING) as store:
        store.create_topic("orders", partitions=1)
        transactions, log = store.transactions, store.log(*PLACE)
        for number in range(open_count):
            name = f"open-{number}"
            identity = transactions.init_producer_id(name, TIMEOUT_MS)
            log.append_records(
                [b"pending"],
                producer_id=identity.producer_id,
                producer_epoch=identity.producer_epoch,
                base_sequence=0,
                is_transactional=True,
                guard=transactions.begin_append(name, identity, PLACE, sequence=0),
            )
        for number in range(GROUPS_PER_TRANSACTION * open_count):
            store.groups.commit(ConsumerGroupMetadata(f"group-{number}"), {PLACE: OffsetAndMetadata(number)})
        yield store, open_count
        assert sum(each.state is TransactionState.ONGOING for each in store.transactions) == open_count
        assert not store.failures  # of what keeps house


def committed_offset(store: Store) -> int:
    """Return the committed offset of GROUP."""
    committed = store.groups.fetch(GROUP, [PLACE])[PLACE]
    assert committed is not None
    return committed.offset


def test_transaction_commit_beside_open_ones(measured: Measured, crowded: tuple[Store, int], tmp_path: Path) -> None:
    """Commit one record and one offset in a store that has many open transactions."""
    store, open_count = crowded
    producer, log, count = store.producer(transactional_id=GROUP), store.log(*PLACE), 0
    producer.init_transactions()
    first_offset = log.log_end_offset

    def commit() -> None:
        nonlocal count
        count += 1
        producer.begin_transaction()
        producer.send("orders", b"v" * 100)
        producer.send_offsets_to_transaction({PLACE: count}, GROUP)
        producer.commit_transaction()

    commit()  # the first one adds more
    measured(
        commit,
        title=f"a transaction of a record and an offset, in a store with {open_count:,} open ones",
        count=1,
        unit="transactions",
        floor=writing_each(tmp_path / "floor", sizes_of_one(Path(store.path), commit), 100),
        growth=Growth("open transactions", "commit of a store", open_count),
    )
    assert committed_offset(store) == count
    assert log.log_end_offset - first_offset == 2 * count  # each with its marker


def test_group_commit_beside_others(measured: Measured, crowded: tuple[Store, int], tmp_path: Path) -> None:
    store, open_count = crowded
    group_count, count = GROUPS_PER_TRANSACTION * open_count, 0

    def commit() -> None:
        nonlocal count
        count += 1
        store.groups.commit(ConsumerGroupMetadata(GROUP), {PLACE: OffsetAndMetadata(count)})

    measured(
        commit,
        title=f"an offset of a group, in a store with {group_count:,} groups",
        count=1,
        unit="commits",
        floor=writing_each(tmp_path / "floor", sizes_of_one(Path(store.path), commit), 100),
        growth=Growth("groups", "commit of an offset", group_count),
    )
    assert committed_offset(store) == count
