"""What a fault needs to be planted: a directory, chance, and places that suit it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tests.planted.segment import Segment
from tests.support.dice import Dice


class UnsuitableError(Exception):
    """The directory has no place for this fault."""


class Planted(NamedTuple):
    """Where a fault is: the directory's name or the file's, and the batch's offset if it is one's."""

    name: str
    offset: int | None = None


Suits = Callable[[Segment, int], bool]


class Planter:
    """A directory that faults are planted in."""

    def __init__(self, root: Path, dice: Dice) -> None:
        self.root, self.dice = root, dice

    def partitions(self, topic: str | None = None) -> list[Path]:
        """Directories of users' partitions, or those of `topic`."""
        found = sorted(path.parent for path in self.root.glob("*-[0-9]/leader-epoch-checkpoint"))
        names = [path for path in found if not path.name.startswith("__")]
        return names if topic is None else [path for path in found if path.name.rpartition("-")[0] == topic]

    def partition(self, suits: Callable[[Path], object] = lambda path: True, topic: str | None = None) -> Path:
        return self.one_of([path for path in self.partitions(topic) if suits(path)])

    def logs(self, topic: str | None = None) -> Iterator[Path]:
        for directory in self.partitions(topic):
            yield from (log for log in sorted(directory.glob("*.log")) if log.stat().st_size)

    def batch(self, suits: Suits = lambda segment, row: True, topic: str | None = None) -> tuple[Segment, int]:
        """Return a batch that suits."""
        segments = [Segment(log) for log in self.logs(topic)]
        found = [(one, row) for one in segments for row in range(len(one.batches)) if suits(one, row)]
        return self.one_of(found)

    def file(self, pattern: str, entry_size: int = 1, count: int = 1, topic: str | None = None) -> Path:
        """Return a file of a users' partition that has at least `count` entries."""
        files = [path for one in self.partitions(topic) for path in sorted(one.glob(pattern))]
        return self.one_of([path for path in files if path.stat().st_size >= entry_size * count])

    def one_of(self, items: list):  # type: ignore[no-untyped-def, type-arg]
        if not items:
            raise UnsuitableError
        return self.dice.choose(items)


Plant = Callable[[Planter], Planted]


class Kind(NamedTuple):
    """A kind of fault: the rules of which one must find it, and those that may tell of it too."""

    name: str
    rules: frozenset[str]
    also: frozenset[str]
    plant: Plant


KINDS: dict[str, Kind] = {}


def kind(*rules: str, also: tuple[str, ...] = ()) -> Callable[[Plant], Plant]:
    def register(plant: Plant) -> Plant:
        name = plant.__name__.replace("_", "-")
        assert name not in KINDS, name
        KINDS[name] = Kind(name, frozenset(rules), frozenset(also), plant)
        return plant

    return register


def at_batch(segment: Segment, row: int) -> Planted:
    """Save the segment, and say where the batch is."""
    segment.save()
    return Planted(segment.log.parent.name, segment.get(row, "base_offset"))
