"""Space on the disk that a file which only grows has ahead of its end.

A file system that is asked for blocks with each write takes half as long again for one of 100 KB as for the same write
into blocks that it has set aside: one question for a MiB and more pays for itself. The size of the file says nothing of
it, so no reader sees it. Small files ask for nothing, and none for more than it has been written already.
"""

from __future__ import annotations

import os

from .seam import Seam

_LEAST_SIZE, _MOST_SIZE = 1 << 20, 1 << 24  # bytes
_BLOCK_SIZE = 512  # bytes that `st_blocks` counts by
_SLACK_SIZE = 1 << 17  # bytes that a file system may take for a file beside its own


class ReservedSpace:
    """What is reserved of one open file.

    Attributes:
        end: bytes that the file may have before `extend` does something; not below its size.
    """

    def __init__(self, seam: Seam, descriptor: int, size: int, size_max: int) -> None:
        """Of a file of `size` bytes that is not to be longer than `size_max`; who was killed may have left some."""
        self._seam = seam
        self._descriptor = descriptor
        self._start = size
        self._size_max = size_max
        self._is_reserved = os.fstat(descriptor).st_blocks * _BLOCK_SIZE - size > _SLACK_SIZE
        self.end = min(size + _LEAST_SIZE, size_max)

    def extend(self, size: int, more_size: int) -> None:
        """The file has `size` bytes and is about to get more: behind `end`, reserve as much again as it has got."""
        if size + more_size <= self.end:
            return
        room = min(max(size - self._start, _LEAST_SIZE), _MOST_SIZE)
        self.end = max(min(size + more_size + room, self._size_max), size + more_size)
        if self._seam.reserve(self._descriptor, size, self.end - size):
            self._is_reserved = True
        else:
            self.end = max(self._size_max, self.end)

    def give_back(self, size: int) -> None:
        """Leave the file no more than the `size` bytes that it has; raises DataDirectoryError."""
        if self._is_reserved:
            self._seam.truncate(self._descriptor, size)
            self._is_reserved = False
