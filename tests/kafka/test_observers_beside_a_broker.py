"""One real broker that works, and three who look meanwhile: an audit, readers of all partitions, a read-only store.

Its clients commit, abort, take transactions over, and fill topics that it rolls and cleans.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import logstore
from logstore import ReadOnlyStore
from logstore.audit.directory_audit import AuditedDirectory, audit_directory
from logstore.columns.decoded_records import Record
from logstore.errors import DataDirectoryError, UnknownTopicOrPartitionError
from logstore.layout.file_names import parse_partition_directory
from logstore.model import FetchIsolation
from logstore.view.partition_reader import PartitionReader
from logstore_tools.commands import logstore as command_line
from tests.support.broker import Broker
from tests.support.oracle import Oracle
from tests.support.sampling import IS_LONG
from tests.support.take_over import ask

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

SETTINGS = {"log.cleaner.backoff.ms": "100"}
LEDGER = (("ledger", 0), ("ledger", 1))
PAUSE_S = 0 if IS_LONG else 0.6  # between two looks, so that the broker gets on


class Follower:
    """What a read_committed consumer of one partition has got so far."""

    def __init__(self, directory: Path) -> None:
        self.reader = PartitionReader(str(directory))
        self.position = 0
        self.got: list[Record] = []

    def poll(self) -> None:
        self.reader.refresh()
        bounds = self.reader.bounds
        assert self.reader.problem is None
        self.position = max(self.position, bounds.log_start_offset)
        records = self.reader.records(self.position, isolation=FetchIsolation.READ_COMMITTED)
        for chunk in records.chunks():
            assert int(chunk.offset[0]) >= self.position
            self.got += chunk.to_records()
            self.position = chunk.next_offset
        assert self.position <= bounds.last_stable_offset
        self.position = max(self.position, records.position)


@dataclass
class Observers:
    """The three, and what they saw.

    Attributes:
        looks: of the ledger's partitions what was committed, look by look.
        told: by the store and the command line when the first clients were done, and `state`: by a client.
    """

    root: Path
    store: ReadOnlyStore
    audits: list[AuditedDirectory] = field(default_factory=list)
    followers: dict[str, Follower] = field(default_factory=dict)
    looks: dict[tuple[str, int], list[list[str]]] = field(default_factory=dict)
    told: dict[str, Any] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)

    def look(self) -> None:
        """All three, once."""
        self.audits.append(audit_directory(str(self.root), time.time_ns() // 1_000_000))
        self.poll()
        self.look_at_the_ledger()

    def poll(self) -> None:
        """The followers, of new partitions too."""
        for path in sorted(self.root.iterdir()):
            if path.is_dir() and path.name not in self.followers and parse_partition_directory(path.name) is not None:
                self.followers[path.name] = Follower(path)
        for follower in self.followers.values():
            follower.poll()

    def look_at_the_ledger(self) -> None:
        """What was committed before has to be what comes first, see below."""
        self.store.refresh()
        for place in LEDGER:
            try:
                log = self.store.log(*place)
            except UnknownTopicOrPartitionError:
                continue  # made a moment later
            log.refresh()
            assert log.problem is None
            self.looks.setdefault(place, []).append(self.values(*place, FetchIsolation.READ_COMMITTED))

    def values(self, topic: str, partition: int, isolation: FetchIsolation) -> list[str]:
        records = self.store.log(topic, partition).records(isolation=isolation)
        return [f"{one.offset}:{(one.value or b'').decode()}" for part in records.chunks() for one in part.to_records()]

    def compare(self, state: dict[str, Any]) -> None:
        """Keep what the broker's client told, and the same as the store and the command line tell it."""
        self.state = state
        before = self._times()
        self.look_at_the_ledger()
        self.told["topics"] = self._topics()
        self.told["groups"] = self._groups()
        for isolation in (FetchIsolation.READ_COMMITTED, FetchIsolation.READ_UNCOMMITTED):
            self.told[isolation] = self.values("ledger", 0, isolation)
        self.told["untouched"] = self._times() == before

    def _times(self) -> dict[Path, int]:
        return {path: os.stat(path).st_mtime_ns for path in self.root.rglob("ledger-*/*")}

    def _topics(self) -> dict[str, Any]:
        topics = {}
        for name, topic in self.store.topics.items():
            topics[name] = {"id": topic.topic_id, "partitions": topic.partition_count, "config": dict(topic.config)}
            if "read" in self.state["topics"][name]:
                topics[name]["read"] = [self._partition(name, number) for number in range(topic.partition_count)]
        return topics

    def _partition(self, topic: str, number: int) -> dict[str, Any]:
        bounds = self.store.log(topic, number).bounds
        return {
            "start": bounds.log_start_offset,
            "end": bounds.log_end_offset,
            "stable": bounds.last_stable_offset,
            "values": self.values(topic, number, FetchIsolation.READ_COMMITTED),
        }

    def _groups(self) -> dict[str, dict[str, int]]:
        """Committed offsets as `logstore groups` tells them."""
        result = CliRunner().invoke(command_line, ["groups", "--format", "jsonl", str(self.root)])
        assert result.exit_code == 0, result.output
        told: dict[str, dict[str, int]] = {}
        for row in map(json.loads, result.output.splitlines()):
            told.setdefault(row["groupId"], {})[f"{row['topic']}-{row['partition']}"] = row["offset"]
        return told


