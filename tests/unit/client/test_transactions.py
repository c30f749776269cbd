"""A transactional producer: its states, what each refuses and in which words, and how it goes on after errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import logstore
from logstore import clock
from logstore.client.producer import Producer
from logstore.client.producer.config import parse_producer_config
from logstore.client.producer.states import TransactionManagerState
from logstore.coordinator.groups.membership import ConsumerGroupMetadata
from logstore.coordinator.groups.offsets import OffsetAndMetadata
from logstore.errors import (
    AbortRequiredError,
    CommitFailedError,
    ConcurrentTransactionsError,
    CoordinatorLoadInProgressError,
    FencedInstanceIdError,
    IllegalStateError,
    InvalidPidMappingError,
    InvalidProducerEpochError,
    InvalidTopicError,
    InvalidTxnStateError,
    InvalidTxnTimeoutError,
    KafkaStorageError,
    LogstoreError,
    ProducerFailedError,
    ProducerFencedError,
    RecordTooLargeError,
    Recovery,
    RequestTimedOutError,
    SerializationError,
    TransactionAbortableError,
    TransactionAbortedError,
    UnknownTopicOrPartitionError,
    UsageError,
)
from logstore.model import FetchIsolation
from tests.support.small_store import SmallStore, offline, started
from tests.support.stores import LONG_MS

S = TransactionManagerState


@pytest.fixture(params=[1, 2])
def store(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[SmallStore]:
    opened = started(tmp_path, {"t": 2, "in": 1}, version=request.param)
    yield opened
    opened.close()


def producer(store: SmallStore, transactional_id: str | None = "x", **config: Any) -> Producer:
    values = {"transactional_id": transactional_id, "linger_ms": LONG_MS, "retry_backoff_ms": 1, **config}
    return Producer(store, parse_producer_config(values))  # type: ignore[arg-type]


def ready(store: SmallStore, **config: Any) -> Producer:
    made = producer(store, **config)
    made.init_transactions()
    return made


def begun(store: SmallStore, **config: Any) -> Producer:
    made = ready(store, **config)
    made.begin_transaction()
    return made


def offset(store: SmallStore, group_id: str = "g") -> int | None:
    found = store.groups.fetch(group_id, [("in", 0)])["in", 0]
    return None if found is None else found.offset


def fail(
    store: SmallStore, name: str, *errors: LogstoreError, monkeypatch: pytest.MonkeyPatch
) -> list[tuple[Any, ...]]:
    """Let a method of the coordinator raise these errors first; its calls."""
    real, left, calls = getattr(store.transactions, name), list(errors), []

    def call(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments)
        if left:
            raise left.pop(0)
        return real(*arguments, **options)

    monkeypatch.setattr(store.transactions, name, call)
    return calls


def test_all_of_a_transaction_counts_or_nothing(store: SmallStore) -> None:
    writing = ready(store)
    for number in range(4):
        writing.begin_transaction()
        futures = [writing.send("t", b"%d" % number, partition=partition) for partition in range(2)]
        writing.send_offsets_to_transaction({("in", 0): OffsetAndMetadata(number, "m")}, group_id="g")
        if number % 2:
            writing.abort_transaction()
            assert all(isinstance(future.exception, TransactionAbortedError) for future in futures)
        else:
            writing.commit_transaction()
            assert all(future.succeeded() for future in futures)
        assert offset(store) == number // 2 * 2
    assert [store.values("t", partition) for partition in range(2)] == [[b"0", b"2"]] * 2
    assert writing.state is S.READY


def test_a_transaction_in_which_nothing_happens_is_nobodys_business(
    store: SmallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = fail(store, "end_transaction", monkeypatch=monkeypatch)
    writing = begun(store)
    writing.send_offsets_to_transaction({}, group_id="g")
    writing.commit_transaction()
    writing.begin_transaction()
    writing.abort_transaction()
    assert calls == []


def test_sequences_go_on_or_begin_anew_with_the_epoch(store: SmallStore) -> None:
    writing = ready(store)
    for _ in range(3):
        writing.begin_transaction()
        for _ in range(2):
            writing.send("t", b"x", partition=0)
            writing.flush()
        writing.commit_transaction()
    [entry] = store.log("t", 0).state.producers.state
    epochs = {1: 0, 2: 3}
    assert entry.producer_epoch == epochs[store.version]
    assert [batch.last_sequence for batch in entry.batches] == ([1, 2, 3, 4, 5] if store.version == 1 else [])


def test_an_order_that_does_not_fit_is_refused_in_kafkas_words(store: SmallStore) -> None:
    writing = producer(store)
    invalid = "TransactionalId x: Invalid transition attempted from state {} to state {}"
    with pytest.raises(IllegalStateError, match=invalid.format("UNINITIALIZED", "IN_TRANSACTION")):
        writing.begin_transaction()
    with pytest.raises(IllegalStateError, match="Cannot add partition t-0 to transaction before completing a call"):
        writing.send("t", b"x", partition=0)
    writing.init_transactions()
    with pytest.raises(IllegalStateError, match="Cannot add partition t-0 to transaction while in state  READY"):
        writing.send("t", b"x", partition=0)
    with pytest.raises(IllegalStateError, match=invalid.format("READY", "COMMITTING_TRANSACTION")):
        writing.commit_transaction()
    with pytest.raises(IllegalStateError, match=invalid.format("READY", "ABORTING_TRANSACTION")):
        writing.abort_transaction()
    with pytest.raises(IllegalStateError, match=invalid.format("READY", "INITIALIZING")):
        writing.init_transactions()
    with pytest.raises(IllegalStateError, match=r"Cannot send offsets if a transaction is not in progress"):
        writing.send_offsets_to_transaction({("in", 0): 1}, "g")
    writing.begin_transaction()
    with pytest.raises(IllegalStateError, match=invalid.format("IN_TRANSACTION", "IN_TRANSACTION")):
        writing.begin_transaction()
    assert writing.state is S.IN_TRANSACTION  # nothing of this has done harm
    writing.close()
    closed = "Cannot perform operation after producer has been closed"
    for call in (writing.begin_transaction, lambda: writing.send("t", b"x"), lambda: writing.send_columns("t", [b"x"])):
        with pytest.raises(IllegalStateError, match=closed):
            call()


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({}, "Transactional method invoked on a non-transactional producer."),
        (
            {"enable_idempotence": False},
            "Cannot use transactional methods without enabling transactions by setti",
        ),
    ],
)
def test_a_plain_producer_has_no_transactions(store: SmallStore, config: dict[str, Any], text: str) -> None:
    plain = producer(store, None, **config)
    assert plain.state is None
    calls: list[Callable[[], object]] = [
        plain.init_transactions,
        plain.begin_transaction,
        plain.commit_transaction,
        plain.abort_transaction,
        lambda: plain.send_offsets_to_transaction({("in", 0): 1}, "g"),
    ]
    for call in calls:
        with pytest.raises(IllegalStateError, match=text):
            call()
    plain.close()
    for call in calls:
        with pytest.raises(IllegalStateError, match=text if config else "after producer has been closed"):
            call()


def test_a_producer_that_was_replaced_is_fenced(store: SmallStore) -> None:
    zombie = begun(store)
    zombie.send("t", b"zombie", partition=0)
    zombie.flush()
    heir = ready(store)
    assert store.values("t") == []
    lost = zombie.send("t", b"late", partition=0)
    with pytest.raises((InvalidProducerEpochError, ProducerFencedError)) as raised:
        zombie.commit_transaction()
    assert raised.value.recovery is Recovery.CLOSE
    assert lost.failed()
    if zombie.state is S.ABORTABLE_ERROR:
        with pytest.raises(ProducerFencedError):
            zombie.abort_transaction()
    assert zombie.state is S.FATAL_ERROR
    text = r"Producer with transactionalId 'x' and \(producerId=4000, epoch=0\) has been fenced"
    for call in (
        zombie.begin_transaction,
        zombie.commit_transaction,
        zombie.abort_transaction,
        zombie.init_transactions,
    ):
        with pytest.raises(ProducerFencedError, match=text):
            call()
    zombie.close()
    heir.begin_transaction()
    heir.send("t", b"heir", partition=0)
    heir.commit_transaction()
    assert store.values("t") == [b"heir"]


def test_a_zombie_that_only_commits_is_fenced_and_stays_so(store: SmallStore) -> None:
    zombie = begun(store)
    zombie.send("t", b"zombie", partition=0)
    zombie.flush()
    ready(store)
    with pytest.raises(ProducerFencedError, match="There is a newer producer with the same transactionalId"):
        zombie.commit_transaction()
    assert zombie.state is S.FATAL_ERROR
    # a batch that is under way when another call is fenced; public calls do one after the other
    error = zombie._transactions.error  # type: ignore[union-attr]
    zombie._transactions.batch_failed(InvalidProducerEpochError("of a batch that was under way"))  # type: ignore[union-attr]
    assert zombie.state is S.FATAL_ERROR
    assert zombie._transactions.error is error  # type: ignore[union-attr]


def test_a_zombie_may_not_commit_offsets(store: SmallStore) -> None:
    zombie = begun(store)
    ready(store)
    with pytest.raises(ProducerFencedError):
        zombie.send_offsets_to_transaction({("in", 0): 1}, "g")
    assert zombie.state is S.FATAL_ERROR
    assert offset(store) is None


Send = Callable[[Producer, str, object], object]


@pytest.mark.parametrize("send", [
    lambda producer, topic, value: producer.send(topic, value),
    lambda producer, topic, value: producer.send_columns(topic, [value]),
], ids=["send", "send_columns"])  # fmt: skip
@pytest.mark.parametrize(("topic", "value", "error"), [
    ("__consumer_offsets", b"x", InvalidTopicError),
    ("nowhere", b"x", UnknownTopicOrPartitionError),
    ("t", bytes(1000), RecordTooLargeError),
])  # fmt: skip
def test_a_refusal_of_the_protocol_fails_the_transaction(
    store: SmallStore, send: Send, topic: str, value: bytes, error: type[Exception]
) -> None:
    writing = begun(store, max_request_size=500)
    writing.send("t", b"with the refused one or not at all", partition=0)
    with pytest.raises(error):
        send(writing, topic, value)
    assert writing.state is S.ABORTABLE_ERROR
    with pytest.raises(AbortRequiredError):
        writing.commit_transaction()
    writing.abort_transaction()
    assert store.values("t") == []


def test_a_log_that_cannot_be_opened_fails_the_transaction(store: SmallStore, monkeypatch: pytest.MonkeyPatch) -> None:
    writing = begun(store)

    def fail(*_: object) -> None:
        raise KafkaStorageError("the disk is full")

    monkeypatch.setattr(store, "log", fail)
    with pytest.raises(KafkaStorageError):
        writing.send("t", b"x", partition=0)
    assert writing.state is S.ABORTABLE_ERROR


def test_a_wrong_argument_does_not_fail_the_transaction(store: SmallStore) -> None:
    writing = begun(store)
    writing.send("t", b"x", partition=0)
    with pytest.raises(SerializationError):
        writing.send("t", "no bytes")
    with pytest.raises(UsageError, match="timestamp"):
        writing.send("t", b"y", timestamp_ms=-1)
    with pytest.raises(UsageError, match="partition"):
        writing.send("t", b"y", partition=-1)
    writing.commit_transaction()
    assert store.values("t") == [b"x"]


def test_after_a_failed_record_the_transaction_has_to_be_aborted(store: SmallStore) -> None:
    writing = begun(store, max_request_size=500)
    kept = writing.send("t", b"x", partition=0)
    writing.flush()
    with pytest.raises(RecordTooLargeError):
        writing.send("t", bytes(1000), partition=0)
    assert writing.state is S.ABORTABLE_ERROR
    calls: list[Callable[[], object]] = [
        lambda: writing.send("t", b"x", partition=0),
        lambda: writing.send_offsets_to_transaction({("in", 0): 1}, "g"),
        writing.begin_transaction,
        writing.commit_transaction,
    ]
    for call in calls:
        with pytest.raises(
            AbortRequiredError, match="Cannot execute transactional method because we are in an error"
        ) as e:
            call()
        assert isinstance(e.value.__cause__, RecordTooLargeError)
        assert e.value.recovery is Recovery.ABORT
    writing.abort_transaction()
    assert kept.succeeded()
    writing.begin_transaction()
    writing.send("t", b"y", partition=0)
    writing.commit_transaction()
    assert store.values("t") == [b"y"]


def test_a_commit_fails_with_its_records(store: SmallStore, monkeypatch: pytest.MonkeyPatch) -> None:
    writing = begun(store)
    first, second = writing.send("t", b"1", partition=0), writing.send("t", b"2", partition=1)
    error = InvalidPidMappingError() if store.version == 1 else KafkaStorageError("disk")
    for way in ("append_as_leader", "append_records"):
        monkeypatch.setattr(store.log("t", 0), way, lambda *a, **k: (_ for _ in ()).throw(error))
    with pytest.raises(type(error)):
        writing.commit_transaction()
    assert [first.failed(), second.failed()] == [True, True]
    assert writing.state is (S.FATAL_ERROR if store.version == 1 else S.ABORTABLE_ERROR)


@pytest.mark.parametrize("cause", [CoordinatorLoadInProgressError(), InvalidTxnStateError("not verified")])
def test_errors_that_only_an_abort_helps_against(
    store: SmallStore, monkeypatch: pytest.MonkeyPatch, cause: LogstoreError
) -> None:
    fail(store, "begin_append", cause, cause, monkeypatch=monkeypatch)
    writing = begun(store, retries=1)
    writing.send("t", b"1", partition=0)
    with pytest.raises(
        TransactionAbortableError, match=r"Transaction Request was aborted after exhausting retries\."
    ) as e:
        writing.commit_transaction()
    assert e.value.__cause__ is cause
    writing.abort_transaction()
    assert writing.state is S.READY


def test_calls_are_tried_again_while_transactions_are_concurrent(
    store: SmallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = [ConcurrentTransactionsError() for _ in range(3)]
    for name in ("init_producer_id", "begin_append", "commit_offsets", "end_transaction"):
        fail(store, name, *waits, monkeypatch=monkeypatch)
    writing = begun(store)
    writing.send("t", b"1", partition=0)
    writing.send_offsets_to_transaction({("in", 0): 5}, "g")
    writing.commit_transaction()
    assert store.values("t") == [b"1"]
    assert offset(store) == 5


@pytest.mark.parametrize(
    ("method", "coordinator_method", "awaited", "text"),
    [
        (
            "init_transactions",
            "init_producer_id",
            "InitProducerId",
            "InitTransactions timed out - did not complete",
        ),
        (
            "commit_transaction",
            "end_transaction",
            r"EndTxn\(true\)",
            "CommitTransaction timed out - did not complete",
        ),
        (
            "abort_transaction",
            "end_transaction",
            r"EndTxn\(false\)",
            "AbortTransaction timed out - did not complete",
        ),
    ],
)
def test_a_method_whose_time_was_up_is_called_again_and_nothing_else(
    store: SmallStore,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    coordinator_method: str,
    awaited: str,
    text: str,
) -> None:
    writing = producer(store, max_block_ms=0)
    if method != "init_transactions":
        writing.init_transactions()
        writing.begin_transaction()
        writing.send("t", b"1", partition=0)
        writing.flush()
    fail(store, coordinator_method, ConcurrentTransactionsError(), monkeypatch=monkeypatch)
    with pytest.raises(RequestTimedOutError, match=f"Timeout expired after 0ms while awaiting {awaited}. {text}"):
        getattr(writing, method)()
    names = {
        "init_transactions": "initTransactions",
        "commit_transaction": "commitTransaction",
        "abort_transaction": "abortTransaction",
    }
    pending = names.pop(method)
    for name, kafka_name in names.items():
        words = f"Cannot attempt operation `{kafka_name}` because the previous call to `{pending}` timed out and mu"
        with pytest.raises(IllegalStateError, match=words):
            getattr(writing, name)()
    for call, kafka_name in [
        (writing.begin_transaction, "beginTransaction"),
        (lambda: writing.send("t", b"x"), "send"),
        (lambda: writing.send_offsets_to_transaction({("in", 0): 1}, "g"), "sendOffsetsToTransaction"),
    ]:
        with pytest.raises(IllegalStateError, match=f"Cannot attempt operation `{kafka_name}` because"):
            call()
    getattr(writing, method)()
    assert writing.state is S.READY
    assert store.values("t") == ([b"1"] if method == "commit_transaction" else [])


@pytest.mark.parametrize(
    ("name", "error", "raised", "state"),
    [
        ("end_transaction", InvalidProducerEpochError("old"), ProducerFencedError, S.FATAL_ERROR),
        ("end_transaction", ProducerFencedError(), ProducerFencedError, S.FATAL_ERROR),
        ("end_transaction", InvalidTxnStateError("state"), InvalidTxnStateError, S.FATAL_ERROR),
        ("end_transaction", InvalidPidMappingError(), InvalidPidMappingError, S.FATAL_ERROR),
        ("end_transaction", TransactionAbortableError(), TransactionAbortableError, S.ABORTABLE_ERROR),
        ("end_transaction", KafkaStorageError("disk"), KafkaStorageError, S.FATAL_ERROR),
        ("commit_offsets", ProducerFencedError(), ProducerFencedError, S.FATAL_ERROR),
        ("commit_offsets", TransactionAbortableError(), TransactionAbortableError, S.ABORTABLE_ERROR),
        ("commit_offsets", FencedInstanceIdError(), FencedInstanceIdError, S.ABORTABLE_ERROR),
        ("commit_offsets", KafkaStorageError("disk"), KafkaStorageError, S.FATAL_ERROR),
    ],
)
def test_where_an_answer_leads_to(
    store: SmallStore,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    error: LogstoreError,
    raised: type[LogstoreError],
    state: TransactionManagerState,
) -> None:
    writing = begun(store)
    writing.send("t", b"1", partition=0)
    fail(store, name, error, monkeypatch=monkeypatch)
    call = writing.commit_transaction
    if name == "commit_offsets":
        call = partial(writing.send_offsets_to_transaction, {("in", 0): 1}, "g")
    with pytest.raises(raised):
        call()
    assert writing.state is state
    if state is S.ABORTABLE_ERROR:
        writing.abort_transaction()
        assert writing.state is S.READY
    elif raised is not ProducerFencedError:
        with pytest.raises(ProducerFailedError, match="because we are in an error state"):
            writing.begin_transaction()


def test_an_abort_that_fails_ends_the_producer(store: SmallStore, monkeypatch: pytest.MonkeyPatch) -> None:
    writing = begun(store)
    writing.send("t", b"1", partition=0)
    writing.flush()
    fail(store, "end_transaction", TransactionAbortableError(), monkeypatch=monkeypatch)
    with pytest.raises(ProducerFailedError, match="Failed to abort transaction"):
        writing.abort_transaction()
    assert writing.state is S.FATAL_ERROR


def test_a_timeout_that_is_too_long_is_refused(store: SmallStore) -> None:
    writing = producer(store, transaction_timeout_ms=900_001)
    with pytest.raises(InvalidTxnTimeoutError):
        writing.init_transactions()
    assert writing.state is S.FATAL_ERROR


def test_groups_are_checked_before_anything_is_done(store: SmallStore) -> None:
    writing = begun(store)
    with pytest.raises(UsageError, match="Consumer group metadata could not be null"):
        writing.send_offsets_to_transaction({("in", 0): 1})
    with pytest.raises(UsageError, match=r"has generationId > 0 but the member\.id is unknown"):
        writing.send_offsets_to_transaction({("in", 0): 1}, ConsumerGroupMetadata("g", 1))
    with pytest.raises(UsageError, match="Invalid negative offset; found -1"):
        writing.send_offsets_to_transaction({("in", 0): -1}, "g")
    assert writing.state is S.IN_TRANSACTION
    text = "Transaction offset Commit failed due to consumer group metadata mismatch: "
    with pytest.raises(CommitFailedError, match=text) as raised:
        writing.send_offsets_to_transaction({("in", 0): 1}, ConsumerGroupMetadata("g", 1, "nobody"))
    assert raised.value.recovery is Recovery.ABORT
    assert "Specified group generation id is not valid" in str(raised.value)
    writing.abort_transaction()
    assert offset(store) is None
    writing.begin_transaction()
    writing.send_offsets_to_transaction({("in", 0): 1}, "g")
    with pytest.raises(CommitFailedError, match=f"{text}The coordinator is not aware of this member"):  # of a known one
        writing.send_offsets_to_transaction({("in", 0): 1}, ConsumerGroupMetadata("g", 1, "nobody"))


def test_a_producer_that_was_replaced_in_a_transaction_can_be_closed(store: SmallStore) -> None:
    zombie = ready(store)
    zombie.begin_transaction()
    zombie.send("t", b"v", partition=0)
    zombie.flush()
    ready(store)
    zombie.close()
    with pytest.raises(LogstoreError):
        zombie.begin_transaction()


def test_a_close_aborts_what_is_open(store: SmallStore) -> None:
    with begun(store) as writing:
        writing.send("t", b"1", partition=0)
        writing.flush()
        late = writing.send("t", b"2", partition=0)
    assert isinstance(late.exception, TransactionAbortedError)
    assert store.values("t") == []
    log = store.log("t", 0)
    assert log.last_stable_offset == log.log_end_offset == 2


def test_a_transaction_whose_time_is_up_is_aborted_by_the_coordinator(store: SmallStore) -> None:
    writing = begun(store, transaction_timeout_ms=1000)
    writing.send("t", b"1", partition=0)
    writing.flush()
    store.time_ms += 1001
    store.transactions.abort_timed_out()
    assert store.values("t", isolation=FetchIsolation.READ_UNCOMMITTED) == [b"1"]
    kind = ProducerFencedError if store.version == 1 else TransactionAbortableError
    with pytest.raises(kind, match=r"transaction\.timeout\.ms of 1000 ms") as raised:
        writing.commit_transaction()
    assert store.values("t") == []
    if store.version == 1:  # its epoch was bumped, and an abort with the old one is refused
        assert (raised.value.recovery, writing.state) == (Recovery.CLOSE, S.FATAL_ERROR)
        with pytest.raises(ProducerFailedError, match=r"transaction\.timeout\.ms"):
            writing.abort_transaction()
        return
    assert (raised.value.recovery, writing.state) == (Recovery.ABORT, S.ABORTABLE_ERROR)
    writing.abort_transaction()
    writing.begin_transaction()
    writing.send("t", b"2", partition=0)
    writing.commit_transaction()
    assert store.values("t") == [b"2"]


def test_a_new_epoch_after_an_abort_where_the_commit_brings_none(store: SmallStore) -> None:
    writing = begun(store)
    writing.send("t", b"1", partition=0)
    writing.flush()
    log = store.log("t", 0)
    with offline(log):
        writing.send("t", b"lost", partition=0)
        with pytest.raises(LogstoreError):
            writing.flush()
    writing.abort_transaction()
    writing.begin_transaction()
    writing.send("t", b"2", partition=0)
    writing.flush()
    assert [entry.producer_epoch for entry in log.state.producers.state] == [1]
    writing.commit_transaction()
    assert store.values("t") == [b"2"]


def test_a_commit_whose_time_is_up_says_what_its_records_wait_for(
    store: SmallStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    writing = begun(store, max_block_ms=30_000, delivery_timeout_ms=2**31 - 1)
    full = ConcurrentTransactionsError("its markers cannot be written")
    sent = writing.send("t", b"1", partition=0)
    monotonic_s, late_s = clock.monotonic_s, [0.0]

    def refuse(*_: object, **__: object) -> None:
        late_s[0] += 30.0
        raise full

    monkeypatch.setattr(clock, "monotonic_s", lambda: monotonic_s() + late_s[0])
    with monkeypatch.context() as patched:
        for way in ("append_as_leader", "append_records"):
            patched.setattr(store.log("t", 0), way, refuse)
        with pytest.raises(RequestTimedOutError, match="awaiting EndTxn") as raised:
            writing.commit_transaction()
    assert raised.value.__cause__ is full
    writing.commit_transaction()
    assert sent.succeeded()
    assert store.values("t") == [b"1"]


@pytest.mark.parametrize("is_commit", [True, False])
def test_who_waits_for_a_log_that_has_failed_is_told_so_at_once(
    store: SmallStore, monkeypatch: pytest.MonkeyPatch, is_commit: bool
) -> None:
    writing = begun(store, max_block_ms=LONG_MS)
    writing.send("t", b"1", partition=0)
    writing.flush()
    end = writing.commit_transaction if is_commit else writing.abort_transaction
    log = store.log("t", 0)

    def fail(*_: object, **__: object) -> None:
        log.state.failure.poison("Error while appending records to", OSError("disk full"))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(log, "append_end_transaction", fail)
        with pytest.raises(KeyboardInterrupt):
            end()
    waiting = (end, end, producer(store, max_block_ms=LONG_MS).init_transactions, writing.close)
    for call in waiting:
        with pytest.raises(KafkaStorageError, match="offline due to a previous IO exception") as raised:
            call()
        assert isinstance(raised.value.__cause__, ConcurrentTransactionsError)
    store.abandon()
    again = SmallStore(store.directory, version=store.version).start()
    assert again.values("t", isolation=FetchIsolation.READ_COMMITTED) == [b"1"] * is_commit
    again.close()


def test_a_flush_adds_all_its_partitions_with_one_record_of_the_coordinator(tmp_path: Path) -> None:
    with logstore.open(tmp_path / "data", config={"transaction.state.log.num.partitions": 1}) as store:
        store.create_topic("wide", 50)
        sending = store.producer(transactional_id="x", linger_ms=LONG_MS)
        sending.init_transactions()
        state = store.log("__transaction_state", 0)
        for is_commit in (True, False):
            before = state.log_end_offset
            sending.begin_transaction()
            for number in range(50):
                sending.send("wide", b"v", partition=number)
            sending.flush()
            assert state.log_end_offset == before + 1
            sending.commit_transaction() if is_commit else sending.abort_transaction()
            assert state.log_end_offset == before + 3
        assert {store.log("wide", number).last_stable_offset for number in range(50)} == {4}
        committed = [record.value for record in store.read("wide", isolation_level="read_committed")]
        assert committed == [b"v"] * 50
