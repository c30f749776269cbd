"""Files of a log with the suffix `.deleted`, which are removed some time later (`LocalLog.deleteSegmentFiles`).

A reader that opened one goes on for `file.delete.delay.ms`. What is left when the log is closed is removed when it is
opened the next time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from .directory import PartitionDirectory


class DeletedFiles:
    """Names of `.deleted` files, in the order in which they became that."""

    def __init__(self) -> None:
        self._due: deque[tuple[int, str]] = deque()

    def __len__(self) -> int:
        return len(self._due)

    def add(self, names: Iterable[str], due_ms: int) -> None:
        """Remove these files not before `due_ms`."""
        self._due.extend((due_ms, name) for name in names)

    def remove_due(self, directory: PartitionDirectory, now_ms: int) -> list[str]:
        """Remove what is due by `now_ms`; the names of those files.

        Raises:
            DataDirectoryError: a file cannot be removed; it, and those behind it, stay due.
        """
        removed = []
        for due_ms, name in list(self._due):
            if due_ms <= now_ms:
                directory.delete(name, "was to be deleted")
                self._due.remove((due_ms, name))
                removed.append(name)
        return removed
