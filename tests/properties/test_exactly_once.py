"""Consume, transform, produce over the coordinators alone: whatever is done, each input is in the output exactly once.

Workers share the input as members of a group, and write to the output and commit their offsets in transactions. They
abort, fall silent and go on as zombies, are replaced, time out; the store ends without being closed, and is
opened again.
`LOGSTORE_EXACTLY_ONCE_CASES` (for each version) is the number of runs.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from logstore.client.consumer.assignors import ASSIGNORS
from logstore.coordinator.groups.membership import ConsumerGroupMetadata, Joining
from logstore.coordinator.groups.offsets import OffsetAndMetadata
from logstore.errors import LogstoreError, RebalanceInProgressError, UnstableOffsetCommitError
from tests.support.dice import Dice
from tests.support.sampling import case_count
from tests.support.small_store import SmallStore, TransactionalClient

CASE_COUNT = case_count("LOGSTORE_EXACTLY_ONCE_CASES", sample=3, whole=12)
STEP_COUNT = 200
INPUTS = [f"{partition}-{number}".encode() for partition in range(3) for number in range(20)]
SLOTS = ("w0", "w1", "w2")


@dataclass
class Worker:
    """A consumer and producer; `slot` is its transactional id, which the worker that takes its place has as well."""

    store: SmallStore
    slot: str
    number: int
    member: ConsumerGroupMetadata = field(init=False)
    client: TransactionalClient = field(init=False)
    partitions: tuple[tuple[str, int], ...] = ()
    positions: dict[tuple[str, int], int] = field(default_factory=dict)
    has_open: bool = False
    has_sent_offsets: bool = False

    def __post_init__(self) -> None:
        self.member = ConsumerGroupMetadata("g", member_id=f"{self.slot}-{self.number}")
        self.client = TransactionalClient(self.store, self.slot, timeout_ms=60_000)
        self.join()

    def join(self) -> None:
        topics = Joining(
            member_id=self.member.member_id, topics=("in",), rebalance_timeout_ms=20_000, assignors=ASSIGNORS
        )
        self.store.groups.join("g", topics)
        self.partitions = ()

    def is_assigned(self) -> bool:
        """Whether it may read; an open transaction is aborted when the partitions go to others."""
        try:
            if self.partitions:
                self.store.groups.heartbeat(self.member)
                return True
            assignment = self.store.groups.sync("g", self.member.member_id)
        except RebalanceInProgressError:
            self.abort()
            self.join()
            return False
        if assignment is None:
            return False
        self.member = ConsumerGroupMetadata("g", assignment.generation, self.member.member_id)
        try:
            self.reset(assignment.partitions)
        except UnstableOffsetCommitError:  # somebody's transaction is about to move them
            return False
        self.partitions = assignment.partitions
        return bool(self.partitions)

    def reset(self, partitions: tuple[tuple[str, int], ...]) -> None:
        found = self.store.groups.fetch("g", partitions, require_stable=True)
        self.positions = {place: 0 if one is None else one.offset for place, one in found.items()}

    def step(self, dice: Dice) -> None:
        has_not_heard = self.partitions and dice.chance(50)
        if not has_not_heard and not self.is_assigned():
            return
        kind = dice.below(10)
        if self.has_sent_offsets:
            self.client.end(is_commit=True)
            self.has_open = self.has_sent_offsets = False
        elif kind < 6 or not self.has_open:
            self.copy(dice)
        elif kind < 9:
            self.send_offsets()
        else:
            self.abort()
            self.reset(self.partitions)

    def send_offsets(self) -> None:
        offsets = {place: OffsetAndMetadata(offset) for place, offset in self.positions.items()}
        if self.store.version < 2:
            self.store.transactions.add_offsets(self.slot, self.client.identity, "g")
        self.store.transactions.commit_offsets(self.slot, self.client.identity, self.member, offsets)
        self.has_sent_offsets = True

    def copy(self, dice: Dice) -> None:
        place = dice.choose(self.partitions)
        values = [value for value in self.store.values(*place)[self.positions[place] :] if value is not None]
        values = values[: 1 + dice.below(4)]
        if values:
            self.has_open = True
            self.client.send("out", *values, partition=dice.below(2))
            self.positions[place] += len(values)

    def abort(self) -> None:
        if self.has_open:
            self.client.end(is_commit=False)
            self.has_open = self.has_sent_offsets = False


class Factory:
    """The workers, the zombies among them, and what happens to them."""

    def __init__(self, directory: Path, version: int, dice: Dice) -> None:
        self.directory, self.version, self.dice = directory, version, dice
        self.restarts = self.numbers = self.refusals = 0
        self.now_ms = 0
        self.asleep: dict[str, int] = {}  # from slot to how many of its turns it sleeps
        self.store = self.opened()
        self.store.create_topic("in", partitions=3, config={})
        self.store.create_topic("out", partitions=2, config={})
        for value in INPUTS:
            self.store.log("in", int(value[:1])).append_records([value])
        self.workers: dict[str, Worker] = {}
        self.zombies: list[Worker] = []

    def opened(self) -> SmallStore:
        self.restarts += 1
        store = SmallStore(self.directory, version=self.version, first_producer_id=1000 * self.restarts)
        store.time_ms += self.now_ms
        return store.start()

    def step(self) -> None:
        dice, slot = self.dice, self.dice.choose(SLOTS)
        chance = dice.below(100)
        if slot not in self.workers or chance < 4:
            if slot in self.workers:
                self.zombies.append(self.workers.pop(slot))
            self.numbers += 1
            self.workers[slot] = Worker(self.store, slot, self.numbers)
        elif self.asleep.get(slot, 0) > 0:
            self.asleep[slot] -= 1
        elif chance < 7:
            self.asleep[slot] = 15
        elif chance < 17:
            self.now_ms += 11_000
            self.store.time_ms += 11_000
            for job in self.store.jobs.values():
                job()
        elif chance < 19:
            self.workers, self.zombies, self.store = {}, [], self.opened()
        else:
            zombie_turn = self.zombies and dice.chance(15)
            self.work(dice.choose(self.zombies) if zombie_turn else self.workers[slot])

    def work(self, worker: Worker) -> None:
        """One step; who is refused has to go, and another takes its place the next time."""
        try:
            worker.step(self.dice)
        except LogstoreError as error:
            if error.recovery is None:
                raise
            self.refusals += 1
            if worker in self.zombies:
                self.zombies.remove(worker)
            else:
                del self.workers[worker.slot]

    def finish(self) -> None:
        """One worker does what is left, after everybody else has been silent for long."""
        self.store.time_ms += 400_000
        for job in self.store.jobs.values():
            job()
        for slot in SLOTS[1:]:
            TransactionalClient(self.store, slot)
        worker = Worker(self.store, SLOTS[0], -1)
        for _ in range(400):
            worker.step(self.dice)


@pytest.mark.parametrize("number", range(CASE_COUNT))
@pytest.mark.parametrize("version", [1, 2])
def test_each_input_is_in_the_output_exactly_once(version: int, number: int, tmp_path: Path) -> None:
    factory = Factory(tmp_path, version, Dice(f"exactly once {version} {number}"))
    for _ in range(STEP_COUNT):
        factory.step()
    factory.finish()
    store = factory.store
    found = Counter(value for partition in range(2) for value in store.values("out", partition))
    assert found == Counter(INPUTS)
    ends = {
        place: store.groups.fetch("g", [place], require_stable=True)[place] for place in (("in", n) for n in range(3))
    }
    assert all(one is not None and one.offset == 20 for one in ends.values())
    assert factory.refusals > 0 or factory.restarts > 1
