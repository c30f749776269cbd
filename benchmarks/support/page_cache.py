"""The page cache while something is measured: all of what is read, as from the disk, and room for what is written.

What it was given by writes it holds in pieces of the size and at the place of each write, down to a page, and a reader
that maps them may wait for those nearly as long as for all that it does with the bytes. So files are read again, by
`read_again`, before they are measured. And while they are measured they are locked: a system may take memory back that
nobody has read for half a minute (Linux with DAMON does), of files above all. Whoever comes next then reads the disk,
and what a reader that maps a file gets from there lies in small pieces again.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np

READ_SIZE = 1 << 20  # bytes; smaller files are left as they are
PIECE_SIZE, SPARE_SIZE_MAX = 107_061, 512 << 20  # of `make_ready`
_RESIDENT = 1  # of a page, as `mincore` tells it


def read_again(path: Path) -> None:
    """Drop a file from the page cache and read it again from the disk, where the system can be asked to."""
    if not hasattr(os, "posix_fadvise") or path.stat().st_size < READ_SIZE:
        return
    with path.open("rb", buffering=0) as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        while file.read(READ_SIZE):
            pass


def make_ready(size: int) -> None:
    """Pre-fault memory for the next `size` bytes that are written.

    A virtual machine gives free memory back to its host after some seconds (free page reporting); who asks for it next,
    a page cache above all, waits ten times as long as for the write itself, and whose round that is, is chance.
    """
    piece = bytes(PIECE_SIZE)
    with tempfile.TemporaryFile(buffering=0) as file:
        for _ in range(0, size + min(size, SPARE_SIZE_MAX), PIECE_SIZE):
            file.write(piece)


@contextmanager
def held(paths: Iterable[Path]) -> Iterator[None]:
    """Keep all of these files in the page cache, where the system lets memory be locked."""
    with ExitStack() as locks:
        for path in paths:
            if path.stat().st_size >= READ_SIZE:
                locks.enter_context(_locked(path))
        yield


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    system = ctypes.CDLL(None)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        data = np.frombuffer(mapped, np.uint8)
        where = ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(data.size)
        if resident_size(path) < data.size:
            read_again(path)
        system.mlock(*where)  # refused where a user may not lock so much: then it is there now, and may go
        try:
            yield
        finally:
            system.munlock(*where)
            del data, where


def resident_size(path: Path) -> int:
    """Return how many bytes of the file the page cache has."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        data = np.frombuffer(mapped, np.uint8)
        pages = np.zeros(-(-data.size // mmap.PAGESIZE), np.uint8)
        where = ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(data.size), ctypes.c_void_p(pages.ctypes.data)
        if ctypes.CDLL(None).mincore(*where) != 0:
            raise OSError(f"mincore of {path} failed")
        size = min(data.size, int((pages & _RESIDENT).sum()) * mmap.PAGESIZE)
        del data
        return size
