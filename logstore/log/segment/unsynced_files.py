"""Files of a segment that were written and are not on the disk yet: each stays open until it is synced.

A write that fails behind a program's back is told to a sync of a descriptor that was open then. One that is opened
later may hear nothing: the system forgets the error together with the inode. So who wrote keeps the descriptor, and a
segment that is closed for writing hands it on to whoever syncs it.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from ...disk.seam import Seam
from ...errors import DataDirectoryError


class UnsyncedFiles:
    """Descriptors by kind of file, that is its suffix; for several threads.

    Two of them may sync the same file, and the system tells a failure only once: none is tried again after one.

    Attributes:
        is_synced: all files were synced and closed.
    """

    def __init__(self, seam: Seam) -> None:
        self.is_synced = False
        self._is_syncing = self._is_unwanted = False
        self._seam = seam
        self._descriptors: dict[str, int] = {}
        self._failure: DataDirectoryError | None = None
        self._lock = threading.Lock()  # held while a thread syncs
        self._guard = threading.Lock()  # held for the flags and for closing

    def add(self, kind: str, descriptor: int) -> int:
        """Keep a descriptor that is written through, and return it."""
        self._descriptors[kind] = descriptor
        return descriptor

    def get(self, kind: str) -> int | None:
        """Return the descriptor, None if there is none."""
        return self._descriptors.get(kind)

    def sync(self, kind: str) -> None:
        """Put one file on the disk, and keep it open; of one that is closed nothing is done.

        Raises:
            DataDirectoryError: a sync failed, now or before.
        """
        self._sync([kind])

    def finish(self) -> None:
        """Put all files on the disk, and close them; raises as `sync`."""
        self._sync(list(self._descriptors), is_last=True)

    def close(self) -> None:
        """Close the files as they are; where another thread is syncing one, that thread closes them, for nobody waits.

        No earlier: the descriptor would be another file's then.
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
            if self._failure is not None:
                raise self._failure
            if kind in self._descriptors:
                self._seam.sync(self._descriptors[kind])
        except DataDirectoryError as error:
            self._failure = error
            if not self._is_unwanted:  # nobody reads a file that was removed
                raise

    def _close(self) -> None:
        while self._descriptors:
            _, descriptor = self._descriptors.popitem()
            self._seam.close(descriptor)
