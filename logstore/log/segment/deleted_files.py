"""Files of removed segments until `file.delete.delay.ms` is over."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from ...errors import DataDirectoryError
from .writable_folder import WritableFolder


class DeletedFiles:
    """`.deleted` files in the order of their renaming; they are removed some time later.

    A reader that opened one goes on for `file.delete.delay.ms`. Files that remain when the log is closed are removed
    when it is opened again.
    """

    def __init__(self) -> None:
        self._due: deque[tuple[int, str]] = deque()

    def __len__(self) -> int:
        return len(self._due)

    def add(self, names: Iterable[str], due_ms: int) -> None:
        """Add files that are to be removed at `due_ms` or later."""
        self._due.extend((due_ms, name) for name in names)

    def remove_due(self, directory: WritableFolder, now_ms: int) -> list[str]:
        """Remove the files that are due by `now_ms`; return their names.

        Raises:
            DataDirectoryError: of the first file that cannot be removed; it stays due, and all were tried.
        """
        removed, failure = [], None
        for due_ms, name in list(self._due):
            if due_ms <= now_ms:
                try:
                    directory.delete(name, "was to be deleted")
                except DataDirectoryError as error:
                    failure = failure or error
                    continue
                self._due.remove((due_ms, name))
                removed.append(name)
        if failure is not None:
            raise failure
        return removed
