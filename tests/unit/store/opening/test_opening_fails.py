"""What an opening finishes, what it leaves to the next one when it fails or is interrupted; and who closes."""

from __future__ import annotations

import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import logstore
from logstore.coordinator.transactions.transitions import COMPLETE_ABORT
from logstore.disk.seam import Seam
from logstore.errors import KafkaStorageError
from logstore.layout.clean_shutdown import FILE_NAME
from logstore.model import FetchIsolation
from logstore.store import data_directory as stores
from logstore.store.transactions import coordinator as transactions
from tests.support.stores import begun


def crashed(tmp_path: Path) -> Path:
    """A directory with an open transaction of which a power failure took what the coordinator wrote."""
    with logstore.open(tmp_path / "running") as store:
        store.create_topic("t", partitions=1)
        producer = begun(store, "a")
        producer.send("t", b"undecided")
        producer.flush()
        copy = Path(shutil.copytree(tmp_path / "running", tmp_path / "crashed"))
    for path in copy.glob("__transaction_state-*/*.log"):
        os.truncate(path, 0)
    return copy


@pytest.mark.parametrize("error", [KafkaStorageError("the disk is full"), KeyboardInterrupt()], ids=["error", "ctrl-c"])
def test_the_next_opening_reconciles_after_a_failed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    path = crashed(tmp_path)

    def failing(*_: Any) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(transactions, "reconcile", failing)
        with pytest.raises(type(error)):
            logstore.open(path)
    assert not (path / FILE_NAME).exists()
    with logstore.open(path) as store:
        log = store.log("t", 0)
        assert log.last_stable_offset == log.log_end_offset == 2  # the record, and the marker that aborts
        assert list(log.records(isolation=FetchIsolation.READ_COMMITTED).chunks()) == []
        aborted = log.read(0, 1 << 20, FetchIsolation.READ_COMMITTED).aborted_transactions
        assert [one.first_offset for one in aborted or ()] == [0]
    assert (path / FILE_NAME).exists()


def test_an_interrupted_opening_of_what_was_closed_in_order_leaves_it_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logstore.open(tmp_path).close()

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(transactions.TransactionCoordinator, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            logstore.open(tmp_path)
    assert (tmp_path / FILE_NAME).exists()


def test_a_transaction_that_took_too_long_is_aborted_by_the_opening(tmp_path: Path) -> None:
    now_ms = 1_700_000_000_000
    with logstore.open(tmp_path / "running", now_ms=lambda: now_ms) as store:
        store.create_topic("t", partitions=1)
        producer = begun(store, "a")
        producer.send("t", b"undecided")
        producer.flush()
        copy = shutil.copytree(tmp_path / "running", tmp_path / "later")
    timeout_ms = producer.config["transaction.timeout.ms"]
    with logstore.open(copy, now_ms=lambda: now_ms + timeout_ms + 1) as store:
        assert store.transactions.describe("a").state is COMPLETE_ABORT
        log = store.log("t", 0)
        assert log.last_stable_offset == log.log_end_offset == 2


def test_of_two_threads_that_close_a_store_one_does_and_the_other_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = logstore.open(tmp_path)
    both_are_in, stop, write = threading.Barrier(2), opened.directory._timers.stop, stores.write_clean_shutdown
    marked: list[bool] = []

    def stopped() -> None:
        stop()
        both_are_in.wait(60)

    def closed() -> bool:
        opened.close()
        return marked == [True]

    def written(seam: Seam, root: str, broker_epoch: int) -> None:
        write(seam, root, broker_epoch)
        marked.append(True)

    monkeypatch.setattr(opened.directory._timers, "stop", stopped)
    monkeypatch.setattr(stores, "write_clean_shutdown", written)
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(closed) for _ in range(2)]
        assert [job.result(10) for job in jobs] == [True, True]
    assert marked == [True]