@pytest.fixture(scope="module")
def observers(oracle: Oracle, tmp_path_factory: pytest.TempPathFactory) -> Observers:
    """What was seen, when the broker has ended."""
    place = tmp_path_factory.mktemp("beside")
    root = place / "data"
    broker = Broker(oracle, root, SETTINGS, [])
    with (
        broker.running(signal.SIGTERM) as address,
        logstore.open(root, read_only=True) as store,
        ThreadPoolExecutor(1) as pool,
    ):
        found = Observers(root, store)
        with pytest.raises(DataDirectoryError, match=r"Failed to acquire lock on file \.lock"):
            logstore.open(root)

        def work(main_class: str, *arguments: str) -> None:
            done = pool.submit(oracle.run, main_class, address, *arguments, cwd=place)
            while wait([done], PAUSE_S).not_done:
                found.look()
            done.result()
            found.look()

        work("TakeOver", "work")
        [state] = ask(oracle, address, place, "state")
        found.compare(state)
        work("TakeOver", "finish")
        work("GoldenTransactions")
        work("GoldenCompacted", str(root))
    found.audits.append(audit_directory(str(root), time.time_ns() // 1_000_000))
    found.poll()
    return found


def test_an_audit_finds_nothing(observers: Observers) -> None:
    assert len(observers.audits) > 5
    assert [finding for audited in observers.audits for finding in audited.findings] == []
    assert observers.audits[-1].transactions.is_closed
    assert not observers.audits[0].transactions.is_closed


def test_followers_got_the_records_that_a_fresh_reader_gets(observers: Observers) -> None:
    followers = observers.followers
    assert sum(len(follower.got) for follower in followers.values()) > 100
    assert {"orders-0", "payments-0", "tombstones-kept-0", "tombstones-dropped-0"} <= followers.keys()
    for partition, follower in followers.items():
        fresh = PartitionReader(str(observers.root / partition))
        assert follower.reader.bounds == fresh.bounds
        left = Follower(observers.root / partition)
        left.poll()
        offsets = [record.offset for record in follower.got]
        assert offsets == sorted(set(offsets))
        # a cleaner may have taken some away since, and added none
        by_offset = {record.offset: record for record in follower.got}
        assert [by_offset.get(record.offset) for record in left.got] == left.got
        if partition.startswith(("orders", "payments", "rolled")):
            assert follower.got == left.got


def test_a_read_only_store_sees_what_clients_see(observers: Observers) -> None:
    told, state = observers.told, observers.state
    assert told["topics"] == state["topics"]
    assert told["groups"] == {
        group: {place: int(text.split()[0]) for place, text in offsets.items()}
        for group, offsets in state["groups"].items()
    }
    assert told[FetchIsolation.READ_COMMITTED] == ["0:plain", "1:paid"]
    assert told[FetchIsolation.READ_UNCOMMITTED] == ["0:plain", "1:paid", "3:never", "5:pending"]
    assert told["untouched"]


def test_later_looks_of_a_read_only_store_only_add_committed_records(observers: Observers) -> None:
    assert observers.looks["ledger", 0][-1][2:] == ["7:again", "9:fresh"]
    for looks in observers.looks.values():
        assert len(looks) > 3
        for earlier, later in itertools.pairwise(looks):
            assert later[: len(earlier)] == earlier
