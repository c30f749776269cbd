"""Memory that a round may write to, made ready before it.

A virtual machine gives free memory back to its host after some seconds (free page reporting). Who asks for it next,
a page cache that a log is written to above all, waits ten times as long as for the write itself, and whose round that
is, is chance. So both sides are given memory that has just been touched. For the same reason nothing of what others
have written waits for the disk: from a tenth of the memory on, the system writes it beside a round, and then lets
whoever writes wait for it.
"""

from __future__ import annotations

import mmap
import os

import numpy as np

LEAST_SIZE, SPARE_SIZE_MAX = 8 << 20, 512 << 20
PAGE_SIZE = 4096


def make_ready(size: int) -> None:
    """Let the next `size` bytes that are written find memory that is there; few find it as it is."""
    if size == 0:
        return
    os.sync()
    if size < LEAST_SIZE:
        return
    with mmap.mmap(-1, size + min(size, SPARE_SIZE_MAX)) as memory:  # the system need not take the last that was freed
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        np.frombuffer(memory, np.uint8)[::PAGE_SIZE] = 1
