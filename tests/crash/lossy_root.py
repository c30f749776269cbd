"""A disk with a whole data directory that may lose what was not synced: files, and directories that come and go.

As `lossy_tree`, for directories inside directories: a directory that was made, renamed or removed is a name in its
parent, on the disk once that one was synced; what is in it is on the disk by its own syncs.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.crash.lossy_disk import OUTCOMES, Inode, InodeSeam
from tests.support.dice import Dice

#: by path from the root: the content of a file, None for a directory
Survivor = frozenset[tuple[str, bytes | None]]


class Names:
    """A directory: its names as they are, as they are on the disk, and after each change in between."""

    def __init__(self) -> None:
        self.names: dict[str, Node] = {}
        self.durable_names: dict[str, Node] = {}
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
    def locked(self: LossyRoot, *arguments: Any) -> Any:
        with self.lock:
            return method(self, *arguments)

    return locked


class LossyRoot(InodeSeam):
    """The real calls below a directory that is empty, and what a crash before each of them could leave.

    For any thread: a store opens and closes its partitions in several.

    Attributes:
        call_count: calls so far.
        survivors: what a crash may have left, each once, with the call and outcome that left it first.
    """

    def __init__(self, root: Path, seed: str) -> None:
        super().__init__()
        self.lock = threading.RLock()
        self.call_count = 0
        self.survivors: dict[Survivor, tuple[int, str]] = {}
        self._dice = Dice(seed)
        self._root, self._tree = root, Names()

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

    write = one_by_one(InodeSeam.write)
    truncate = one_by_one(InodeSeam.truncate)
    sync = one_by_one(InodeSeam.sync)
    close = one_by_one(InodeSeam.close)

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

    def survivor(self, outcome: str) -> Survivor:
        """What is found after a crash now: everything, only what was synced, or something between everywhere."""
        left: list[tuple[str, bytes | None]] = []
        self._collect(self._tree, "", outcome, left)
        return frozenset(left)

    def promise(self) -> None:
        """Called before each call: what holds should that one not be made."""

    def _collect(self, directory: Names, path: str, outcome: str, left: list[tuple[str, bytes | None]]) -> None:
        names = directory.names if outcome == "kept" else directory.durable_names
        if outcome == "torn":
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
        return inode.content(self._dice.below(len(inode.changes) + 1), torn=bool(self._dice.below(2)))

    def _count(self) -> None:
        self.promise()
        for outcome in OUTCOMES:
            self.survivors.setdefault(self.survivor(outcome), (self.call_count, outcome))
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


def lay_out(survivor: Survivor, root: Path) -> Path:
    """What a crash has left."""
    root.mkdir(parents=True)
    for path, content in sorted(survivor, key=lambda one: one[0]):
        if content is None:
            (root / path).mkdir()
        else:
            (root / path).write_bytes(content)
    return root
