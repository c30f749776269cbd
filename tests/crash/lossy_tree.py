"""A disk of several directories that may lose what was not synced; see `lossy_disk` for what that means."""

from __future__ import annotations

from pathlib import Path

from tests.crash.lossy_disk import OUTCOMES, Inode, InodeSeam
from tests.support.dice import Dice

#: file contents by directory name and file name
Survivor = frozenset[tuple[str, str, bytes]]


class _Directory:
    """The names in a directory: as they are, as they are on the disk, and after each change in between."""

    def __init__(self, path: Path) -> None:
        self.names = {file.name: Inode(file.read_bytes()) for file in path.iterdir() if file.is_file()}
        self.durable_names = dict(self.names)
        self.changes: list[dict[str, Inode]] = []

    def change(self, names: dict[str, Inode]) -> None:
        self.names = names
        self.changes.append(names)

    def sync(self) -> None:
        self.durable_names = dict(self.names)
        self.changes.clear()


class LossyTree(InodeSeam):
    """The real calls in the directories below one, and what a crash before each of them could leave.

    Attributes:
        call_count: calls so far.
        survivors: what a crash may have left, each once, with the call and outcome that left it first.
    """

    def __init__(self, root: Path, seed: str) -> None:
        super().__init__()
        self.call_count = 0
        self.survivors: dict[Survivor, tuple[int, str]] = {}
        self._dice = Dice(seed)
        self._directories = {path.name: _Directory(path) for path in sorted(root.iterdir())}

    def create(self, path: str) -> int:
        self._count()
        descriptor = super().create(path)
        directory, name = self._place(path)
        if name in directory.names:
            directory.names[name].changes.append(0)
        else:
            directory.change({**directory.names, name: Inode()})
        self._inodes[descriptor] = directory.names[name]
        return descriptor

    def open(self, path: str) -> int:
        descriptor = super().open(path)
        directory, name = self._place(path)
        self._inodes[descriptor] = directory.names[name]
        return descriptor

    def rename(self, path: str, new_path: str) -> None:
        self._count()
        super().rename(path, new_path)
        directory, name = self._place(path)
        names = dict(directory.names)
        names[Path(new_path).name] = names.pop(name)
        directory.change(names)

    def unlink(self, path: str) -> None:
        self._count()
        super().unlink(path)
        directory, name = self._place(path)
        names = dict(directory.names)
        del names[name]
        directory.change(names)

    def sync_directory(self, path: str) -> None:
        self._count()
        self._directories[Path(path).name].sync()

    def survivor(self, outcome: str) -> Survivor:
        """What is found after a crash now: everything, only what was synced, or something between in each directory."""
        return frozenset(
            (place, name, content)
            for place, directory in self._directories.items()
            for name, content in self._left(directory, outcome)
        )

    def _left(self, directory: _Directory, outcome: str) -> list[tuple[str, bytes]]:
        if outcome == "kept":
            return [(name, inode.content()) for name, inode in directory.names.items()]
        if outcome == "lost":
            return [(name, inode.durable) for name, inode in directory.durable_names.items()]
        names = self._dice.choose([directory.durable_names, *directory.changes])
        return [(name, self._torn(inode)) for name, inode in names.items()]

    def _torn(self, inode: Inode) -> bytes:
        change_count = self._dice.below(len(inode.changes) + 1)
        return inode.content(change_count, torn=bool(self._dice.below(2)))

    def _count(self) -> None:
        self.promise()
        for outcome in OUTCOMES:
            self.survivors.setdefault(self.survivor(outcome), (self.call_count, outcome))
        self.call_count += 1

    def promise(self) -> None:
        """Called before each call: what holds should that one not be made."""

    def _place(self, path: str) -> tuple[_Directory, str]:
        return self._directories[Path(path).parent.name], Path(path).name


def lay_out(survivor: Survivor, root: Path) -> Path:
    """The directories that a crash has left."""
    for place, name, content in survivor:
        (root / place).mkdir(parents=True, exist_ok=True)
        (root / place / name).write_bytes(content)
    return root
