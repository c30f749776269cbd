"""A file's batch tables, window after window, computed by several threads.

The walk over the headers is a chain, so the reader alone walks; checksums are checked by whoever is free. Both release
the interpreter, and the threads share the page faults of the mapping as well.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

from . import batch_table
from .batch_table import BatchTable, ByteArray, compute_is_valid, scan_chunk
from .in_order import in_order

PARALLEL_SIZE_MIN = 4 * 1024 * 1024  # bytes; below, threads cost more than they save
WINDOW_SIZE_MIN = 1024 * 1024  # bytes; windows of a short range are smaller, so that both threads get some
WINDOW_COUNT_MIN = 8
# Of windows that are released, for nobody looks at their bytes again while the cache has them: less of Python between.
RELEASED_WINDOW_SIZE, RELEASED_ROW_COUNT = 32 * 1024 * 1024, 16_384


def scan_windows(
    data: ByteArray, position: int, end: int, *, release: Callable[[int, int], None] | None = None
) -> Generator[BatchTable]:
    """`scan_chunk` with checksums from `position` until it ends; the last table tells why by its status.

    Args:
        data: uint8, 1-D, contiguous, maybe read-only: the whole file.
        position: bytes; where a batch starts.
        end: bytes, at most len(data); no batch reaches past it.
        release: told the window's range when it was read; for a reader to whom the table is nearly all,
            `MappedFile.release`, which the threads then do side by side. Windows are larger then.
    """

    def check(table: BatchTable) -> BatchTable:
        compute_is_valid(data, table)
        if release is not None and len(table):
            release(int(table.position[0]), table.next_position)
        return table

    window_size = max((end - position) // WINDOW_COUNT_MIN, WINDOW_SIZE_MIN)
    if release is None:
        walk = walker(data, position, end, min(window_size, batch_table.WINDOW_SIZE))
    else:
        walk = walker(data, position, end, min(window_size, RELEASED_WINDOW_SIZE), RELEASED_ROW_COUNT)
    if end - position >= PARALLEL_SIZE_MIN:
        yield from in_order(walk, check)
        return
    while (table := walk()) is not None:
        yield check(table)


def walker(
    data: ByteArray,
    position: int,
    end: int,
    window_size: int | None = None,
    capacity: int = batch_table.CHUNK_ROW_COUNT,
) -> Callable[[], BatchTable | None]:
    """A function that gives the next table every time, without checksums; None after the last."""
    place: int | None = position

    def walk() -> BatchTable | None:
        nonlocal place
        if place is None:
            return None
        table = scan_chunk(data, place, end, capacity=capacity, window_size=window_size)
        place = table.next_position if table.has_more else None
        return table

    return walk
