"""Markers that a topic refuses when the store is opened after a crash: of decided transactions, and of orphans."""

from __future__ import annotations

import logging
import os
import shutil
from functools import partial
from pathlib import Path

import pytest

import logstore
from logstore.errors import KafkaStorageError
from logstore.layout.clean_shutdown import FILE_NAME
from logstore.store.transactions.markers import MarkerWriter
from logstore.topics.transaction_state import TransactionState
from tests.recovery.cutting import cut_log
from tests.support.small_store import TransactionalClient, started
from tests.support.stores import FEW_PARTITIONS, begun, values_of

opened = partial(started, topics={"a": 1, "b": 1}, internal_partitions=1)
#: below the size of a marker
TOO_SMALL = {"max.message.bytes": 60}


def fail(*_: object) -> None:
    raise KafkaStorageError("the disk is full")


def end_orphans(store: logstore.Store) -> None:
    store.directory.transactions.end_orphans()


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("is_commit", [True, False])
def test_a_decision_whose_markers_fail_once_at_the_opening_is_not_turned_into_an_abort(
    version: int, is_commit: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path, version=version)
    client = TransactionalClient(store, "x")
    client.send("a", b"1")
    client.send("b", b"2")
    write, tries = MarkerWriter.write, iter((True, True, False))

    def fail_first(*arguments: object) -> None:
        fail() if next(tries, False) else write(*arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(MarkerWriter, "write", fail)
        client.end(is_commit=is_commit)
    store.abandon()
    monkeypatch.setattr(MarkerWriter, "write", fail_first)
    again = opened(tmp_path, version=version)
    again.jobs["transaction-abort"]()
    assert (again.values("a"), again.values("b")) == (([b"1"], [b"2"]) if is_commit else ([], []))
    assert "transaction-orphans" not in again.jobs


def test_a_commit_that_a_topic_refuses_is_there_once_its_configuration_allows_it_after_a_crash(tmp_path: Path) -> None:
    with logstore.open(tmp_path / "running", config=FEW_PARTITIONS) as store:
        for name in ("t", "u"):
            store.create_topic(name, 1)
        producer = begun(store)
        for name in ("t", "u"):
            producer.send(name, b"1")
        producer.flush()
        store.alter_config("t", TOO_SMALL)
        producer.commit_transaction()
        crashed = shutil.copytree(tmp_path / "running", tmp_path / "crashed")
    with logstore.open(crashed) as store:
        assert store.transactions.describe("x").state is TransactionState.PREPARE_COMMIT
        assert (values_of(store, "t"), values_of(store, "u")) == ([], [b"1"])
        store.alter_config("t", {"max.message.bytes": None})
        store.transactions.abort_timed_out()
        assert values_of(store, "t") == [b"1"]


def test_an_orphan_that_a_topic_refuses_to_end_is_tried_again_until_it_is_ended(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with logstore.open(tmp_path / "running", config=FEW_PARTITIONS) as store:
        store.create_topic("t", 1)
        producer = begun(store)
        producer.send("t", b"undecided")
        producer.flush()
        store.alter_config("t", TOO_SMALL)
        crashed = Path(shutil.copytree(tmp_path / "running", tmp_path / "crashed"))
    os.truncate(next(crashed.glob("__transaction_state-0/*.log")), 0)
    with caplog.at_level(logging.WARNING, "logstore"), logstore.open(crashed) as store:
        assert store.log("t", 0).last_stable_offset == 0
        assert "in t-0, and it cannot be ended" in caplog.text
        with pytest.raises(logstore.LogstoreError, match="60"):
            end_orphans(store)
    assert not (crashed / FILE_NAME).exists()  # so that the next opening tries again
    with logstore.open(crashed) as store:
        store.alter_config("t", {"max.message.bytes": None})
        end_orphans(store)
        log = store.log("t", 0)
        assert log.last_stable_offset == log.log_end_offset == 2
        assert values_of(store, "t") == []
        end_orphans(store)
        assert log.log_end_offset == 2
    assert (crashed / FILE_NAME).exists()


@pytest.mark.parametrize("version", [0, 2])
def test_an_orphan_that_cannot_be_ended_keeps_newer_transactions_of_its_producer_out(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path, version=version)
    TransactionalClient(store, "x").send("a", b"orphan")
    store.abandon()
    cut_log(tmp_path / "__transaction_state-0", 1)  # only the beginning of the producer is left
    with monkeypatch.context() as patch:
        patch.setattr(MarkerWriter, "write", fail)
        again = opened(tmp_path, version=version)
        client = TransactionalClient(again, "x")
        with pytest.raises(KafkaStorageError, match="the disk is full"):
            client.send("a", b"newer")
        with pytest.raises(KafkaStorageError, match="the disk is full"):
            again.jobs["transaction-orphans"]()
    assert again.values("a") == []
    client.send("a", b"newer")
    client.end(is_commit=True)
    assert again.values("a") == [b"newer"]
    again.jobs["transaction-orphans"]()


def test_an_orphan_whose_marker_was_written_and_not_synced_gets_no_second_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path)
    client = TransactionalClient(store, "x")
    client.send("a", b"1")
    client.send("b", b"2")
    client.end(is_commit=True)
    store.close()
    cut_log(tmp_path / "b-0", 1)  # its marker is lost
    with monkeypatch.context() as patch:
        patch.setattr(MarkerWriter, "sync", fail)
        again = opened(tmp_path)
    again.jobs["transaction-orphans"]()
    assert again.values("b") == [b"2"]
    assert again.log("b", 0).log_end_offset == 2
