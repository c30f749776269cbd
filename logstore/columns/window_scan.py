"""A file's batch tables, window after window, computed ahead by two threads.

The walk over the headers is a chain, so only one thread walks at a time; while it checks its window's checksums, the
other walks on. Both release the interpreter, and they share the page faults of the mapping as well.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator

from ..kernels import scan as fields
from .batch_table import BatchTable, ByteArray, compute_is_valid, scan_chunk

THREAD_COUNT = 2
WINDOWS_AHEAD_COUNT = 4
PARALLEL_SIZE_MIN = 4 * 1024 * 1024  # bytes; below, threads cost more than they save


def scan_windows(data: ByteArray, position: int, end: int) -> Iterator[BatchTable]:
    """`scan_chunk` with checksums from `position` until it ends; the last table tells why by its status.

    Args:
        data: uint8, 1-D, contiguous, maybe read-only: the whole file.
        position: bytes; where a batch starts.
        end: bytes, at most len(data); no batch reaches past it.
    """
    if end - position >= PARALLEL_SIZE_MIN:
        yield from _Ahead(data, position, end).tables()
        return
    while True:
        table = scan_chunk(data, position, end, check_crc=True)
        yield table
        if table.status != fields.MORE:
            return
        position = table.next_position


class _Ahead:
    """The threads, and the tables they have ready by window."""

    def __init__(self, data: ByteArray, position: int, end: int) -> None:
        self._data = data
        self._end = end
        self._walk = threading.Lock()
        self._position: int | None = position  # where the next window starts; None after the last
        self._window_count = 0
        self._room = threading.Semaphore(WINDOWS_AHEAD_COUNT)
        self._is_stopped = False
        self._ready = threading.Condition()
        self._tables: dict[int, BatchTable | BaseException] = {}

    def tables(self) -> Iterator[BatchTable]:
        """In order; the threads end with the file or with the caller."""
        threads = [threading.Thread(target=self._run, daemon=True) for _ in range(THREAD_COUNT)]
        for thread in threads:
            thread.start()
        try:
            window = 0
            while True:
                table = self._take(window)
                yield table
                self._room.release()
                if table.status != fields.MORE:
                    return
                window += 1
        finally:
            self._is_stopped = True
            for _ in range(THREAD_COUNT):
                self._room.release()
            # whoever stops early may cut the file next, and bytes that are gone must not be read
            for thread in threads:
                thread.join()

    def _take(self, window: int) -> BatchTable:
        with self._ready:
            self._ready.wait_for(lambda: window in self._tables)
            table = self._tables.pop(window)
        if isinstance(table, BaseException):
            raise table
        return table

    def _run(self) -> None:
        while True:
            self._room.acquire()
            with self._walk:
                if self._is_stopped or self._position is None:
                    return
                window = self._window_count
                self._window_count += 1
                result = self._next_table()
            if isinstance(result, BatchTable):
                compute_is_valid(self._data, result)
            with self._ready:
                self._tables[window] = result
                self._ready.notify()

    def _next_table(self) -> BatchTable | BaseException:
        try:
            table = scan_chunk(self._data, self._position or 0, self._end)
        except BaseException as error:  # raised again by the thread that asks for the window
            self._position = None
            return error
        self._position = table.next_position if table.status == fields.MORE else None
        return table
