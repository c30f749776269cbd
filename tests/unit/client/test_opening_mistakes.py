"""Directories that are opened by mistake, and what is left of what is gone: each is told, or given up."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import Any

import pytest

import logstore
from logstore import clock
from logstore.client.store import Store
from logstore.errors import DataDirectoryError, LogstoreError, UsageError
from logstore.store import timers
from logstore.store.timers import Timers
from tests.support.stores import LONG_MS

TOPICS = {"t": 1}


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("name", ["t-0", "__cluster_metadata-0"])
def test_a_partition_is_no_store(store: Store, name: str, read_only: bool) -> None:
    store.log("t", 0).append_records([b"v"])
    store.close()
    with pytest.raises(DataDirectoryError, match=f"This is a partition.*{name}.*open its parent, {store.path}$"):
        logstore.open(Path(store.path) / name, read_only=read_only)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("content", ["readme.txt", "pictures/one.png", "dbus-1/services/one.conf"])
def test_a_directory_of_something_else_is_no_store(tmp_path: Path, content: str, read_only: bool) -> None:
    file = tmp_path / "else" / content
    file.parent.mkdir(parents=True)
    file.write_text("x")
    (tmp_path / "else" / "other.txt").write_text("x")
    with pytest.raises(LogstoreError, match=r"not a Kafka data directory|should only contain Kafka|no partition"):
        logstore.open(tmp_path / "else", read_only=read_only)
    assert not (tmp_path / "else" / "meta.properties").exists()


def test_a_store_that_this_process_has_open_is_named(store: Store) -> None:
    with pytest.raises(DataDirectoryError) as raised:
        logstore.open(store.path)
    assert "this process itself, by <Store" in str(raised.value)
    assert "stop that process" not in str(raised.value)


def test_a_closed_store_says_so_of_a_log_that_it_never_opened(tmp_path: Path) -> None:
    with logstore.open(tmp_path / "data") as store:
        store.create_topic("t")
    store = logstore.open(tmp_path / "data")
    store.close()
    with pytest.raises(UsageError, match="The store is closed"):
        store.log("t", 0)


def test_a_producer_forgets_topics_that_are_gone(store: Store) -> None:
    with store.producer(linger_ms=LONG_MS) as producer:
        for number in range(10):
            store.create_topic(f"t{number}")
            producer.send(f"t{number}", b"v")
            producer.flush()
            store.delete_topic(f"t{number}")
        assert len(producer._buffer._topics) == 1


def test_records_whose_keys_are_ignored_are_sent_fast(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with store.producer(linger_ms=LONG_MS, partitioner_ignore_keys=True) as producer:
        producer.send("t", b"0", b"k")
        monkeypatch.setattr(producer, "_send", None)
        producer.send("t", b"1", b"k")
        producer.send("t", b"2")
    assert [(record.key, record.value) for record in store.read("t")] == [(b"k", b"0"), (b"k", b"1"), (None, b"2")]


def test_a_clock_that_fails_stops_no_timers(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(timers, "CLOCK_WAIT_MS", 1)
    calls: list[int] = []
    failing = [False]

    def ticks_ms() -> int:
        if failing[0]:
            raise ZeroDivisionError("of the clock")
        return int(clock.monotonic_s() * 1000)

    running = Timers(ticks_ms)
    running.add("count", 1, lambda: calls.append(1))
    with caplog.at_level(logging.WARNING, "logstore"):
        running.start()
        failing[0] = True
        end_s = clock.monotonic_s() + 30
        while "clock" not in running.failures and clock.monotonic_s() < end_s:
            pass
        assert isinstance(running.failures["clock"], ZeroDivisionError)
        failing[0] = False
        count = len(calls)
        while (len(calls) <= count or "clock" in running.failures) and clock.monotonic_s() < end_s:
            pass
    assert len(calls) > count
    assert "clock" not in running.failures
    running.stop()
    assert "The clock failed" in caplog.text


@pytest.mark.parametrize("path", ["new/.", "new/../other", "./new//./deep/."])
def test_dots_in_a_path_that_is_not_there_yet(tmp_path: Path, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    logstore.open(path).close()
    assert (tmp_path / path / "meta.properties").exists()


def test_a_working_directory_that_is_gone_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    for call in (logstore.open, logstore.audit, logstore.dump):
        with pytest.raises(UsageError, match=r"The working directory is gone.*give an absolute path"):
            call("data")
    logstore.open(tmp_path / "data").close()


@pytest.mark.parametrize(
    "how",
    [
        {"now_ms": 5},
        {"now_ms": time.time},
        {"config": "num.partitions=3"},
        {"config": {5: 1}},
        {"accept_loss": "no"},
        {"read_only": "no"},
    ],
)
def test_an_opening_names_a_wrong_argument(tmp_path: Path, how: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="found"):
        logstore.open(tmp_path / "data", **how)
    assert not (tmp_path / "data").exists()
