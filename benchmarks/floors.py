"""The least that an operation can take on this machine, measured in the same round: memory read, memory copied, bytes
given to the system, or the library that does the work."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from benchmarks.measured import Floor, Side, seconds_of, timed
from logstore.disk.seam import SEAM
from logstore.kernels.crc32c import crc32c

Bytes = npt.NDArray[np.uint8]
T = TypeVar("T")
PART_SIZE = 1 << 20


def reading(data: Bytes) -> Floor:
    """Every byte read once, by numpy."""
    words = data[: data.size // 8 * 8]
    if words.ctypes.data % 8:
        words = words.copy()
    return Floor("memory read", timed(np.bitwise_or.reduce, words.view(np.int64)))


def copying(size: int) -> Floor:
    """So many bytes copied from memory to memory."""
    source, target = np.ones(size, np.uint8), np.ones(size, np.uint8)
    return Floor("memory copied", timed(np.copyto, target, source))


def writing(path: Path, size: int, call_count: int = 1) -> Floor:
    """So many bytes handed to the system in one call, to a file that grows into space that is reserved (no sync)."""
    data = bytes(size)
    return Floor("bare write", _growing(path, size, call_count, lambda descriptor: os.write(descriptor, data)))


def appending(path: Path, size: int, call_count: int = 1) -> Floor:
    """So many bytes copied once, a MiB at a time, checksummed, and handed to the system as by `writing`.

    That much every append of records does: they lie somewhere else than they are written from, and a batch has a CRC.
    """
    source, part = np.ones(size, np.uint8), np.empty(min(size, PART_SIZE), np.uint8)

    def append(descriptor: int) -> None:
        for begin in range(0, size, PART_SIZE):
            piece = source[begin : begin + PART_SIZE]
            copied = part[: piece.size]
            np.copyto(copied, piece)
            crc32c(copied)
            os.write(descriptor, copied)

    return Floor("copy, CRC and write", _growing(path, size, call_count, append))


def _growing(path: Path, size: int, call_count: int, append: Callable[[int], object]) -> Side:
    """Seconds of one of so many appends of `size` bytes to a new file, by its descriptor."""

    def side() -> float:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        SEAM.reserve(descriptor, 0, size * call_count)
        seconds = seconds_of(call_count, append, descriptor) / call_count
        os.close(descriptor)
        path.unlink()
        return seconds

    return side


def writing_in_parts(path: Path, size: int) -> Floor:
    """So many bytes handed to the system, a MiB a call, to a file that grows (page cache, no sync)."""
    whole = writing(path, PART_SIZE, max(1, round(size / PART_SIZE)))
    return Floor(whole.name, lambda: whole.side() * size / PART_SIZE)


def reading_file(path: Path) -> Floor:
    """The bytes of a file read into memory, page cache warm."""
    buffer = bytearray(1 << 20)

    def read() -> None:
        with path.open("rb", buffering=0) as file:
            while file.readinto(buffer):
                pass

    return Floor("file read", timed(read))


def library(name: str, function: Callable[..., object], *arguments: Any) -> Floor:
    """The library that does the work, called with nothing around it."""
    return Floor(name, timed(function, *arguments))


def library_over(name: str, function: Callable[[T], object], inputs: Sequence[T], thread_count: int) -> Floor:
    """The same for many inputs, shared among threads: each has every `thread_count`th."""

    def work(part: Sequence[T]) -> None:
        for each in part:
            function(each)

    def work_all() -> None:
        if thread_count == 1:
            work(inputs)
        else:
            with ThreadPoolExecutor(thread_count) as threads:
                list(threads.map(work, [inputs[number::thread_count] for number in range(thread_count)]))

    return Floor(name, timed(work_all))
