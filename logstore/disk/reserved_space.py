"""Disk space reserved ahead of the end of a file that only grows.

An append of 100 KB takes half as long again where the file system must first allocate blocks: one `fallocate` for a MiB
or more pays for itself. The size of the file does not change, so no reader notices. Small files reserve nothing, and no
file reserves more than was written to it already.
"""

from __future__ import annotations

import os

from .seam import Seam

_LEAST_SIZE, _MOST_SIZE = 1 << 20, 1 << 24  # bytes
_BLOCK_SIZE = 512  # bytes, the unit of `st_blocks`
_SLACK_SIZE = 1 << 17  # bytes that a file system may allocate beside the file's own


def is_reserved(path: str, size: int) -> bool:
    """Return whether space behind the file's `size` bytes is reserved; False without the file."""
    try:
        return os.stat(path).st_blocks * _BLOCK_SIZE - size > _SLACK_SIZE
    except OSError:
        return False


class ReservedSpace:
    """Reserved space of one open file.

    Attributes:
        end: size up to which the file may grow before `extend` acts; not below its size.
    """

    def __init__(self, seam: Seam, descriptor: int, size: int, size_max: int) -> None:
        """Start at `size` of at most `size_max` bytes; a killed process may have left reserved blocks."""
        self._seam = seam
        self._descriptor = descriptor
        self._start = size
        self._size_max = size_max
        self._is_reserved = os.fstat(descriptor).st_blocks * _BLOCK_SIZE - size > _SLACK_SIZE
        self.end = min(size + _LEAST_SIZE, size_max)

    def extend(self, size: int, more_size: int) -> None:
        """Prepare an append of `more_size` bytes to `size`: behind `end`, reserve as much as was written so far."""
        if size + more_size <= self.end:
            return
        room = min(max(size - self._start, _LEAST_SIZE), _MOST_SIZE)
        self.end = max(min(size + more_size + room, self._size_max), size + more_size)
        if self._seam.reserve(self._descriptor, size, self.end - size):
            self._is_reserved = True
        else:
            # the system reserves nothing: do not ask again
            self.end = max(self._size_max, self.end)

    def give_back(self, size: int) -> None:
        """Release the space behind the file's `size` bytes; raise DataDirectoryError."""
        if self._is_reserved:
            self._seam.truncate(self._descriptor, size)
            self._is_reserved = False
