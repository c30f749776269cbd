"""Memory that a round may write to, made ready before it.

A virtual machine gives free memory back to its host after some seconds (free page reporting). Who asks for it next,
a page cache that a log is written to above all, waits ten times as long as for the write itself, and whose round that
is, is chance. So both sides are given memory that has just been written to, by the page cache itself: what it gave
back it takes first, of memory that a process gave back only some. It takes pieces of memory as large as what is
written and where that begins allow: a MiB at a whole MiB one piece, at any other place one of each size below it. So
the pieces are as the batches of a log, of all sizes and at any place. Who writes much in large ones finds few of what
was given back in small ones, and who writes much in small ones few of large: there it is as much in large ones, and
then in small ones too. It goes on until as much as will be written came without waiting, since what lies free in
small pieces comes first, whether it is there or not. (With large pieces alone, and no more of them than needed, appends
of 107 KB took 40 µs in all the rounds of one run and 250 in those of the next.)
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from typing import BinaryIO

LEAST_SIZE, SPARE_SIZE_MAX = 1 << 18, 512 << 20
LARGE_SIZE = 32 << 20  # what is written in a round, from which on there are large pieces too
WAITING_S_PER_BYTE = 1e-9  # what is ready takes 0.2 to 0.4 ns a byte, what is not 2
_PIECES = [bytes(size) for size in [10_761] * 50 + [107_061] * 5 + [(1 << 20) - 51, 1 << 20]]
_LARGE_PIECES = [bytes(8 << 20)]


def make_ready(size: int) -> None:
    """Let the next `size` bytes that are written find memory that is there; for none there is nothing to do."""
    if size == 0:
        return
    spare_size = min(size, SPARE_SIZE_MAX)
    with tempfile.TemporaryFile(buffering=0) as file:
        if size < LARGE_SIZE:
            _write(file, _PIECES, max(size, LEAST_SIZE) + spare_size)
        else:
            _write(file, _LARGE_PIECES, size)
            _write(file, _PIECES, spare_size)


def _write(file: BinaryIO, pieces: Sequence[bytes], size: int) -> None:
    """Write so many bytes in a row that did not wait for their memory, but no more than four times as many in all."""
    cycle_size = sum(map(len, pieces))
    left_size, spent_size = size, 0
    while left_size > 0 and spent_size < 4 * max(size, cycle_size):
        start_s = time.perf_counter()
        file.writelines(pieces)
        is_ready = time.perf_counter() - start_s < cycle_size * WAITING_S_PER_BYTE
        left_size = left_size - cycle_size if is_ready else size
        spent_size += cycle_size
