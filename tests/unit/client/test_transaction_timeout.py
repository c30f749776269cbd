"""A transaction that took too long: its producer hears of the timeout, not of a newer producer that is not there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import logstore
from logstore.client.producer import Producer
from logstore.client.store import Store
from logstore.errors import InvalidPidMappingError, LogstoreError, Recovery, TransactionAbortableError
from tests.support.stores import FEW_PARTITIONS, begun

CALLS: dict[str, Callable[[Producer], Any]] = {
    "commit": lambda producer: producer.commit_transaction(),
    "send": lambda producer: producer.send("t", b"late").get(),
    "send elsewhere": lambda producer: producer.send("u", b"late").get(),
    "send columns": lambda producer: producer.send_columns("t", [b"late"]),
    "send offsets": lambda producer: producer.send_offsets_to_transaction({("t", 0): 1}, "g"),
}


class Clock:
    now_ms = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    clock = Clock()
    with logstore.open(tmp_path / "data", config=FEW_PARTITIONS, now_ms=clock) as store:
        store.create_topic("t")
        store.create_topic("u")
        yield store


def timed_out(store: Store) -> Producer:
    producer = begun(store, transaction_timeout_ms=200, linger_ms=0)
    producer.send("t", b"early").get()
    store.now_ms.now_ms += 60_000  # type: ignore[attr-defined]
    store.transactions.abort_timed_out()
    return producer


@pytest.mark.parametrize("name", CALLS)
def test_the_timeout_is_named_and_an_abort_goes_on(store: Store, name: str) -> None:
    producer = timed_out(store)
    with pytest.raises(TransactionAbortableError, match=r"transaction\.timeout\.ms of 200 ms") as raised:
        CALLS[name](producer)
    assert raised.value.recovery is Recovery.ABORT
    assert "newer producer" not in str(raised.value)
    producer.abort_transaction()
    with producer.transaction():
        producer.send("t", b"next")
    read = [record.value for record in store.read("t", isolation_level="read_committed")]
    assert read == [b"next"]


@pytest.mark.parametrize("name", CALLS)
def test_a_newer_producer_is_named_where_there_is_one(store: Store, name: str) -> None:
    producer = timed_out(store)
    store.producer(transactional_id="x").init_transactions()
    with pytest.raises(LogstoreError) as raised:
        CALLS[name](producer)
    assert "timeout" not in str(raised.value)
    assert raised.value.recovery is Recovery.CLOSE


def test_a_producer_whose_id_has_expired_is_told_to_open_another(store: Store) -> None:
    producer = begun(store)
    producer.abort_transaction()
    store.now_ms.now_ms += store.config["transactional.id.expiration.ms"] + 1  # type: ignore[attr-defined]
    store.transactions.remove_expired()
    with pytest.raises(InvalidPidMappingError) as raised, producer.transaction():
        producer.send("t", b"lost")
    assert raised.value.recovery is Recovery.CLOSE
    assert "transactional.id.expiration.ms" in str(raised.value.advice)
    with begun(store) as another:
        another.send("t", b"kept")
        another.commit_transaction()
    assert [record.value for record in store.read("t")] == [b"kept"]


def test_what_timed_out_is_forgotten_with_its_id(store: Store) -> None:
    timed_out(store)
    (state,) = store.transactions._states
    assert list(state.timed_out) == ["x"]
    store.now_ms.now_ms += store.config["transactional.id.expiration.ms"] + 1  # type: ignore[attr-defined]
    store.transactions.remove_expired()
    assert state.timed_out == {}
