"""Ctrl-C at the lines of one call of a store: what was acknowledged is there once, and nothing hangs.

Behind the interrupt three more calls work or say why not, the store closes, and after it is opened again a transaction
is there as a whole or not at all, offsets agree with it, nothing stays open, and topics are there or they are not.
`LOGSTORE_INTERRUPT_STEP` (default 97) is the distance between two lines that are tried, 1 for all of them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from logstore.coordinator.group_offsets import OffsetCommit
from logstore.errors import KafkaStorageError, LogstoreError
from logstore.model import FetchIsolation
from logstore.store.opening import open_as
from logstore.store.schedule import Schedule
from logstore.store.store import Store
from tests.crash.interrupts import LineTracer
from tests.recovery.comparison import UnsyncedSeam
from tests.unit.small_store import TransactionalClient

STEP = int(os.environ.get("LOGSTORE_INTERRUPT_STEP", "97"))
PACKAGES = ("store/", "coordinator/")  # what is below has crash tests of its own
NOW = 1_700_000_000_000
CLOSING_S = 30.0
PLACES = (("a", 0), ("a", 1), ("b", 0))
READ_PLACE = ("a", 1)
CONFIG = {"offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1}


def opened(root: Path) -> Store:
    return open_as(Store, str(root), config=CONFIG, now_ms=lambda: NOW, progress=None, seam=UnsyncedSeam())


@dataclass
class World:
    """A store with a producer in the middle of a transaction, and what was acknowledged."""

    root: Path
    store: Store
    client: TransactionalClient
    offset: int | None = None
    topics: dict[str, int | None] = field(default_factory=dict)  # None: may be there or not

    def commit(self) -> None:
        self.client.end(is_commit=True)

    def abort(self) -> None:
        self.client.end(is_commit=False)

    def commit_offsets(self) -> None:
        self.store.transactions.commit_offsets("x", *self.client.identity, "g", {READ_PLACE: OffsetCommit(7)})

    def init(self) -> None:
        TransactionalClient(self.store, "x")

    def commit_group(self) -> None:
        self.store.groups.commit("g", {READ_PLACE: OffsetCommit(5)})
        self.offset = 5

    def create(self) -> None:
        self.topics["new"] = None
        self.store.create_topic("new", 2, {"retention.ms": 5})
        self.topics["new"] = 2

    def alter(self) -> None:
        self.store.alter_config("b", {"retention.ms": 9})

    def grow(self) -> None:
        self.topics["b"] = None
        self.store.add_partitions("b", 3)
        self.topics["b"] = 3

    def delete(self) -> None:
        self.topics["old"] = None
        self.store.delete_topic("old")
        del self.topics["old"]

    def take_id(self) -> None:
        self.store.next_producer_id()

    def delete_records(self) -> None:
        self.store.log("old", 0).delete_records(1)

    def close(self) -> None:
        self.store.close()

    def __call__(self, name: str) -> Callable[[], object]:
        return getattr(self, name)  # type: ignore[no-any-return]


CALLS = (
    *("commit", "abort", "commit_offsets", "init", "commit_group", "create", "alter", "grow", "delete", "take_id"),
    *("delete_records", "close"),
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which everything is there but what the call makes."""
    root = tmp_path_factory.mktemp("made")
    with opened(root) as store:
        store.create_topic("a", 2)
        for name in ("b", "old"):
            store.create_topic(name, 1)
        store.log("old", 0).append_records([b"1", b"2"])
        store.groups.commit("g", {READ_PLACE: OffsetCommit(3)})
        TransactionalClient(store, "x")
        TransactionalClient(store, "y")
    return root


def world(made: Path, root: Path) -> World:
    shutil.copytree(made, root)
    store = opened(root)
    client = TransactionalClient(store, "x")
    for place in PLACES:
        client.send(place[0], b"x", partition=place[1])
    return World(root, store, client, 3, {"a": 2, "b": 1, "old": 1})


