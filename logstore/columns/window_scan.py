"""Batch tables of a file, window by window, with checksums computed by several threads.

The scan of headers is sequential, as each leads to the next, so only the reader scans; any thread checks checksums.
Both release the GIL, and the threads share the page faults of the mapping.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

from ..layout.batch import HEADER_SIZE
from . import batch_table
from .batch_table import BatchTable, ByteArray, compute_is_valid, scan_chunk
from .in_order import in_order

PARALLEL_SIZE_MIN = 4 * 1024 * 1024  # bytes; below, threads cost more than they save
WINDOW_SIZE_MIN = 1024 * 1024  # bytes; windows of a short range are smaller, so that each thread gets some
WINDOW_COUNT_MIN = 8
# Released windows are larger: no later kernel reads their bytes again from the cache, and Python runs less often.
RELEASED_WINDOW_SIZE, RELEASED_ROW_COUNT = 32 * 1024 * 1024, 16_384


def scan_windows(
    data: ByteArray,
    position: int,
    end: int,
    *,
    load: Callable[[int, int], None] | None = None,
    release: Callable[[int, int], None] | None = None,
) -> Generator[BatchTable]:
    """Scan from `position` with checksums until the scan ends; the status of the last table says why.

    Args:
        data: uint8, 1-D, contiguous, may be read-only: the whole file.
        position: byte where a batch starts.
        end: byte that no batch may reach past, at most len(data).
        load: called with each range before it is read, in order, as `LoadedFile.load`.
        release: called with the range of a window that was read, as `MappedFile.release`, by the thread that checked
            it; for a reader that needs little but the tables. Windows are larger then.
    """

    def check(table: BatchTable) -> BatchTable:
        compute_is_valid(data, table)
        if release is not None and len(table):
            release(int(table.position[0]), table.next_position)
        return table

    window_size = max((end - position) // WINDOW_COUNT_MIN, WINDOW_SIZE_MIN)
    if release is None:
        walk = walker(data, position, end, min(window_size, batch_table.WINDOW_SIZE), load=load)
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
    *,
    load: Callable[[int, int], None] | None = None,
) -> Callable[[], BatchTable | None]:
    """Return a function that returns the next table, without checksums, each time; None after the last."""
    place: int | None = position

    def walk() -> BatchTable | None:
        nonlocal place
        if place is None:
            return None
        if load is not None:
            load(place, min(end, place + (window_size or batch_table.WINDOW_SIZE) + HEADER_SIZE))
        table = scan_chunk(data, place, end, capacity=capacity, window_size=window_size)
        if load is not None:
            load(place, table.next_position)  # the last batch of a window may be longer
        place = table.next_position if table.has_more else None
        return table

    return walk
