"""A disk that may lose what was not synced: the calls through a seam, replayed on a model of files and directories.

What a crash leaves, by outcome:

    kept       everything
    lost       what was synced, and no more
    torn       of each file the first of its changes, the last of them perhaps half done
    reordered  of each file any of its changes; zeros where something was lost before what was not

Files do not know of each other: a later write to one may be there when an earlier one to another is not. The names in a
directory are changed one after the other, as a journal has it: there are the first of their changes. A directory is
itself a name in its parent, on the disk once that one was synced; what is in it is on the disk by its own syncs.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from logstore.disk.seam import Seam, Writable
from tests.support.dice import Dice

OUTCOMES = ("kept", "lost", "torn")
ALL_OUTCOMES = (*OUTCOMES, "reordered")

#: by path from the root: the content of a file, None for a directory
Survivor = frozenset[tuple[str, bytes | None]]


class Left(NamedTuple):
    """What a crash may have left.

    Attributes:
        survivor: what is found.
        call: the crash was before this call, which was not made.
        promise: what held then.
    """

    survivor: Survivor
    call: int
    outcome: str
    promise: Any

    @property
    def when(self) -> str:
        """The moment of the crash, in words."""
        return f"before call {self.call}, {self.outcome}"


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


class Names:
    """A directory: its names as they are, as they are on the disk, and after each change in between."""

    def __init__(self, path: Path | None = None) -> None:
        """`path`: a directory that is on the disk, with all that is in it; None: an empty one."""
        self.names: dict[str, Node] = {}
        for entry in [] if path is None else sorted(path.iterdir()):
            self.names[entry.name] = Names(entry) if entry.is_dir() else Inode(entry.read_bytes())
        self.durable_names = dict(self.names)
        self.changes: list[dict[str, Node]] = []

    def change(self, names: dict[str, Node]) -> None:
        self.names = names
        self.changes.append(names)

    def sync(self) -> None:
        self.durable_names = dict(self.names)
        self.changes.clear()


Node = Names | Inode


def one_by_one(method: Callable[..., Any]) -> Any:
    """A call is done, and noted, before that of another thread."""

    @functools.wraps(method)
    def locked(self: LossyDisk, *arguments: Any) -> Any:
        with self.lock:
            return method(self, *arguments)

    return locked


class LossyDisk(Seam):
    """The real calls below a directory, and what a crash before each of them could leave.

    For any thread: a store opens and closes its partitions in several.

    Attributes:
        call_count: calls so far that change something, or sync it.
        left: what a crash may have left. The same directory counts once for each promise: before a sync that is
            missing it is as it was before what should be durable, and only the later promise tells that it is wrong.
    """

    def __init__(
        self,
        root: Path,
        seed: str,
        *,
        outcomes: Sequence[str] = OUTCOMES,
        promise: Callable[[], Any] = lambda: None,
        draws: int = 1,
    ) -> None:
        """Start with what is there.

        Args:
            promise: called before each call, returns what holds should that one not be made; compared by value.
            draws: how often an outcome is drawn before each call, if it is a matter of chance.
        """
        self.lock = threading.RLock()
        self.call_count = 0
        self.left: list[Left] = []
        self._outcomes = [one for one in outcomes for _ in range(1 if one in ("kept", "lost") else draws)]
        self._ask_promise, self._promise = promise, promise()
        self._seen: set[Survivor] = set()  # with this promise
        self._dice = Dice(seed)
        self._root, self._tree = root, Names(root)
        self._inodes: dict[int, Inode] = {}  # by descriptor

    @one_by_one
    def create(self, path: str) -> int:
        self._count()
        descriptor = super().create(path)
        directory, name = self._place(path)
        if name in directory.names:
            self._file(path).changes.append(0)
        else:
            directory.change({**directory.names, name: Inode()})
        self._inodes[descriptor] = self._file(path)
        return descriptor

    @one_by_one
    def open(self, path: str) -> int:
        descriptor = super().open(path)
        self._inodes[descriptor] = self._file(path)
        return descriptor

    @one_by_one
    def open_at(self, path: str, position: int) -> int:
        assert position == len(self._file(path).content()), "writes in the middle of a file are not modelled"
        return super().open_at(path, position)

    @one_by_one
    def write(self, descriptor: int, data: Writable) -> None:
        self._count()
        super().write(descriptor, data)
        self._inodes[descriptor].changes.append(bytes(data))

    @one_by_one
    def truncate(self, descriptor: int, size: int) -> None:
        self._count()
        super().truncate(descriptor, size)
        self._inodes[descriptor].changes.append(size)

    @one_by_one
    def sync(self, descriptor: int) -> None:
        self._count()
        self._inodes[descriptor].sync()

    @one_by_one
    def close(self, descriptor: int) -> None:
        super().close(descriptor)
        del self._inodes[descriptor]

    @one_by_one
    def rename(self, path: str, new_path: str) -> None:
        self._count()
        super().rename(path, new_path)
        (directory, name), (new_directory, new_name) = self._place(path), self._place(new_path)
        assert directory is new_directory
        names = dict(directory.names)
        names[new_name] = names.pop(name)
        directory.change(names)

    @one_by_one
    def unlink(self, path: str) -> None:
        self._count()
        super().unlink(path)
        self._remove(path)

    @one_by_one
    def make_directory(self, path: str) -> None:
        self._count()
        super().make_directory(path)
        directory, name = self._place(path)
        directory.change({**directory.names, name: Names()})

    @one_by_one
    def remove_directory(self, path: str) -> None:
        self._count()
        super().remove_directory(path)
        self._remove(path)

    @one_by_one
    def sync_directory(self, path: str) -> None:
        self._count()
        self._directory(Path(path)).sync()

    @property
    def survivors(self) -> list[Survivor]:
        """The directories that a crash may have left, each once."""
        return list(dict.fromkeys(left.survivor for left in self.left))

    def survivor(self, outcome: str) -> Survivor:
        """What is found after a crash now."""
        left: list[tuple[str, bytes | None]] = []
        self._collect(self._tree, "", outcome, left)
        return frozenset(left)

    def _collect(self, directory: Names, path: str, outcome: str, left: list[tuple[str, bytes | None]]) -> None:
        if outcome in ("kept", "lost"):
            names = directory.names if outcome == "kept" else directory.durable_names
        else:
            names = self._dice.choose([directory.durable_names, *directory.changes])
        for name, node in names.items():
            if isinstance(node, Inode):
                left.append((path + name, self._content(node, outcome)))
            else:
                left.append((path + name, None))
                self._collect(node, f"{path}{name}/", outcome, left)

    def _content(self, inode: Inode, outcome: str) -> bytes:
        if outcome == "kept":
            return inode.content()
        if outcome == "lost":
            return inode.durable
        if outcome == "reordered":
            return inode.reordered(self._dice)
        return inode.content(self._dice.below(len(inode.changes) + 1), torn=bool(self._dice.below(2)))

    def _count(self) -> None:
        promise = self._ask_promise()
        if promise != self._promise:
            self._promise = promise
            self._seen.clear()
        for outcome in self._outcomes:
            survivor = self.survivor(outcome)
            if survivor not in self._seen:
                self._seen.add(survivor)
                self.left.append(Left(survivor, self.call_count, outcome, self._promise))
        self.call_count += 1

    def _remove(self, path: str) -> None:
        directory, name = self._place(path)
        names = dict(directory.names)
        del names[name]
        directory.change(names)

    def _place(self, path: str) -> tuple[Names, str]:
        return self._directory(Path(path).parent), Path(path).name

    def _directory(self, path: Path) -> Names:
        directory = self._tree
        for name in path.relative_to(self._root).parts:
            node = directory.names[name]
            assert isinstance(node, Names)
            directory = node
        return directory

    def _file(self, path: str) -> Inode:
        directory, name = self._place(path)
        node = directory.names[name]
        assert isinstance(node, Inode)
        return node


def write_survivor(survivor: Survivor, root: Path) -> Path:
    """Make the directory `root` with all that a crash has left in it."""
    root.mkdir(parents=True)
    for path, content in sorted(survivor, key=lambda one: one[0]):
        if content is None:
            (root / path).mkdir()
        else:
            (root / path).write_bytes(content)
    return root
