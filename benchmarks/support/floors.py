"""The least that an operation can take on this machine, measured in the same round: memory read, memory copied, bytes
given to the system, and the libraries that decompress and compress, with nothing around them.

What is small is handled many times in one call, so that no floor is the time of a call of numpy's.
"""

from __future__ import annotations

import ctypes
import os
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import cramjam
import numpy as np
import numpy.typing as npt
import zstandard
from isal import igzip_lib

from benchmarks.support.measure import Floor, Side, seconds_of, timed
from logstore.codec import decompress
from logstore.disk.mapped import MappedFile
from logstore.disk.seam import SEAM
from logstore.kernels.scan.crc32c import crc32c_range
from logstore.model import Codec

Bytes = npt.NDArray[np.uint8]
Int64Array = npt.NDArray[np.int64]
T = TypeVar("T")
PART_SIZE = 1 << 20
PART_COUNT = 3
NEAR_SIZE = 1 << 18  # bytes that the nearer caches hold, and that take much longer than a call
SNAPPY_HEADERS_SIZE = 20  # bytes of a stream before its first block
STREAM_SIZE_MAX = 1 << 30


def reading(data: npt.NDArray[np.uint8 | np.int64]) -> Floor:
    """Read every byte once, by numpy."""
    content = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
    words = content[: content.size // 8 * 8]
    if words.ctypes.data % 8:
        words = words.copy()
    times = max(1, NEAR_SIZE // max(content.size, 1))
    whole = np.tile(words.view(np.int64), times) if times > 1 else words.view(np.int64)
    return Floor("memory read", _part(least(np.bitwise_or.reduce, whole), times))


def mapped(path: Path, thread_count: int = 1) -> Floor:
    """Map a file anew and check every byte, a MiB at a time; page cache warm."""

    def check_all() -> None:
        data = MappedFile(str(path)).data
        check = lambda start: crc32c_range(data, start, min(start + PART_SIZE, data.size))  # noqa: E731
        run_shared(check, range(0, data.size, PART_SIZE), thread_count)

    return Floor(_on("CRC of a mapped file", thread_count), least(check_all))


def touching(data: Bytes, positions: Int64Array) -> Floor:
    """Read a byte of each batch, and with it a cache line: what a walk that reads headers cannot leave out."""
    times = max(1, NEAR_SIZE // 64 // positions.size)
    places = np.tile(positions, times)
    out = np.empty(places.size, np.uint8)
    read = least(lambda: np.take(data, places, out=out, mode="clip"))
    return Floor("a cache line of each batch", _part(read, times))


def touching_file(path: Path, positions: Int64Array) -> Floor:
    """Do the same in a file that is mapped anew: its pages too."""
    return Floor("a mapped page of each batch", least(lambda: np.take(MappedFile(str(path)).data, positions)))


def copying(size: int) -> Floor:
    """Copy so many bytes from memory to memory."""
    times = max(1, NEAR_SIZE // max(size, 1))
    source, target = np.ones(size * times, np.uint8), np.ones(size * times, np.uint8)
    return Floor("memory copied", _part(least(np.copyto, target, source), times))


def writing(path: Path, size: int, call_count: int = 1) -> Floor:
    """Write so many bytes in one call, to a file that grows into reserved space (no sync)."""
    return writing_each(path, [size], call_count)


def writing_each(path: Path, sizes: Sequence[int], call_count: int = 1) -> Floor:
    """Do writes of these sizes, one after the other, as `writing` does one; by machine code, as a log's own."""
    data, each = np.zeros(max(sizes), np.uint8), np.array(sizes, np.int64)
    name = "bare write" if len(sizes) == 1 else f"{len(sizes)} bare writes"
    return Floor(name, _growing(path, sum(sizes), call_count, lambda file: write_each(file, data, each, call_count)))


def writing_in_parts(path: Path, size: int) -> Floor:
    """Write so many bytes, a MiB a call, to a file that grows: nothing is reserved, as for a standard output."""
    data, sizes = np.zeros(PART_SIZE, np.uint8), [PART_SIZE] * (size // PART_SIZE) + [size % PART_SIZE]
    each = np.array(sizes, np.int64)
    return Floor("bare write", _growing(path, 0, 1, lambda file: write_each(file, data, each, 1)))


def appending(path: Path, size: int, call_count: int = 1) -> Floor:
    """Copy so many bytes once, a part at a time, checksum and write them, as `writing` does.

    Every append of records does that much: they lie elsewhere than they are written from, and a batch has a CRC.
    """
    source, part = np.ones(size, np.uint8), np.empty(min(size, PART_SIZE), np.uint8)
    pieces = [source[begin : begin + PART_SIZE] for begin in range(0, size, PART_SIZE)]
    work = [(piece, part[: piece.size], np.array([piece.size])) for piece in pieces]

    def append_all(descriptor: int) -> None:
        for _ in range(call_count):
            for piece, copied, each in work:
                np.copyto(copied, piece)
                crc32c_range(copied, 0, copied.size)
                write_each(descriptor, copied, each, 1)

    return Floor("copy, CRC and write", _growing(path, size, call_count, append_all))


def _growing(path: Path, size: int, call_count: int, write_all: Callable[[int], object]) -> Side:
    """Return a side: seconds of one of the calls of `write_all`, to a file with `size` bytes reserved for each."""

    def side() -> float:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        write_each(descriptor, np.zeros(1, np.uint8), np.zeros(0, np.int64), 1)  # the first one compiles
        if size:
            SEAM.reserve(descriptor, 0, size * call_count)
        seconds = seconds_of(1, write_all, descriptor) / call_count
        os.close(descriptor)
        path.unlink()
        return seconds

    return side


def library(name: str, function: Callable[..., object], *arguments: object) -> Floor:
    """Call the library that does the work, with nothing around it."""
    return Floor(name, least(function, *arguments))


def library_over(name: str, function: Callable[[T], object], inputs: Sequence[T], thread_count: int) -> Floor:
    """Do the same for many inputs, shared among threads."""
    return Floor(_on(name, thread_count), least(run_shared, function, inputs, thread_count))


def run_shared(function: Callable[[T], object], inputs: Sequence[T], thread_count: int) -> None:
    """Call a function with each of the inputs; each thread has every `thread_count`th."""

    def work(part: Sequence[T]) -> None:
        for each in part:
            function(each)

    if thread_count == 1:
        work(inputs)
        return
    with ThreadPoolExecutor(thread_count) as threads:
        list(threads.map(work, [inputs[number::thread_count] for number in range(thread_count)]))


def least(function: Callable[..., object], *arguments: object) -> Side:
    """Return a side: seconds of a call, the least of some parts of a round."""
    return timed(function, *arguments, part_count=PART_COUNT)


def _part(side: Side, times: int) -> Side:
    return lambda: side() / times


def _on(name: str, thread_count: int) -> str:
    return name if thread_count == 1 else f"{name}, {thread_count} threads"


def decompressing(codec: Codec, streams: Sequence[bytes]) -> Floor:
    """Call the library alone, once a stream. Of snappy a stream is one block, behind the headers of its framing."""
    size = max(len(decompress(codec, memoryview(stream), 2, STREAM_SIZE_MAX).data) for stream in streams)
    out, context = np.ones(size, np.uint8), zstandard.ZstdDecompressor()
    libraries: dict[Codec, tuple[str, Callable[[bytes], object]]] = {
        Codec.GZIP: ("isal", lambda stream: igzip_lib.decompress(stream, igzip_lib.DECOMP_GZIP, 15, size)),
        Codec.SNAPPY: ("cramjam", lambda stream: cramjam.snappy.decompress_raw_into(stream[SNAPPY_HEADERS_SIZE:], out)),
        Codec.LZ4: ("cramjam", lambda stream: cramjam.lz4.decompress_into(stream, out)),
        Codec.ZSTD: ("zstandard", lambda stream: context.decompress(stream, max_output_size=size)),
    }
    name, function = libraries[codec]
    return library_over(name, function, streams, 1)


def compressing(codec: Codec, stream: bytes) -> Floor:
    """Call the library that ours calls, at the level that Kafka has by default."""
    if codec is Codec.NONE:
        return copying(len(stream))
    libraries: dict[Codec, tuple[str, Callable[[bytes], object]]] = {
        Codec.GZIP: ("zlib", zlib.compress),
        Codec.SNAPPY: ("cramjam", cramjam.snappy.compress_raw),
        Codec.LZ4: ("cramjam", cramjam.lz4.compress_block),
        Codec.ZSTD: ("cramjam", lambda stream: cramjam.zstd.compress(stream, level=3)),
    }
    return library(*libraries[codec], stream)


def write_each(descriptor: int, data: npt.NDArray[np.uint8], sizes: npt.NDArray[np.int64], times: int) -> None:
    """Call `write` so many times for each of the sizes, from the beginning of `data`, by machine code as a log's own.

    Raises:
        OSError: not all of it was written.
    """
    written = _writing()(descriptor, data.ctypes.data, sizes, times)
    if written != int(sizes.sum()) * times:
        raise OSError(f"{written} bytes were written instead of {int(sizes.sum()) * times}")


@cache
def _writing() -> Callable[..., int]:
    import numba

    write = ctypes.CDLL(None).write
    write.argtypes, write.restype = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t), ctypes.c_ssize_t

    def write_all(descriptor: Any, address: Any, sizes: Any, times: Any) -> Any:
        total = 0
        for _ in range(times):
            for size in sizes:
                total += write(descriptor, address, size)
        return total

    compiled: Callable[..., int] = numba.njit("i8(i8, i8, i8[::1], i8)")(write_all)
    return compiled
