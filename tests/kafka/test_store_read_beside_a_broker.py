"""`logstore.open(path, read_only=True)` beside an unmodified broker: what its clients see, and nothing is touched."""

from __future__ import annotations

import itertools
import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import logstore
from logstore.errors import DataDirectoryError, UnknownTopicOrPartitionError
from logstore.model import FetchIsolation
from logstore.store.read_only import ReadOnlyStore
from logstore_tools.commands import logstore as command_line
from tests.kafka.broker import Broker
from tests.kafka.oracle import Oracle
from tests.kafka.test_store_against_kafka import ask

pytestmark = pytest.mark.kafka

LEDGER = (("ledger", 0), ("ledger", 1))


def values(store: ReadOnlyStore, topic: str, partition: int, isolation: FetchIsolation) -> list[str]:
    records = store.log(topic, partition).records(isolation=isolation)
    return [f"{one.offset}:{(one.value or b'').decode()}" for chunk in records.chunks() for one in chunk.to_records()]


def look(store: ReadOnlyStore, got: dict[tuple[str, int], list[list[str]]]) -> None:
    """Topics and their partitions as they are now; what was committed before is still what comes first."""
    store.refresh()
    for place in LEDGER:
        try:
            log = store.log(*place)
        except UnknownTopicOrPartitionError:
            continue  # made a moment later
        log.refresh()
        assert log.problem is None
        got.setdefault(place, []).append(values(store, *place, FetchIsolation.READ_COMMITTED))


def seen(store: ReadOnlyStore, state: dict[str, Any]) -> dict[str, Any]:
    """What the broker's clients tell of topics, told by the store."""
    topics = {}
    for name, topic in store.topics.items():
        topics[name] = {"id": topic.topic_id, "partitions": topic.partition_count, "config": dict(topic.config)}
        if "read" in state["topics"][name]:
            topics[name]["read"] = [partition_seen(store, name, number) for number in range(topic.partition_count)]
    return topics


def partition_seen(store: ReadOnlyStore, topic: str, number: int) -> dict[str, Any]:
    bounds = store.log(topic, number).bounds
    return {
        "start": bounds.log_start_offset,
        "end": bounds.log_end_offset,
        "stable": bounds.last_stable_offset,
        "values": values(store, topic, number, FetchIsolation.READ_COMMITTED),
    }


def groups(root: Path) -> dict[str, dict[str, int]]:
    """Committed offsets as `logstore groups` tells them."""
    result = CliRunner().invoke(command_line, ["groups", "--format", "json", str(root)])
    assert result.exit_code == 0, result.output
    told: dict[str, dict[str, int]] = {}
    for row in json.loads(result.output):
        told.setdefault(row["group"], {})[f"{row['topic']}-{row['partition']}"] = row["offset"]
    return told


def test_a_store_that_is_read_only_sees_what_clients_see(oracle: Oracle, tmp_path: Path) -> None:
    root = tmp_path / "data"
    broker = Broker(oracle, root, {}, [])
    with broker.running(signal.SIGTERM) as address, logstore.open(root, read_only=True) as store:
        with pytest.raises(DataDirectoryError, match=r"Failed to acquire lock on file \.lock"):
            logstore.open(root)
        got: dict[tuple[str, int], list[list[str]]] = {}
        with ThreadPoolExecutor(1) as pool:
            work = pool.submit(ask, oracle, address, "work", tmp_path)
            while not work.done():
                look(store, got)
            work.result()
        look(store, got)
        state = ask(oracle, address, "state", tmp_path)
        before = {path: os.stat(path).st_mtime_ns for path in root.rglob("ledger-*/*")}
        look(store, got)
        assert seen(store, state) == state["topics"]
        assert groups(root) == {
            group: {place: int(text.split()[0]) for place, text in offsets.items()}
            for group, offsets in state["groups"].items()
        }
        assert values(store, "ledger", 0, FetchIsolation.READ_COMMITTED) == ["0:plain", "1:paid"]
        everything = ["0:plain", "1:paid", "3:never", "5:pending"]
        assert values(store, "ledger", 0, FetchIsolation.READ_UNCOMMITTED) == everything
        assert {path: os.stat(path).st_mtime_ns for path in root.rglob("ledger-*/*")} == before

        ask(oracle, address, "finish", tmp_path)
        look(store, got)
        assert values(store, "ledger", 0, FetchIsolation.READ_COMMITTED)[2:] == ["7:again", "9:fresh"]
        for looks in got.values():
            assert len(looks) > 3
            for earlier, later in itertools.pairwise(looks):
                assert later[: len(earlier)] == earlier
