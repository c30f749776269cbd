"""Files of a segment that were written and not synced: each stays open until it is.

A failed write-back is reported to a sync of a descriptor that was open at the time. A descriptor opened later may not
hear of it: the system forgets the error together with the inode. So the writer keeps its descriptor, and a segment that
is closed for writing hands it to the thread that syncs it.
A file that is closed before, for the budget of open files, is synced before.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress

from ...disk.seam import Seam
from ...errors import DataDirectoryError


class UnsyncedFiles:
    """Descriptors by file suffix; used by several threads.

    Two threads may sync the same file, and the system reports a failure only once: after one, no sync is tried again.

    Attributes:
        is_synced: all files that were added were synced and closed.
    """

    def __init__(self, seam: Seam) -> None:
        self.is_synced = False
        self._is_syncing = self._is_unwanted = False
        self._seam = seam
        self._descriptors: dict[str, int] = {}
        self._failure: DataDirectoryError | None = None
        self._lock = threading.Lock()  # held for the whole of a sync
        self._guard = threading.Lock()  # held for the flags and for closing, never for a sync

    def add(self, kind: str, descriptor: int) -> int:
        """Keep a descriptor that is written through, and return it."""
        self._descriptors[kind] = descriptor
        self.is_synced = False
        return descriptor

    def get(self, kind: str) -> int | None:
        """Return the descriptor, None if there is none."""
        return self._descriptors.get(kind)

    def require_sound(self) -> None:
        """Raise the DataDirectoryError of a sync that failed before."""
        if self._failure is not None:
            raise self._failure

    def sync(self, kind: str) -> None:
        """Sync one file and keep it open; a closed one is left alone."""
        self._sync([kind])

    def finish(self) -> None:
        """Sync all files and close them; raises as `sync`."""
        self._sync(list(self._descriptors), is_last=True)

    @property
    def is_open(self) -> bool:
        """See `Reopenable`: of a closed segment, which waits for its sync."""
        return bool(self._descriptors)

    def was_used(self) -> bool:
        return False

    def close_idle(self) -> bool:
        """Sync and close the files; a failure is raised to the next that syncs them."""
        with suppress(DataDirectoryError):
            self.finish()
        return True

    def close(self) -> None:
        """Close the files without a sync; if another thread is syncing, it closes them when it is done.

        Closing under a running sync would let the system give the descriptor to another file.
        """
        with self._guard:
            self._is_unwanted = True
            if not self._is_syncing:
                self._close()

    def _sync(self, kinds: Sequence[str], *, is_last: bool = False) -> None:
        with self._lock:
            try:
                with self._guard:
                    self._is_syncing = True
                for kind in kinds:
                    self._sync_file(kind)
                self.is_synced = self.is_synced or is_last
            finally:
                with self._guard:
                    self._is_syncing = False
                    if self.is_synced or self._is_unwanted:
                        self._close()

    def _sync_file(self, kind: str) -> None:
        try:
            self.require_sound()
            if kind in self._descriptors:
                self._seam.sync(self._descriptors[kind])
        except DataDirectoryError as error:
            self._failure = error
            if not self._is_unwanted:  # the file was removed: its contents matter no more
                raise

    def _close(self) -> None:
        while self._descriptors:
            _, descriptor = self._descriptors.popitem()
            self._seam.close(descriptor)