def three_more_calls(here: World, name: str) -> None:
    """They work, unless the store was closing or the writing of a log was interrupted, which says so."""
    store, refusal = here.store, LogstoreError if name == "close" else KafkaStorageError
    for call in (
        lambda: end(TransactionalClient(store, "y")),
        lambda: end(TransactionalClient(store, "x")),
        lambda: commit_offset(here),
        lambda: make(here),
    ):
        with suppress(refusal):
            call()


def end(client: TransactionalClient) -> None:
    client.send("a", client.transactional_id.encode() * 2)
    client.end(is_commit=True)


def commit_offset(here: World) -> None:
    here.store.groups.commit("g", {READ_PLACE: OffsetCommit(9)})
    here.offset = 9


def make(here: World) -> None:
    here.topics["more"] = None
    here.store.create_topic("more", 1)
    here.topics["more"] = 1


def close(store: Store) -> None:
    """Close in another thread: it must not wait for anything that the interrupted one has."""
    with ThreadPoolExecutor(1) as pool, suppress(LogstoreError):
        pool.submit(store.close).result(CLOSING_S)


def open_and_close(root: Path, stores: list[Store]) -> None:
    stores.append(opened(root))
    stores[0].close()


def values(store: Store, topic: str, number: int) -> list[bytes | None]:
    chunks = store.log(topic, number).records(isolation=FetchIsolation.READ_COMMITTED).chunks()
    return [record.value for chunk in chunks for record in chunk.to_records()]


def check(here: World, name: str) -> None:
    with opened(here.root) as store:
        for topic, count in here.topics.items():
            found = store.topics.get(topic)
            assert count is None or (found is not None and found.partition_count == count), topic
        unknown = set(store.topics) - set(here.topics) - {"__consumer_offsets", "__transaction_state"}
        assert unknown == set()
        for topic in set(store.topics) & set(here.topics):
            for number in range(store.topics[topic].partition_count):
                store.log(topic, number).append_records([b"last"])
        assert store.stray_directories == ()
        TransactionalClient(store, "x")
        TransactionalClient(store, "y")
        seen = [values(store, *place).count(b"x") for place in PLACES]
        assert seen in ([0, 0, 0], [1, 1, 1]), "the transaction is torn"
        if name == "commit" and here.client.sequences == {}:
            assert seen == [1, 1, 1], "the transaction is lost"
        assert name == "commit" or seen == [0, 0, 0]
        for place in PLACES:
            assert store.log(*place).last_stable_offset == store.log(*place).log_end_offset
        committed = store.groups.fetch("g", [READ_PLACE], require_stable=True)[READ_PLACE]
        assert committed is not None
        assert committed.offset == here.offset or (name == "commit_group" and committed.offset in (3, 5))
        identities = {store.next_producer_id() for _ in range(3)} | {one.producer_id for one in store.transactions}
        assert len(identities) == 3 + len(list(store.transactions))


@pytest.mark.parametrize("name", CALLS)
def test_a_call_may_be_interrupted(name: str, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Schedule, "start", lambda self: None)
    line = 0
    count = 0
    while True:
        here = world(made, tmp_path / str(line))
        tracer = LineTracer(line, packages=PACKAGES)
        tracer.run(here(name))
        if not tracer.was_interrupted:
            break
        try:
            three_more_calls(here, name)
            close(here.store)
            check(here, name)
        except BaseException as error:
            error.add_note(f"{name} interrupted before line {line}, {tracer.place}")
            raise
        shutil.rmtree(here.root)
        count, line = count + 1, line + STEP
    close(here.store)
    assert count > 0


def test_an_opening_may_be_interrupted(made: Path, tmp_path: Path) -> None:
    line = 0
    while True:
        root = tmp_path / str(line)
        here = world(made, root)
        close(here.store)
        stores: list[Store] = []
        tracer = LineTracer(line, packages=PACKAGES)
        tracer.run(partial(open_and_close, root, stores))
        for store in stores:
            close(store)
        if not tracer.was_interrupted:
            break
        try:
            check(here, "open")
        except BaseException as error:
            error.add_note(f"opening interrupted before line {line}, {tracer.place}")
            raise
        shutil.rmtree(root)
        line += 5 * STEP
