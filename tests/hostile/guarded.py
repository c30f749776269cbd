"""A buffer that ends at a page that nobody may touch: a kernel that reads or writes behind the end ends the process."""

from __future__ import annotations

import ctypes
import mmap

import numpy as np
import numpy.typing as npt

_NO_ACCESS = 0


class GuardedBuffer:
    """Memory for one input after the other."""

    def __init__(self, size_max: int) -> None:
        """`size_max`: bytes of the largest input."""
        self._size = -(-size_max // mmap.PAGESIZE) * mmap.PAGESIZE
        self._array = np.frombuffer(mmap.mmap(-1, self._size + mmap.PAGESIZE), np.uint8)
        guard = ctypes.c_void_p(self._array.ctypes.data + self._size)
        if ctypes.CDLL(None).mprotect(guard, ctypes.c_size_t(mmap.PAGESIZE), _NO_ACCESS):
            raise OSError("mprotect failed")

    def place(self, content: bytes) -> npt.NDArray[np.uint8]:
        """Return the content as a read-only array that ends at the guard page, until the next call."""
        place = self._array[self._size - len(content) : self._size]
        place[:] = np.frombuffer(content, np.uint8)
        place.flags.writeable = False
        return place
