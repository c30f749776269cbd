"""Memory that a round may write to, made ready before it.

A virtual machine gives free memory back to its host after some seconds (free page reporting). Who asks for it next,
a page cache that a log is written to above all, waits ten times as long as for the write itself, and whose round that
is, is chance. So both sides are given memory that has just been written to, by the page cache itself: what it gave
back it takes first, of memory that a process gave back only some. It takes pieces of memory as large as what is
written and where that begins allow: a MiB at a whole MiB one piece, at any other place one of each size below it. So
the pieces are as the batches of a log, of all sizes and at any place. Who writes much at once asks for large ones, and
finds few of what was given back in small ones: there the pieces are such as any other is cut from. Who writes as much
in many small ones finds few of what was given back in large ones, since what lies free in small ones comes first: so
appends of 107 KB took 40 µs in all the rounds of one run, and 250 in those of the next.
"""

from __future__ import annotations

import tempfile
from itertools import cycle

LEAST_SIZE, SPARE_SIZE_MAX = 1 << 18, 512 << 20
LARGE_SIZE = 32 << 20  # what a call writes, from which on the pieces are large
_PIECES = [bytes(size) for size in [10_761] * 50 + [107_061] * 5 + [(1 << 20) - 51, 1 << 20]]
_LARGE_PIECES = [bytes(8 << 20)]


def make_ready(call_count: int, call_size: int) -> None:
    """Let what is written next, so many bytes a call, find memory that is there; for none there is nothing to do."""
    size = call_count * call_size
    if size == 0:
        return
    with tempfile.TemporaryFile(buffering=0) as file:
        wanted_size = max(size, LEAST_SIZE) + min(size, SPARE_SIZE_MAX)
        for piece in cycle(_PIECES if call_size < LARGE_SIZE else _LARGE_PIECES):
            file.write(piece)
            wanted_size -= len(piece)
            if wanted_size <= 0:
                return
