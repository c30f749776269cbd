"""A disk that may lose what was not synced: the calls through a seam, replayed on a model of files and names.

What a crash leaves, by outcome:

    kept       everything
    lost       what was synced, and no more
    torn       of each file the first of its changes, the last of them perhaps half done
    reordered  of each file any of its changes; zeros where something was lost before what was not

Files do not know of each other: a later write to one may be there when an earlier one to another is not. Names are
changed one after the other, as a journal has it: there are the first of their changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from logstore.disk.seam import Seam, Writable
from tests.support.dice import Dice

OUTCOMES = ("kept", "lost", "torn")
ALL_OUTCOMES = (*OUTCOMES, "reordered")


@dataclass
class Inode:
    """A file: what is on the disk, and what has been done to it since it was synced."""

    durable: bytes = b""
    changes: list[bytes | int] = field(default_factory=list)  # what was appended, or the size it was cut to

    def content(self, change_count: int | None = None, torn: bool = False) -> bytes:
        """With the first `change_count` changes done, all by default; the last write only half if `torn`."""
        content = self.durable
        changes = self.changes[:change_count]
        for number, value in enumerate(changes):
            if isinstance(value, bytes):
                half = torn and number == len(changes) - 1
                content += value[: len(value) // 2] if half else value
            else:
                content = content[:value]
        return content

    def reordered(self, dice: Dice) -> bytes:
        """With some of the changes done, each where it was done when none was missing."""
        content, size = bytearray(self.durable), len(self.durable)
        for value in self.changes:
            is_done = dice.chance(50)
            if isinstance(value, int):
                size = value
                if is_done:
                    del content[size:]
            else:
                if is_done:
                    content.extend(bytes(max(size - len(content), 0)))
                    content[size : size + len(value)] = value
                size += len(value)
        return bytes(content)

    def sync(self) -> None:
        self.durable = self.content()
        self.changes.clear()


class InodeSeam(Seam):
    """The real calls on open files, done to their inodes too."""

    def __init__(self) -> None:
        self._inodes: dict[int, Inode] = {}  # by descriptor

    def write(self, descriptor: int, data: Writable) -> None:
        self._count()
        super().write(descriptor, data)
        self._inodes[descriptor].changes.append(bytes(data))

    def truncate(self, descriptor: int, size: int) -> None:
        self._count()
        super().truncate(descriptor, size)
        self._inodes[descriptor].changes.append(size)

    def sync(self, descriptor: int) -> None:
        self._count()
        self._inodes[descriptor].sync()

    def close(self, descriptor: int) -> None:
        super().close(descriptor)
        del self._inodes[descriptor]

    def _count(self) -> None:
        """Called before each call that changes something."""
        raise NotImplementedError


class LossyDisk(InodeSeam):
    """The real calls, and what a crash before each of them could leave.

    Attributes:
        call_count: calls so far.
        survivors: directories that a crash may have left, each once, with the call and outcome that left it first.
    """

    def __init__(self, directory: Path, seed: str, *, outcomes: Sequence[str] = OUTCOMES) -> None:
        super().__init__()
        self.call_count = 0
        self._outcomes = outcomes
        self.survivors: dict[frozenset[tuple[str, bytes]], tuple[int, str]] = {}
        self._dice = Dice(seed)
        self._names = {path.name: Inode(path.read_bytes()) for path in directory.iterdir() if path.is_file()}
        self._durable_names = dict(self._names)
        self._name_changes: list[dict[str, Inode]] = []  # the names after each change that is not synced

    def create(self, path: str) -> int:
        self._count()
        descriptor = super().create(path)
        name = Path(path).name
        if name in self._names:
            self._names[name].changes.append(0)
        else:
            self._change_names({**self._names, name: Inode()})
        self._inodes[descriptor] = self._names[name]
        return descriptor

    def open(self, path: str) -> int:
        self._count()
        descriptor = super().open(path)
        self._inodes[descriptor] = self._names[Path(path).name]
        return descriptor

    def rename(self, path: str, new_path: str) -> None:
        self._count()
        super().rename(path, new_path)
        names = dict(self._names)
        names[Path(new_path).name] = names.pop(Path(path).name)
        self._change_names(names)

    def unlink(self, path: str) -> None:
        self._count()
        super().unlink(path)
        names = dict(self._names)
        del names[Path(path).name]
        self._change_names(names)

    def sync_directory(self, path: str) -> None:
        self._count()
        self._durable_names = dict(self._names)
        self._name_changes.clear()

    def survivor(self, outcome: str) -> frozenset[tuple[str, bytes]]:
        """What is found after a crash now."""
        if outcome == "kept":
            return frozenset((name, inode.content()) for name, inode in self._names.items())
        if outcome == "lost":
            return frozenset((name, inode.durable) for name, inode in self._durable_names.items())
        names = self._dice.choose([self._durable_names, *self._name_changes])
        left = self._torn if outcome == "torn" else self._reordered
        return frozenset((name, left(inode)) for name, inode in names.items())

    def _torn(self, inode: Inode) -> bytes:
        change_count = self._dice.below(len(inode.changes) + 1)
        return inode.content(change_count, torn=bool(self._dice.below(2)))

    def _reordered(self, inode: Inode) -> bytes:
        return inode.reordered(self._dice)

    def _count(self) -> None:
        for outcome in self._outcomes:
            self.survivors.setdefault(self.survivor(outcome), (self.call_count, outcome))
        self.call_count += 1

    def _change_names(self, names: dict[str, Inode]) -> None:
        self._names = names
        self._name_changes.append(names)
