"""Files of removed segments until `file.delete.delay.ms` is over."""

from __future__ import annotations

from ...errors import DataDirectoryError
from .writable_folder import WritableFolder


class Delays:
    """Names that wait by the wall clock. Where it steps back behind a name's begin, the name's wait begins anew."""

    def __init__(self) -> None:
        self._waits: dict[str, tuple[int, int]] = {}  # name to the begin and the length of its wait, ms

    def __len__(self) -> int:
        return len(self._waits)

    def add(self, name: str, now_ms: int, delay_ms: int) -> None:
        """Let a name wait from now on."""
        self._waits[name] = now_ms, delay_ms

    def over(self, now_ms: int) -> list[str]:
        """Return the names whose wait is over, in the order of `add`; they stay until `discard`."""
        over = []
        for name, (since_ms, delay_ms) in list(self._waits.items()):  # a copy: other threads add names
            if now_ms < since_ms:
                self._waits[name] = now_ms, delay_ms
            elif since_ms + delay_ms <= now_ms:
                over.append(name)
        return over

    def discard(self, name: str) -> None:
        """Forget a name that has gone."""
        self._waits.pop(name, None)


class DeletedFiles(Delays):
    """`.deleted` files in the order of their renaming; they are removed some time later.

    A reader that opened one goes on for `file.delete.delay.ms`. Files that remain when the log is closed are removed
    when it is opened again.
    """

    def remove_due(self, directory: WritableFolder, now_ms: int) -> list[str]:
        """Remove the files that are due by `now_ms`; return their names.

        All are tried; the DataDirectoryError of the first that cannot be removed is raised, and that file stays due.
        """
        removed, failure = [], None
        for name in self.over(now_ms):
            try:
                directory.delete(name, "was to be deleted")
            except DataDirectoryError as error:
                failure = failure or error
                continue
            self.discard(name)
            removed.append(name)
        if failure is not None:
            raise failure
        return removed
