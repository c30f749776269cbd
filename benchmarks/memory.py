"""Memory that a round may take, made ready before it.

A virtual machine gives free memory back to its host after some seconds (free page reporting). Who asks for it next,
a page cache that a log is written to above all, waits ten times as long as for the write itself, and whose round that
is, is chance. So both sides are given memory that has just been touched.
"""

from __future__ import annotations

import mmap

import numpy as np

LEAST_SIZE, MOST_SIZE = 8 << 20, 256 << 20
PAGE_SIZE = 4096


def touch(size: int) -> None:
    """Let the next `size` bytes that anything asks for be there already; few are left alone, no more than some done."""
    if size < LEAST_SIZE:
        return
    with mmap.mmap(-1, min(2 * size, MOST_SIZE)) as memory:
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        np.frombuffer(memory, np.uint8)[::PAGE_SIZE] = 1
