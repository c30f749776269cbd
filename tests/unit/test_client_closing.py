"""Clients that are closed while something fails, or while other threads use them: nothing else is lost by it."""

from __future__ import annotations

from pathlib import Path

import pytest

import logstore
from logstore.client import embedded_store
from logstore.client.embedded_store import EmbeddedStore
from logstore.client.producer import Producer
from logstore.errors import ConcurrentTransactionsError, KafkaStorageError, ProducerFailedError, RequestTimedOutError

CONFIG = {"offsets.topic.num.partitions": 2, "transaction.state.log.num.partitions": 2}
LONG_MS = 600_000


def opened(directory: Path) -> EmbeddedStore:
    store = logstore.open(directory / "data", config=CONFIG)
    store.create_topic("t")
    return store


def in_transaction(store: EmbeddedStore, transactional_id: str = "x", max_block_ms: int = 60_000) -> Producer:
    made = store.producer(transactional_id=transactional_id, max_block_ms=max_block_ms)
    made.init_transactions()
    made.begin_transaction()
    made.send("t", b"in transaction").get()
    return made


def fail_ends(store: EmbeddedStore, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Let no transaction be decided."""

    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(store.transactions, "end_transaction", refuse)


def values(directory: Path) -> list[bytes | None]:
    """What a consumer of everything gets."""
    with logstore.open(directory / "data") as store:
        polled = store.consumer("t", auto_offset_reset="earliest").poll(200)
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
    assert sorted(values(tmp_path))[:5] == [b"0", b"1", b"2", b"3", b"4"]  # type: ignore[type-var]


def test_a_store_that_fails_to_close_leaves_no_other_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stores = [logstore.open(tmp_path / name) for name in "ab"]
    called: list[EmbeddedStore] = []

    def close(store: EmbeddedStore) -> None:
        called.append(store)
        raise KeyboardInterrupt if len(called) == 1 else KafkaStorageError("disk full")

    with monkeypatch.context() as patched:
        patched.setattr(embedded_store, "_OPEN", stores)
        patched.setattr(EmbeddedStore, "close", close)
        with pytest.raises((KeyboardInterrupt, KafkaStorageError)):
            embedded_store._close_all()
    assert called == stores
    for store in stores:
        store.close()


def test_every_future_is_done_when_closing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(tmp_path)
    producer = store.producer(linger_ms=LONG_MS)
    future = producer.send("t", b"1")

    def fail(timeout: float | None = None) -> bool:
        raise KafkaStorageError(f"disk full {timeout}")

    monkeypatch.setattr(producer._accumulator, "flush", fail)
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
