"""What a fault needs to be planted: a directory, chance, and places that suit it; and the table of all kinds.

    @kind("log-crc")
    def flipped_bit(planter: Planter) -> Planted: …

registers a kind of fault that one of the rules named must find, where it was planted. What else may tell of it is in
`also`: a lost batch leaves its producer with a gap in sequences, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from tests.planted.segment import Segment
from tests.support.dice import Dice

T = TypeVar("T")
# Nobody knows what the cleaner took of these, or of which offset their deleted records were.
UNJUDGED = ("tombstones-dropped-0", "tombstones-kept-0", "deleted-0")

OF_OFFSETS = frozenset(
    {
        *("offsets-lost", "log-offset-order", "log-offset-range", "log-record-count", "log-records"),
        *("offset-index", "time-index", "time-index-end", "leader-epochs", "checkpoint-offset", "timestamp-future"),
        "snapshot-missing",
    }
)
OF_PRODUCERS = frozenset(
    {
        *("snapshot-state", "sequence-gap", "sequence-duplicate", "producer-outside", "transaction-index"),
        *("marker-missing", "marker-contradicting", "marker-doubled", "marker-unexplained", "transaction-hanging"),
        *("transaction-atomicity", "producer-fenced", "log-marker", "metadata-behind"),
    }
)
OF_GROUPS = frozenset({"group-ahead", "group-behind", "chain-ahead", "chain-back"})
ELSEWHERE = OF_GROUPS | {
    *("transaction-atomicity", "transaction-hanging", "marker-contradicting", "marker-missing", "coordinator-state"),
}


class UnsuitableError(Exception):
    """The directory has no place for this fault."""


class Planted(NamedTuple):
    """Where a fault is: the name of the directory or file, and the offset if it is a batch's."""

    name: str
    offset: int | None = None


Suits = Callable[[Segment, int], bool]


class Planter:
    """A directory that faults are planted in."""

    def __init__(self, root: Path, dice: Dice) -> None:
        self.root, self.dice = root, dice

    def partitions(self, topic: str | None = None) -> list[Path]:
        """Directories of users' partitions with data of which all is known, or those of `topic`."""
        found = [path.parent for path in sorted(self.root.glob("*-[0-9]/leader-epoch-checkpoint"))]
        if topic is not None:
            return [path for path in found if path.name.rpartition("-")[0] == topic]
        users = [path for path in found if not path.name.startswith("__") and path.name not in UNJUDGED]
        return [path for path in users if any(log.stat().st_size for log in path.glob("*.log"))]

    def partition(self, suits: Callable[[Path], object] = lambda path: True) -> Path:
        return self.one_of(path for path in self.partitions() if suits(path))

    def logs(self, topic: str | None = None) -> Iterator[Path]:
        """Segments with batches."""
        for directory in self.partitions(topic):
            yield from (log for log in sorted(directory.glob("*.log")) if log.stat().st_size)

    def batch(self, suits: Suits = lambda segment, row: True, topic: str | None = None) -> tuple[Segment, int]:
        segments = [Segment(log) for log in self.logs(topic)]
        return self.one_of((one, row) for one in segments for row in range(len(one.batches)) if suits(one, row))

    def file(self, pattern: str, size_min: int = 1, topic: str | None = None) -> Path:
        """Return a file of a users' partition, or of one of `topic`."""
        files = (path for one in self.partitions(topic) for path in sorted(one.glob(pattern)))
        return self.one_of(path for path in files if path.stat().st_size >= size_min)

    def one_of(self, items: Iterable[T]) -> T:
        found: Sequence[T] = list(items)
        if not found:
            raise UnsuitableError
        return self.dice.choose(found)


Plant = Callable[[Planter], Planted]


class Kind(NamedTuple):
    """A kind of fault: the rules of which one must find it, and those that may tell of it too."""

    rules: frozenset[str]
    also: frozenset[str]
    plant: Plant


KINDS: dict[str, Kind] = {}


def register(name: str, plant: Plant, rules: Iterable[str], also: Iterable[str] = ()) -> None:
    assert name not in KINDS, name
    KINDS[name] = Kind(frozenset(rules), frozenset(also), plant)


def kind(*rules: str, also: Iterable[str] = ()) -> Callable[[Plant], Plant]:
    """Register a function under its name."""

    def decorate(plant: Plant) -> Plant:
        register(plant.__name__.replace("_", " "), plant, rules, also)
        return plant

    return decorate


def at_batch(segment: Segment, row: int) -> Planted:
    """Save the segment, and say where the batch is."""
    segment.save()
    return Planted(segment.log.parent.name, segment.get(row, "base_offset"))


def in_segment(segment: Segment) -> Planted:
    """Save the segment, and say which partition it is of."""
    segment.save()
    return Planted(segment.log.parent.name)
