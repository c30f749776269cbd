"""The power fails while a store is changed: what a disk may have of unsynced writes is opened again, and is whole.

Topics made, changed and deleted, blocks of producer ids and offsets of groups, as answered before the failure:
each answered change is there, the one in doubt is there as a whole or not at all. Offsets are asked of a store with
`logstore.durable.commits`, the only one that promises them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from unittest.mock import patch

from logstore.client.store import Store, open_store
from logstore.config.broker import DURABLE_COMMITS
from logstore.coordinator.groups.membership import ConsumerGroupMetadata
from logstore.coordinator.groups.offsets import OffsetAndMetadata
from logstore.disk.seam import Seam
from logstore.store.metadata import log as metadata_log
from logstore.store.timers import Timers
from tests.crash.lossy_disk import LossyDisk
from tests.crash.points import DRAWS, Point
from tests.support.dice import Dice
from tests.support.logs import records_of
from tests.support.seams import UnsyncedSeam

NOW = 1_700_000_000_000
CONFIG = {DURABLE_COMMITS: True, "offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1}
READ = ("__consumer_offsets", 0)  # there whenever an offset is committed, whatever becomes of the other topics


@dataclass
class Told:
    """What the store had answered, and what it was asked last.

    Attributes:
        topics: partitions by name; what is asked of a topic in `doubtful` is either there or not.
        configs: `retention.ms` of topics.
        flushed: values of a log by partition, synced.
        producer_ids: that were given.
        offsets: of groups, each with the one that was asked for last.
    """

    topics: dict[str, int] = field(default_factory=dict)
    configs: dict[str, set[str]] = field(default_factory=dict)
    flushed: dict[tuple[str, int], list[bytes | None]] = field(default_factory=dict)
    producer_ids: list[int] = field(default_factory=list)
    offsets: dict[str, set[int]] = field(default_factory=dict)
    doubtful: str | None = None


class Work:
    """Changes by chance, each noted before it is asked for and behind its answer."""

    def __init__(self, store: Store, told: Told, dice: Dice) -> None:
        self.store, self.told, self.dice = store, told, dice
        self.number = 0

    def step(self) -> None:
        self.number += 1
        names = sorted(self.told.topics)
        steps = [self.create, self.take_producer_ids, self.commit_offset]
        if names:
            steps += [self.create, self.alter, self.delete, self.add_partitions, self.write, self.write]
        self.dice.choose(steps)()
        self.told.doubtful = None

    def create(self) -> None:
        name, count = f"t{self.number}", 1 + self.dice.below(3)
        self.told.doubtful, self.told.configs[name] = name, {"1"}
        self.store.create_topic(name, count, {"retention.ms": 1})
        self.told.topics[name] = count

    def delete(self) -> None:
        name = self._topic()
        self.told.doubtful = name
        del self.told.topics[name]
        self.store.delete_topic(name)
        self.told.flushed = {place: values for place, values in self.told.flushed.items() if place[0] != name}

    def add_partitions(self) -> None:
        name = self._topic()
        self.told.doubtful = name
        self.store.add_partitions(name, self.told.topics[name] + 1)
        self.told.topics[name] += 1

    def alter(self) -> None:
        name, value = self._topic(), str(self.number + 10)
        self.told.configs[name].add(value)
        self.store.alter_config(name, {"retention.ms": value})
        self.told.configs[name] = {value}

    def write(self) -> None:
        place = self._topic(), 0
        values: list[bytes | None] = [b"%d" % self.number] * 3
        log = self.store.log(*place)
        log.append_records(values)
        log.flush()
        self.told.flushed[place] = [*self.told.flushed.get(place, []), *values]

    def take_producer_ids(self) -> None:
        self.told.producer_ids.append(self.store.next_producer_id())

    def commit_offset(self) -> None:
        group = self.dice.choose("gh")
        self.told.offsets.setdefault(group, {-1}).add(self.number)
        self.store.groups.commit(ConsumerGroupMetadata(group), {READ: OffsetAndMetadata(self.number)})
        self.told.offsets[group] = {self.number}

    def _topic(self) -> str:
        name: str = self.dice.choose(sorted(self.told.topics))
        return name


def opened(root: Path, seam: Seam) -> Store:
    # a snapshot of the metadata after every few changes
    with patch.object(Timers, "start", lambda _: None), patch.object(metadata_log, "_SNAPSHOT_SIZE_MIN", 1000):
        return open_store(str(root), config=CONFIG, now_ms=lambda: NOW, progress=None, seam=seam)


def points(seed: str, place: Path) -> Iterator[Point]:
    root = place / "store"
    root.mkdir()
    told = Told()
    disk = LossyDisk(root, seed, promise=lambda: deepcopy(told), draws=DRAWS)
    work(lambda: opened(root, disk), told, seed)
    for left in disk.left:
        yield Point.of(left, "store", reopen=reopen, look=partial(check, left.promise))


def work(open_next: Callable[[], Store], told: Told, seed: str) -> None:
    """Change two stores after one another in a directory."""
    dice = Dice(seed)
    for _ in range(2):
        store = open_next()
        steps = Work(store, told, dice)
        steps.number = 100 * len(told.producer_ids)
        for _ in range(12):
            steps.step()
        told.producer_ids.append(store.next_producer_id())
        store.close()


def reopen(root: Path, seam: Seam) -> None:
    """As after a power failure, and close it in order."""
    opened(root, seam).close()


def check(told: Told, root: Path, _: bool) -> None:
    with opened(root, UnsyncedSeam()) as store:
        internal = {"__consumer_offsets"} & store.topics.keys()
        found = {name: topic.partition_count for name, topic in store.topics.items() if name not in internal}
        settled = {name: count for name, count in found.items() if name != told.doubtful}
        assert settled == {name: count for name, count in told.topics.items() if name != told.doubtful}
        if told.doubtful in told.topics:  # it gets another partition
            assert found[told.doubtful] in (told.topics[told.doubtful], told.topics[told.doubtful] + 1)
        for name, count in found.items():
            assert store.topics[name].config["retention.ms"] in told.configs[name]
            for number in range(count):
                assert store.log(name, number).topic_id == store.topics[name].topic_id
        for (name, number), values in told.flushed.items():
            if name in found:
                assert [record.value for record in records_of(store.log(name, number))][: len(values)] == values
        for group, offsets in told.offsets.items():
            committed = store.groups.fetch(group, [READ])[READ]
            assert (-1 if committed is None else committed.offset) in offsets
        assert store.next_producer_id() not in told.producer_ids
        assert store.stray_directories == ()
        live = {path.name for path in root.iterdir() if path.is_dir() and not path.name.endswith("-delete")}
        partitions = {
            f"{name}-{number}" for name, topic in store.topics.items() for number in range(topic.partition_count)
        }
        assert live == {"__cluster_metadata-0", *partitions}
        store.create_topic("afterwards")
    assert (root / ".kafka_cleanshutdown").exists()
    with opened(root, UnsyncedSeam()) as again:
        assert again.topics["afterwards"].partition_count == 1
