"""Ctrl-C, or an error nobody thought of, between a decision and its completion: it is finished without a restart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from logstore.coordinator.transactions.table import TransactionTable
from logstore.errors import KafkaStorageError
from logstore.replay.internal_topic import replayed
from logstore.store.internal_topic import CoordinatorTopic
from logstore.store.transactions.markers import MarkerWriter
from logstore.topics.transaction_state import PREPARED, TransactionState
from tests.support.small_store import SmallStore, TransactionalClient, started

TOPICS = {"a": 1, "b": 1}
VERSIONS = pytest.mark.parametrize("version", [0, 1, 2])
INTERRUPTIONS = pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
DAY_MS = 86_400_000


def began(store: SmallStore, transactional_id: str = "x") -> TransactionalClient:
    client = TransactionalClient(store, transactional_id)
    client.send("a", b"1")
    client.send("b", b"2")
    return client


def interrupting(
    call: Callable[..., Any], *, at: int, is_before: bool, error: type[BaseException]
) -> Callable[..., Any]:
    """`call`, the time `at` of which is interrupted before it has done its work, or after."""
    count = 0

    def interrupted(*arguments: Any, **named: Any) -> Any:
        nonlocal count
        count += 1
        if is_before and count == at:
            raise error
        result = call(*arguments, **named)
        if count == at:
            raise error
        return result

    return interrupted


def unfinished(store: SmallStore) -> set[str]:
    """The transactional ids to be completed; no public call tells them without completing some."""
    known = [one for state in store.transactions._states for one in state.table]
    return {one.transactional_id for one in known if one.state in PREPARED}


@VERSIONS
@INTERRUPTIONS
@pytest.mark.parametrize("is_before", [True, False])
@pytest.mark.parametrize("step", ["first marker", "second marker", "completion"])
@pytest.mark.parametrize("is_round", [True, False])
def test_an_interrupted_decision_is_finished_by_the_next_round_or_call(
    is_round: bool,
    version: int,
    error: type[BaseException],
    is_before: bool,
    step: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = started(tmp_path, TOPICS, version=version)
    client = began(store)
    owner, name, at = {
        "first marker": (MarkerWriter, "write", 1),
        "second marker": (MarkerWriter, "write", 2),
        "completion": (CoordinatorTopic, "append", 2),  # the first one is the decision
    }[step]
    interrupted = interrupting(getattr(owner, name), at=at, is_before=is_before, error=error)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, lambda *arguments, **named: interrupted(*arguments, **named))
        with pytest.raises(error):
            client.end(is_commit=True)
    assert unfinished(store) == {"x"}
    if is_round:
        store.jobs["transaction-abort"]()
        assert store.transactions.describe("x").state is TransactionState.COMPLETE_COMMIT
    else:
        client.identity = store.transactions.end_transaction("x", client.identity, is_commit=True)
    assert (store.values("a"), store.values("b")) == ([b"1"], [b"2"])
    assert unfinished(store) == set()
    for name in ("a", "b"):
        assert [type(one).__name__ for one in replayed(store.log(name, 0))] == ["ReplayedRecord", "ControlBatch"]
    began(store).end(is_commit=False)
    began(store).end(is_commit=True)
    store.close()
    again = started(tmp_path, TOPICS, version=version)
    assert (again.values("a"), again.values("b")) == ([b"1", b"1"], [b"2", b"2"])


def test_an_interrupted_round_leaves_the_others_for_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = started(tmp_path, {"a": 1}, internal_partitions=1)
    names = {"x", "y", "z"}
    clients = [TransactionalClient(store, name) for name in sorted(names)]
    for client in clients:
        client.send("a", client.transactional_id.encode())

    def fail(*_: object) -> None:
        raise KafkaStorageError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(MarkerWriter, "write", fail)
        for client in clients:
            client.end(is_commit=True)
    assert unfinished(store) == names
    interrupted = interrupting(MarkerWriter.write, at=2, is_before=True, error=KeyboardInterrupt)
    with monkeypatch.context() as patch:
        patch.setattr(MarkerWriter, "write", lambda *arguments: interrupted(*arguments))
        with pytest.raises(KeyboardInterrupt):
            store.jobs["transaction-abort"]()
    assert len(unfinished(store)) == 2
    store.jobs["transaction-abort"]()
    assert unfinished(store) == set()
    assert set(store.values("a")) == {b"x", b"y", b"z"}


@INTERRUPTIONS
@pytest.mark.parametrize("is_before", [True, False])
def test_transactional_ids_may_be_used_after_their_expiry_was_interrupted(
    error: type[BaseException], is_before: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = started(tmp_path, TOPICS)
    began(store).end(is_commit=True)
    store.time_ms += 7 * DAY_MS
    interrupted = interrupting(CoordinatorTopic.append, at=1, is_before=is_before, error=error)
    with monkeypatch.context() as patch:
        patch.setattr(CoordinatorTopic, "append", lambda *arguments, **named: interrupted(*arguments, **named))
        with pytest.raises(error):
            store.jobs["transactionalId-expiration"]()
    assert len(list(store.transactions)) == is_before  # as the log has it
    began(store).end(is_commit=True)
    assert store.values("a") == [b"1", b"1"]
    store.time_ms += 7 * DAY_MS
    store.jobs["transactionalId-expiration"]()
    assert list(store.transactions) == []


def test_transactional_ids_that_expired_before_an_interruption_stay_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SmallStore(tmp_path, internal_partitions=1).start()
    monkeypatch.setattr("logstore.store.internal_topic._BATCH_SIZE_MAX", 1)  # a batch for each tombstone
    for name in ("x", "y", "z"):
        TransactionalClient(store, name)
    store.time_ms += 7 * DAY_MS
    interrupted = interrupting(CoordinatorTopic.append, at=2, is_before=True, error=KeyboardInterrupt)
    with monkeypatch.context() as patch:
        patch.setattr(CoordinatorTopic, "append", lambda *arguments, **named: interrupted(*arguments, **named))
        with pytest.raises(KeyboardInterrupt):
            store.jobs["transactionalId-expiration"]()
    assert [one.transactional_id for one in store.transactions] == ["y", "z"]
    store.jobs["transactionalId-expiration"]()
    assert list(store.transactions) == []


def test_a_transaction_that_was_over_when_it_was_interrupted_is_not_completed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = started(tmp_path, TOPICS)
    client = began(store)
    interrupted = interrupting(TransactionTable.put, at=4, is_before=False, error=KeyboardInterrupt)
    with monkeypatch.context() as patch:
        patch.setattr(TransactionTable, "put", lambda *arguments: interrupted(*arguments))
        with pytest.raises(KeyboardInterrupt):
            client.end(is_commit=True)
    assert unfinished(store) == set()
    began(store)
    store.jobs["transaction-abort"]()
    assert store.transactions.describe("x").state is TransactionState.ONGOING
