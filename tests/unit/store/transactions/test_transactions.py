"""The transaction coordinator over real logs: what producers are told, what consumers see, what the logs hold."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from logstore.coordinator.groups.membership import ConsumerGroupMetadata
from logstore.coordinator.groups.offsets import OffsetAndMetadata
from logstore.coordinator.transactions.outcomes import ProducerIdentity
from logstore.coordinator.transactions.transaction import from_record
from logstore.errors import (
    ConcurrentTransactionsError,
    InvalidPidMappingError,
    InvalidProducerEpochError,
    InvalidRequestError,
    InvalidTxnStateError,
    InvalidTxnTimeoutError,
    KafkaStorageError,
    ProducerFencedError,
    ReentrantCallError,
    TransactionAbortableError,
    TransactionalIdNotFoundError,
    TransactionCoordinatorFencedError,
    UnknownTopicOrPartitionError,
    UnstableOffsetCommitError,
)
from logstore.replay.internal_topic import ReplayedRecord, replayed
from logstore.topics.transaction_state import TransactionState
from tests.support.small_store import (
    SmallStore,
    TransactionalClient,
    commit_of_another_coordinator,
    offline,
    restarted_at_epoch,
    started,
    state_log,
)

TOPICS = {"a": 2, "b": 1}
VERSIONS = pytest.mark.parametrize("version", [0, 1, 2])


def logged(store: SmallStore, transactional_id: str) -> list[tuple[str, int, int]]:
    """State, epoch and number of partitions of every record of the transactional id."""
    found = []
    for record in replayed(state_log(store, transactional_id)):
        assert isinstance(record, ReplayedRecord)
        assert record.key is not None
        assert record.value is not None
        one = from_record(record.key, record.value)
        if one.transactional_id == transactional_id:
            found.append((one.state.name, one.producer_epoch, len(one.partitions)))
    return found


@VERSIONS
def test_a_transaction_is_seen_as_a_whole_or_not_at_all(version: int, tmp_path: Path) -> None:
    store = started(tmp_path, TOPICS, version=version)
    client = TransactionalClient(store, "x")
    client.send("a", b"1", b"2")
    client.send("b", b"3")
    assert (store.values("a"), store.values("b")) == ([], [])
    client.end(is_commit=True)
    assert (store.values("a"), store.values("b")) == ([b"1", b"2"], [b"3"])
    client.send("a", b"4")
    client.send("b", b"5")
    client.end(is_commit=False)
    client.send("a", b"6")
    client.end(is_commit=True)
    assert (store.values("a"), store.values("b")) == ([b"1", b"2", b"6"], [b"3"])
    assert store.log("a", 0).last_stable_offset == store.log("a", 0).log_end_offset


def test_the_log_of_a_transaction_is_that_of_the_real_coordinator(tmp_path: Path) -> None:
    store = started(tmp_path, TOPICS)
    client = TransactionalClient(store, "x")
    client.send("a", b"1")
    client.send("b", b"2")
    client.end(is_commit=True)
    client.send("a", b"1")
    client.end(is_commit=False)
    assert logged(store, "x") == [
        ("EMPTY", 0, 0),
        ("ONGOING", 0, 1),
        ("ONGOING", 0, 2),
        ("PREPARE_COMMIT", 1, 2),
        ("COMPLETE_COMMIT", 1, 0),
        ("ONGOING", 1, 1),
        ("PREPARE_ABORT", 2, 1),
        ("COMPLETE_ABORT", 2, 0),
    ]


@VERSIONS
def test_offsets_are_committed_with_the_transaction(version: int, tmp_path: Path) -> None:
    store = started(tmp_path, TOPICS, version=version)
    client = TransactionalClient(store, "x")
    place = ("a", 1)
    if version < 2:
        store.transactions.add_offsets("x", client.identity, "g")
    client.send("b", b"1")
    store.transactions.commit_offsets("x", client.identity, ConsumerGroupMetadata("g"), {place: OffsetAndMetadata(7)})
    assert store.groups.fetch("g", [place]) == {place: None}
    with pytest.raises(UnstableOffsetCommitError):
        store.groups.fetch("g", [place], require_stable=True)
    client.end(is_commit=True)
    committed = store.groups.fetch("g", [place], require_stable=True)[place]
    assert (committed.offset, committed.topic_id) == (7, None)
    store.close()
    again = started(tmp_path, TOPICS, version=version)
    assert again.groups.fetch("g", [place], require_stable=True)[place] == committed


def test_a_zombie_is_fenced_and_its_transaction_is_gone(tmp_path: Path) -> None:
    store = started(tmp_path, TOPICS)
    zombie = TransactionalClient(store, "x")
    zombie.send("a", b"zombie")
    client = TransactionalClient(store, "x")
    assert client.identity == (zombie.identity[0], 2)
    with pytest.raises(InvalidProducerEpochError):
        zombie.send("a", b"zombie")
    with pytest.raises(ProducerFencedError):
        zombie.end(is_commit=True)
    client.send("a", b"1")
    client.end(is_commit=True)
    assert store.values("a") == [b"1"]


@VERSIONS
def test_a_transaction_is_aborted_after_its_timeout(version: int, tmp_path: Path) -> None:
    store = started(tmp_path, TOPICS, version=version)
    client = TransactionalClient(store, "x", timeout_ms=1000)
    client.send("a", b"late")
    store.time_ms += 1000
    store.jobs["transaction-abort"]()
    assert store.transactions.describe("x").state is TransactionState.ONGOING
    store.time_ms += 1
    store.jobs["transaction-abort"]()
    assert store.transactions.describe("x").state is TransactionState.COMPLETE_ABORT
    assert store.log("a", 0).last_stable_offset == store.log("a", 0).log_end_offset
    with pytest.raises((ProducerFencedError, InvalidTxnStateError)):
        client.end(is_commit=True)
    with pytest.raises((ProducerFencedError, InvalidProducerEpochError)):
        client.send("a", b"later")
    assert store.values("a") == []


def test_a_transactional_id_that_nobody_uses_is_forgotten(tmp_path: Path) -> None:
    store = started(tmp_path, TOPICS)
    old, kept = TransactionalClient(store, "x"), TransactionalClient(store, "y")
    kept.send("a", b"1")
    store.time_ms += 7 * 86_400_000
    store.jobs["transactionalId-expiration"]()
    assert [one.transactional_id for one in store.transactions] == ["y"]
    with pytest.raises(InvalidPidMappingError):
        old.send("a", b"2")
    store.close()
    again = started(tmp_path, TOPICS)
    assert [one.transactional_id for one in again.transactions] == ["y"]
    with pytest.raises(TransactionalIdNotFoundError):
        again.transactions.describe("x")


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("distance", [-1, 1])
def test_another_producer_does_not_end_the_transaction(distance: int, version: int, tmp_path: Path) -> None:
    store = started(tmp_path, TOPICS, version=version)
    client = TransactionalClient(store, "x")
    client.send("a", b"1")
    other = client.identity._replace(producer_id=client.identity.producer_id + distance)
    with pytest.raises(InvalidPidMappingError):
        store.transactions.end_transaction("x", other, is_commit=True)
    client.end(is_commit=True)
    assert store.values("a") == [b"1"]


def test_a_timeout_that_the_store_does_not_allow_is_refused(tmp_path: Path) -> None:
    store = SmallStore(tmp_path, config={"transaction.max.timeout.ms": 5000}).start()
    for timeout_ms in (0, 5001):
        with pytest.raises(InvalidTxnTimeoutError):
            store.transactions.init_producer_id("x", timeout_ms)
    assert store.transactions.init_producer_id("x", 5000)[1] == 0
    with pytest.raises(InvalidRequestError):
        store.transactions.init_producer_id("", 5000)
    first, second = store.transactions.init_producer_id(None, 0), store.transactions.init_producer_id(None, 0)
    assert (first[1], second[1], first[0] != second[0]) == (0, 0, True)


def test_epochs_that_are_used_up_bring_a_new_producer_id(tmp_path: Path) -> None:
    store = started(tmp_path, TOPICS)
    client = TransactionalClient(store, "x")
    old_id = client.identity[0]
    store = client.store = restarted_at_epoch(store, "x", 32765)
    client.identity = ProducerIdentity(old_id, 32765)
    for number in range(3):
        client.send("a", str(number).encode())
        client.end(is_commit=True)
    assert client.identity[0] != old_id
    assert client.identity[1] == 1
    assert store.values("a") == [b"0", b"1", b"2"]
    assert TransactionalClient(store, "x").identity == (client.identity[0], 2)


def test_a_topic_that_was_deleted_does_not_hold_a_transaction_up(tmp_path: Path) -> None:
    store = started(tmp_path, TOPICS)
    client = TransactionalClient(store, "x")
    client.send("a", b"1")
    client.send("b", b"2")
    store.delete_topic("b")
    client.end(is_commit=True)
    assert store.values("a") == [b"1"]
    assert store.transactions.describe("x").state is TransactionState.COMPLETE_COMMIT
    with pytest.raises(UnknownTopicOrPartitionError):
        store.transactions.add_partitions("x", client.identity, [("a", 0), ("b", 0)])
    assert store.transactions.describe("x").partitions == frozenset()


def test_a_decision_holds_although_a_marker_cannot_be_written(tmp_path: Path) -> None:
    store = started(tmp_path, TOPICS)
    client = TransactionalClient(store, "x")
    client.send("a", b"1")
    client.send("b", b"2")
    with offline(store.log("b", 0)):
        client.end(is_commit=True)
        assert (store.values("a"), store.values("b")) == ([b"1"], [])
        with pytest.raises(ConcurrentTransactionsError, match="its markers cannot be written") as caught:
            client.send("a", b"3")
        assert isinstance(caught.value.__cause__, KafkaStorageError)
        store.jobs["transaction-abort"]()
        assert store.values("b") == []
    store.jobs["transaction-abort"]()
    assert store.values("b") == [b"2"]
    client.send("a", b"3")
    client.end(is_commit=True)
    assert store.values("a") == [b"1", b"3"]


@VERSIONS
def test_a_decision_is_carried_out_when_the_store_is_opened(version: int, tmp_path: Path) -> None:
    store = started(tmp_path, TOPICS, version=version)
    for name, is_commit in (("x", True), ("y", False)):
        client = TransactionalClient(store, name)
        client.send("a", name.encode())
        client.send("b", name.encode())
        with offline(store.log("b", 0)):
            client.end(is_commit=is_commit)
    left_open = TransactionalClient(store, "z")
    left_open.send("a", b"z")
    store.close()
    again = SmallStore(tmp_path, version=version).start(was_clean=True)
    assert (again.values("a"), again.values("b")) == ([b"x"], [b"x"])
    assert [one.state.name for one in sorted(again.transactions, key=lambda one: one.transactional_id)] == [
        *("COMPLETE_COMMIT", "COMPLETE_ABORT", "ONGOING")
    ]
    again.transactions.end_transaction("z", left_open.identity, is_commit=True)
    assert again.values("a") == [b"x", b"z"]


def test_a_state_that_cannot_be_written_leaves_the_transaction_as_it_was(tmp_path: Path) -> None:
    store = started(tmp_path, TOPICS)
    client = TransactionalClient(store, "x")
    client.send("a", b"1")
    with offline(state_log(store, "x")):
        with pytest.raises(KafkaStorageError, match="already offline"):
            client.end(is_commit=True)
        assert store.transactions.describe("x").state is TransactionState.ONGOING
    client.end(is_commit=False)
    assert store.values("a") == []


def test_a_coordinator_that_another_has_replaced_writes_no_markers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = started(tmp_path, TOPICS)
    client = TransactionalClient(store, "x")
    client.send("a", b"1")
    client.end(is_commit=True)
    commit_of_another_coordinator(client, "a", coordinator_epoch=3)
    client.send("a", b"1")
    client.end(is_commit=True)
    assert store.values("a") == [b"1"]
    calls: list[object] = []
    with monkeypatch.context() as patch:
        patch.setattr(store.log("a", 0), "append_end_transaction", lambda *arguments, **_: calls.append(arguments))
        store.jobs["transaction-abort"]()
    assert calls == []
    with pytest.raises(ConcurrentTransactionsError) as caught:
        client.send("a", b"2")
    assert isinstance(caught.value.__cause__, TransactionCoordinatorFencedError)
    store.close()
    again = SmallStore(tmp_path)
    state_log(again, "x").leader_epoch = 4
    again.start(was_clean=True)
    assert again.values("a") == [b"1", b"1"]


def test_before_version_2_a_partition_must_have_been_added(tmp_path: Path) -> None:
    store = started(tmp_path, TOPICS, version=1)
    client = TransactionalClient(store, "x")
    client.send("b", b"1")
    with pytest.raises(TransactionAbortableError):
        store.transactions.begin_append("x", client.identity, ("a", 0), sequence=0)
    store.config["transaction.partition.verification.enable"] = False
    assert store.transactions.begin_append("x", client.identity, ("a", 0), sequence=0) is not None


@VERSIONS
def test_a_producer_that_is_refused_leaves_nothing_in_the_log(version: int, tmp_path: Path) -> None:
    """What is being verified keeps all appends from the fast path, for up to a day."""
    store = started(tmp_path, TOPICS, version=version)
    client = TransactionalClient(store, "x")
    if version == 2:
        client.identity = ProducerIdentity(client.identity[0] + 1, 0)
    with pytest.raises((TransactionAbortableError, InvalidPidMappingError)):
        store.transactions.begin_append("x", client.identity, ("a", 0), sequence=0)
    assert len(store.log("a", 0).state.producers.state.verification) == 0


def test_a_call_from_inside_of_a_call_is_told_to_come_again(tmp_path: Path) -> None:
    """A clock, or a handler of a signal, must not wait for the call that it interrupts."""
    store = started(tmp_path, TOPICS)
    client = TransactionalClient(store, "x")
    client.send("a", b"1")
    errors = []

    def read_clock() -> int:
        if not errors:
            errors.append(None)
            with pytest.raises(ReentrantCallError):
                store.transactions.end_transaction("x", client.identity, is_commit=False)
        return store.time_ms

    store.now_ms = read_clock  # type: ignore[method-assign]
    client.end(is_commit=True)
    assert errors == [None]
    assert store.values("a") == [b"1"]


def test_many_threads_do_not_get_into_each_others_way(tmp_path: Path) -> None:
    store = started(tmp_path, TOPICS)
    counts = range(8)

    def run(name: str) -> None:
        client = TransactionalClient(store, name)
        for number in counts:
            client.send("a", f"{name}{number}".encode())
            client.send("b", f"{name}{number}".encode())
            client.end(is_commit=number % 2 == 0)

    names = [chr(ord("a") + index) for index in range(6)]
    with ThreadPoolExecutor(len(names)) as threads:
        list(threads.map(run, names))
    expected = {f"{name}{number}".encode() for name in names for number in counts if number % 2 == 0}
    assert set(store.values("a")) == set(store.values("b")) == expected
    assert {one.state for one in store.transactions} == {TransactionState.COMPLETE_ABORT}


def test_a_producer_may_renew_its_epoch(tmp_path: Path) -> None:
    store = started(tmp_path, TOPICS)
    client = TransactionalClient(store, "x")
    renewed = store.transactions.init_producer_id("x", 60_000, client.identity)
    assert renewed == (client.identity[0], 1)
    assert store.transactions.init_producer_id("x", 60_000, client.identity) == renewed
    TransactionalClient(store, "x")
    with pytest.raises(ProducerFencedError):
        store.transactions.init_producer_id("x", 60_000, client.identity)


def test_the_topic_is_made_as_a_broker_makes_it(tmp_path: Path) -> None:
    store = SmallStore(tmp_path, internal_partitions=50).start()
    assert list(store.transactions) == []
    with pytest.raises(TransactionalIdNotFoundError):
        store.transactions.describe("x")
    assert store.topics == {}
    store.transactions.init_producer_id("x", 1000)
    topic = store.topics["__transaction_state"]
    assert topic.partition_count == 50
    assert topic.config == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "1",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }


def test_a_partition_that_cannot_be_written_does_not_keep_others_from_being_looked_after(tmp_path: Path) -> None:
    store = started(tmp_path, TOPICS)
    clients = {name: TransactionalClient(store, name, timeout_ms=1000) for name in ("w", "x", "y", "z")}
    for name, client in clients.items():
        client.send("a", name.encode())
    store.time_ms += 1001
    with offline(state_log(store, "w")), pytest.raises(KafkaStorageError):
        store.jobs["transaction-abort"]()
    found = {one.transactional_id: one.state for one in store.transactions}
    assert {name for name, state in found.items() if state is TransactionState.ONGOING} == {"w"}
    store.time_ms += 8 * 86_400_000
    with offline(state_log(store, "w")), offline(state_log(store, "x")), pytest.raises(KafkaStorageError):
        store.jobs["transactionalId-expiration"]()
    assert {one.transactional_id for one in store.transactions} == {"w", "x"}
