"""Transactions over several partitions stopped before each system call, and the directory opened again.

Two producers write to three partitions and commit offsets; some transactions are aborted, one producer is replaced by
another of the same transactional id. After the end of the process alone (`kept`) the store finds everything again,
after a power failure (`lost`, `torn`) it does if it is durable: each transaction is there as a whole or not at all,
those answered as committed are there, offsets agree with them, nothing stays open, and nobody old can write.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest

from logstore.config.broker import DURABLE_COMMITS
from logstore.coordinator.groups.membership import ConsumerGroupMetadata
from logstore.coordinator.groups.offsets import OffsetAndMetadata
from logstore.coordinator.transactions.outcomes import ProducerIdentity
from logstore.disk.seam import Seam
from logstore.errors import LogstoreError
from tests.crash.lossy_disk import LossyDisk
from tests.crash.points import DRAWS, Point
from tests.support.dice import Dice
from tests.support.small_store import SmallStore, TransactionalClient

STEP_COUNT = 14
IDS = ("x", "y")
PLACES = (("a", 0), ("a", 1), ("b", 0))


@dataclass
class Story:
    """What was done, and what was answered: transactions by name, each with the places it wrote to."""

    written: dict[bytes, set[tuple[str, int]]] = field(default_factory=dict)
    committed: list[bytes] = field(default_factory=list)
    aborted: list[bytes] = field(default_factory=list)


class CrashingStore:
    """A run over a lossy disk, which promises how many transactions were answered as committed and as aborted."""

    def __init__(self, root: Path, seed: str, version: int, *, is_durable: bool) -> None:
        SmallStore(root, version=version, internal_partitions=1).start()
        made = SmallStore(root, version=version, internal_partitions=1).start()
        made.create_topic("a", partitions=2, config={})
        made.create_topic("b", partitions=1, config={})
        made.create_topic("in", partitions=len(IDS), config={})
        made.transactions.init_producer_id("other", 1000)
        made.groups.partition_of("g")
        made.close()
        self.story = Story()
        self.dice = Dice(seed)
        self.disk = LossyDisk(root, seed, promise=self.promise, draws=DRAWS)
        config = {DURABLE_COMMITS: is_durable}
        self.store = SmallStore(
            root, version=version, internal_partitions=1, seam=self.disk, first_producer_id=5000, config=config
        ).start()
        self.clients = {name: TransactionalClient(self.store, name) for name in IDS}
        self.open: dict[str, bytes] = {}
        self.numbers = dict.fromkeys(IDS, 0)

    def promise(self) -> tuple[int, int]:
        return len(self.story.committed), len(self.story.aborted)

    def step(self) -> None:
        dice, name = self.dice, self.dice.choose(IDS)
        client, kind = self.clients[name], self.dice.below(10)
        if kind < 6:
            place = dice.choose(PLACES)
            self.story.written.setdefault(self._transaction(name), set()).add(place)
            client.send(place[0], self._transaction(name), partition=place[1])
        elif kind < 9 and name in self.open:
            transaction, is_commit = self.open[name], dice.chance(70)
            if is_commit:
                self._commit_offset(name, client)
            client.end(is_commit=is_commit)
            (self.story.committed if is_commit else self.story.aborted).append(transaction)
            del self.open[name]
        elif kind == 9:
            self.clients[name] = TransactionalClient(self.store, name)
            if name in self.open:
                self.story.aborted.append(self.open.pop(name))

    def _transaction(self, name: str) -> bytes:
        """The transaction that is open, or the next one."""
        if name not in self.open:
            self.numbers[name] += 1
            self.open[name] = f"{name}{self.numbers[name]}".encode()
        return self.open[name]

    def _commit_offset(self, name: str, client: TransactionalClient) -> None:
        transactions = self.store.transactions
        if self.store.version < 2:
            transactions.add_offsets(name, client.identity, "g")
        transactions.commit_offsets(
            name, client.identity, ConsumerGroupMetadata("g"), {("in", IDS.index(name)): self._offset(name)}
        )

    def _offset(self, name: str) -> OffsetAndMetadata:
        return OffsetAndMetadata(self.numbers[name])


def check(version: int, is_durable: bool, story: Story, promise: tuple[int, int], root: Path, is_kept: bool) -> None:
    """Opens what a crash has left, ends what is open, and looks; a store that is not durable may have lost anything."""
    store = SmallStore(root, version=version, internal_partitions=1, first_producer_id=6000).start()
    zombies = {name: store.transactions.describe(name) for name in IDS if is_known(store, name)}
    clients = {name: TransactionalClient(store, name) for name in IDS}
    if is_durable or is_kept:
        _assert_whole(store, story, promise)
    for place in PLACES:
        log = store.log(*place)
        assert log.last_stable_offset == log.log_end_offset
    for name, zombie in zombies.items():
        with pytest.raises(LogstoreError):
            store.transactions.begin_append(
                name, ProducerIdentity(zombie.producer_id, zombie.producer_epoch), ("a", 0), sequence=0
            )
    for name, client in clients.items():
        client.send("b", name.encode())
        client.end(is_commit=True)
    assert store.values("b")[-2:] == [name.encode() for name in IDS]
    store.close()


def _assert_whole(store: SmallStore, story: Story, promise: tuple[int, int]) -> None:
    """Each transaction is there as a whole or not at all, and offsets agree."""
    seen = {place: store.values(*place) for place in PLACES}
    for transaction, places in story.written.items():
        found = {place for place in PLACES if transaction in seen[place]}
        assert found in ((set(), places) if transaction in story.committed else (set(),)), f"{transaction!r} is torn"
    committed_count, aborted_count = promise
    for transaction in story.committed[:committed_count]:
        assert all(transaction in seen[place] for place in story.written[transaction]), f"{transaction!r} is lost"
    for transaction in story.aborted[:aborted_count]:
        assert not any(transaction in values for values in seen.values()), f"{transaction!r} is back"
    for name in IDS:
        numbers = [int(value[1:]) for values in seen.values() for value in values if value[:1] == name.encode()]
        committed = store.groups.fetch("g", [("in", IDS.index(name))], require_stable=True)["in", IDS.index(name)]
        assert max(numbers, default=0) == (0 if committed is None else committed.offset), f"offset of {name}"


def is_known(store: SmallStore, name: str) -> bool:
    return any(one.transactional_id == name for one in store.transactions)


def points(seed: str, place: Path) -> Iterator[Point]:
    """Work on a store of one of the versions of transactions that still exist, durable or not."""
    dice, root = Dice(seed), place / "store"
    version, is_durable = 1 + dice.below(2), dice.chance(70)
    root.mkdir()
    crashing = CrashingStore(root, seed, version, is_durable=is_durable)
    for _ in range(STEP_COUNT):
        crashing.step()
    for left in crashing.disk.left:
        if is_durable or left.outcome == "kept":
            look = partial(check, version, is_durable, crashing.story, left.promise)
            yield Point.of(left, "store", reopen=partial(reopen, version, is_durable), look=look)


def reopen(version: int, is_durable: bool, root: Path, seam: Seam) -> None:
    """Open and close it as after a crash; all that this writes is synced if the store is durable."""
    config = {DURABLE_COMMITS: is_durable}
    SmallStore(
        root, version=version, internal_partitions=1, first_producer_id=5500, seam=seam, config=config
    ).start().close()
