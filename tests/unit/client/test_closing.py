"""Clients that are closed while something fails, or while other threads use them: nothing else is lost by it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import logstore
from logstore.client import store as client_store
from logstore.client.producer import Producer
from logstore.client.store import Store
from logstore.errors import (
    ConcurrentTransactionsError,
    IllegalStateError,
    KafkaStorageError,
    LogstoreError,
    ProducerFailedError,
    RequestTimedOutError,
    UsageError,
    WakeupError,
)
from tests.support.stores import FEW_PARTITIONS, LONG_MS, begun


def opened(directory: Path) -> Store:
    store = logstore.open(directory / "data", config=FEW_PARTITIONS)
    store.create_topic("t")
    return store


def in_transaction(store: Store, transactional_id: str = "x", max_block_ms: int = 60_000) -> Producer:
    made = begun(store, transactional_id, max_block_ms=max_block_ms)
    made.send("t", b"in transaction").get()
    return made


def fail_ends(store: Store, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Let no transaction be decided."""

    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(store.transactions, "end_transaction", refuse)


class Gate:
    """Lets no transaction be decided before it is opened; tells when one is about to be."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()
        self._end = store.transactions.end_transaction
        monkeypatch.setattr(store.transactions, "end_transaction", self._wait)

    def _wait(self, *arguments: Any, **options: Any) -> Any:
        self.reached.set()
        assert self.opened.wait(60)
        return self._end(*arguments, **options)


class Thread(threading.Thread):
    """A call beside the test."""

    def __init__(self, call: Any) -> None:
        super().__init__(daemon=True)
        self.error: LogstoreError | None = None
        self._call = call
        self.start()

    def run(self) -> None:
        try:
            self._call()
        except LogstoreError as error:
            self.error = error

    def finish(self) -> LogstoreError | None:
        """Its error, when it has ended."""
        self.join(60)
        assert not self.is_alive()
        return self.error


def values(directory: Path) -> list[bytes | None]:
    """What a consumer of what counts gets."""
    with logstore.open(directory / "data") as store:
        consumer = store.consumer("t", auto_offset_reset="earliest", isolation_level="read_committed")
        polled = consumer.poll(0)
        return [record.value for records in polled.values() for record in records]


def test_producers_that_fail_to_close_lose_nobodys_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(tmp_path)
    failing = [in_transaction(store, name) for name in "abc"]
    lingering = [store.producer(linger_ms=LONG_MS).send("t", b"%d" % number) for number in range(5)]
    fail_ends(store, monkeypatch, KafkaStorageError("disk full"))
    with pytest.raises(KafkaStorageError, match="disk full") as raised:
        store.close()
    assert len(raised.value.__notes__) == len(failing) - 1
    assert all(future.succeeded() for future in lingering)
    assert values(tmp_path) == []  # behind what is not decided


def test_a_store_that_fails_to_close_leaves_no_other_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stores = [logstore.open(tmp_path / name) for name in "ab"]
    called: list[Store] = []

    def close(store: Store, **_: bool) -> None:
        called.append(store)
        raise KeyboardInterrupt if len(called) == 1 else KafkaStorageError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(client_store, "_OPEN", stores)
        patched.setattr(Store, "_close_block", close)
        with pytest.raises((KeyboardInterrupt, KafkaStorageError)):
            client_store._close_all()  # as Python does when it exits
    assert called == stores
    for store in stores:
        store.close()


def test_every_future_is_done_when_closing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(tmp_path)
    producer = store.producer(linger_ms=LONG_MS)
    future = producer.send("t", b"1")

    def fail(timeout: float | None = None) -> bool:
        raise KafkaStorageError(f"disk full {timeout}")

    monkeypatch.setattr(producer._buffer, "flush", fail)  # which the error of a log does not end
    with pytest.raises(KafkaStorageError, match="disk full"):
        store.close()
    assert isinstance(future.exception, ProducerFailedError)


@pytest.mark.parametrize("whose", ["store", "producer"])
def test_a_block_keeps_its_error_when_closing_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whose: str
) -> None:
    store = opened(tmp_path)
    producer = in_transaction(store, max_block_ms=1)
    fail_ends(store, monkeypatch, ConcurrentTransactionsError())
    with (
        pytest.raises(RequestTimedOutError, match=r"awaiting EndTxn\(true\)") as raised,
        store if whose == "store" else producer,
    ):
        producer.commit_transaction()
    assert any("Then closing failed: " in note for note in raised.value.__notes__)
    store.close()


@pytest.mark.parametrize("whose", ["store", "producer"])
def test_a_block_without_an_error_raises_that_of_closing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whose: str
) -> None:
    store = opened(tmp_path)
    producer = in_transaction(store)
    fail_ends(store, monkeypatch, KafkaStorageError("disk full"))
    with pytest.raises(KafkaStorageError, match="disk full"), store if whose == "store" else producer:
        pass
    store.close()


@pytest.mark.parametrize("is_commit", [True, False])
def test_closing_waits_for_what_another_thread_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_commit: bool
) -> None:
    store = opened(tmp_path)
    gate = Gate(store, monkeypatch)
    producer = in_transaction(store)
    deciding = Thread(producer.commit_transaction if is_commit else producer.abort_transaction)
    assert gate.reached.wait(60)
    lingering = store.producer(linger_ms=LONG_MS).send("t", b"lingering")
    closing = Thread(store.close)
    closing.join(0.1)
    assert closing.is_alive()
    gate.opened.set()
    assert deciding.finish() is None
    assert closing.finish() is None
    assert lingering.succeeded()
    assert values(tmp_path) == [b"in transaction"] * is_commit + [b"lingering"]


def test_closing_makes_up_for_a_commit_whose_time_was_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(tmp_path)
    producer = in_transaction(store, max_block_ms=50)
    with monkeypatch.context() as patched:
        fail_ends(store, patched, ConcurrentTransactionsError())
        with pytest.raises(RequestTimedOutError):
            producer.commit_transaction()
    store.close()
    assert values(tmp_path) == [b"in transaction"]


def test_closing_aborts_when_a_record_of_a_commit_was_refused_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path)
    producer = in_transaction(store, max_block_ms=50)
    log = store.log("t", 0)
    errors: list[LogstoreError] = []

    def refuse(*_: object, **__: object) -> None:
        raise errors[-1]

    with monkeypatch.context() as patched:
        for way in ("append_as_leader", "append_records"):
            patched.setattr(log, way, refuse)
        errors.append(ConcurrentTransactionsError())
        late = producer.send("t", b"late")
        with pytest.raises(RequestTimedOutError):
            producer.commit_transaction()
        errors.append(KafkaStorageError("disk full"))
        with pytest.raises(KafkaStorageError, match="disk full"):
            late.get(60)
    store.close()
    assert values(tmp_path) == []
    with logstore.open(tmp_path / "data") as again:
        assert again.log("t", 0).last_stable_offset == again.log("t", 0).log_end_offset


def test_after_its_time_closing_releases_a_thread_that_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(tmp_path)
    asked = threading.Event()

    def refuse(*_: object, **__: object) -> None:
        asked.set()
        raise ConcurrentTransactionsError()

    monkeypatch.setattr(store.transactions, "end_transaction", refuse)
    producer = in_transaction(store)
    committing = Thread(producer.commit_transaction)
    assert asked.wait(60)
    producer.close(timeout=0.01)
    error = committing.finish()
    assert isinstance(error, ProducerFailedError)
    assert error.message == "Producer is closed forcefully."
    store.close()


def test_closing_without_a_limit_of_time_ends_the_transaction(tmp_path: Path) -> None:
    store = opened(tmp_path)
    producer = in_transaction(store)
    producer.flush(float("inf"))
    (topic,) = (name for name in store.topics if not name.startswith("__"))
    producer.close(timeout=float("inf"))
    log = store.log(topic, 0)
    assert log.last_stable_offset == log.log_end_offset
    store.close()


def test_a_commit_whose_records_are_given_up_does_not_count(tmp_path: Path) -> None:
    store = opened(tmp_path)
    producer = in_transaction(store)
    flushing, given_up = threading.Event(), threading.Event()

    def flush(_: float) -> bool:
        flushing.set()
        return given_up.wait(60)

    transactions = producer._transactions  # a flush by `commit_transaction` would hold what `close` waits for
    assert transactions is not None
    committing = Thread(lambda: transactions.commit(flush))
    assert flushing.wait(60)
    producer.close(timeout=0)
    given_up.set()
    assert isinstance(committing.finish(), ProducerFailedError)
    store.close()
    assert values(tmp_path) == []


def test_a_callback_of_a_commit_may_close(tmp_path: Path) -> None:
    store = opened(tmp_path)
    producer = begun(store, linger_ms=LONG_MS)
    producer.send("t", b"1").add_callback(lambda _: producer.close())
    assert isinstance(Thread(producer.commit_transaction).finish(), ProducerFailedError)
    plain = store.producer(linger_ms=LONG_MS)
    plain.send("t", b"2").add_callback(lambda _: plain.close())
    assert Thread(plain.close).finish() is None
    store.close()


def test_nothing_begins_in_a_producer_that_closes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(tmp_path)
    gate = Gate(store, monkeypatch)
    producer = in_transaction(store)
    deciding = Thread(producer.commit_transaction)
    assert gate.reached.wait(60)
    closing = Thread(producer.close)
    closing.join(0.1)
    for call in (producer.init_transactions, producer.begin_transaction, producer.abort_transaction):
        with pytest.raises(IllegalStateError, match="Cannot perform operation after producer has been closed"):
            call()
    gate.opened.set()
    assert deciding.finish() is closing.finish() is None
    store.close()


def test_a_member_that_another_thread_uses_while_the_store_closes_waits_for_nothing(tmp_path: Path) -> None:
    store = opened(tmp_path)
    consumer = store.consumer("t", group_id="g")
    consumer.poll()
    with consumer._use:
        closing = threading.Thread(target=store.close)
        closing.start()
        closing.join()
    with pytest.raises(WakeupError):
        consumer.poll()
    with pytest.raises(UsageError, match="The store is closed"):
        consumer.poll()
    consumer.close()
