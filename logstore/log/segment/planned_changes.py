"""The files of a partition as a recovery plans to leave them, while nothing on the disk has changed.

A recovery runs once: it reads the files, plans every change here, and reads what it planned as if it were there. Then
the changes are made in the order in which they were planned, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from ...disk.seam import Writable
from ...layout.file_names import LOG_SUFFIX, SWAP_SUFFIX


class PlannedFile(NamedTuple):
    """A file to be: one that is on the disk, or new content.

    Attributes:
        source: its name on the disk now; None for new content.
        content: the new content; of a `.log` that is split, it maps the old file.
        size: of what will be left of the file on the disk, in bytes; None for all of it.
    """

    source: str | None
    content: Writable | None = None
    size: int | None = None


class PlannedChanges:
    """The files to be, and the steps that make them.

    Attributes:
        files: plain files by name.
        others: names of what is no plain file.
        steps: one function for each change, in order.
        reasons: why a file is cut, removed or renamed, by its name on the disk.
        replaced: names of the `.log` files that cleaned ones replace.
    """

    def __init__(self, listed: Mapping[str, bool]) -> None:
        """Begin with what is there: name to "is a plain file"."""
        self.files = {name: PlannedFile(name) for name, is_file in listed.items() if is_file}
        self.others = {name for name, is_file in listed.items() if not is_file}
        self.steps: list[Callable[[], object]] = []
        self.reasons: dict[str, str] = {}
        self.replaced: set[str] = set()
        self._logs = [name for name in self.files if name.endswith((LOG_SUFFIX, LOG_SUFFIX + SWAP_SUFFIX))]

    def put(self, name: str, content: Writable, reason: str) -> None:
        """Plan new content."""
        self._explain(name, reason)
        self.files[name] = PlannedFile(None, content)

    def cut(self, name: str, size: int, reason: str) -> None:
        """Plan to keep the first `size` bytes."""
        self._explain(name, reason)
        file = self.files[name]
        content = None if file.content is None else memoryview(file.content)[:size]
        self.files[name] = PlannedFile(file.source, content, size)

    def remove(self, name: str, reason: str = "") -> None:
        """Plan to have no such file."""
        self._explain(name, reason)
        self.files.pop(name, None)

    def rename(self, name: str, new_name: str, reason: str) -> None:
        """Plan another name."""
        self._explain(new_name, reason)
        self.files[new_name] = self.files.pop(name)

    def removed_logs(self) -> Iterator[tuple[str, int]]:
        """Yield the `.log` and `.log.swap` files on the disk of which bytes will go: name, first byte that goes.

        The first byte may be the size of the file: then nothing goes.
        """
        kept = {file.source: file.size for name, file in self.files.items() if name.endswith(LOG_SUFFIX)}
        for name in self._logs:
            if name not in kept:
                yield name, 0
            else:
                size = kept[name]
                if size is not None:
                    yield name, size

    def new_logs(self) -> Iterator[tuple[str, PlannedFile]]:
        """Yield each `.log` to be that is not on the disk under its name, with its name."""
        for name, file in self.files.items():
            if name.endswith(LOG_SUFFIX) and file.source != name:
                yield name, file

    def _explain(self, name: str, reason: str) -> None:
        file = self.files.get(name)
        if file is not None and file.source is not None:
            self.reasons.setdefault(file.source, reason)
