"""What is done of something that takes longer than a second: one line on a terminal, that is gone at its end.

with Progress("audit", lambda: log_size(path)) as progress:
    progress.advance(size)
"""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Callable
from typing import Self, TextIO

from logstore.clock import monotonic_s
from logstore.errors import DataDirectoryError
from logstore.threads import start_thread

DELAY_S, INTERVAL_S = 1.0, 0.2  # before the first line, and between two
ERASE = "\r\033[K"


class Progress:
    """A line that a thread rewrites until the context ends; many threads may say what they have done.

    Args:
        verb: what is going on.
        size: returns the bytes there are to be done, 0 if nobody knows; asked before the first line only.
        has_rate: the bytes that are done were read; False where some are left out.
        stream: where the line goes, if that is a terminal; by default standard error.
    """

    def __init__(
        self,
        verb: str,
        size: Callable[[], int] = lambda: 0,
        stream: TextIO | None = None,
        *,
        has_rate: bool = True,
    ) -> None:
        self._verb, self._has_rate = verb, has_rate
        self._size = size
        self._stream = stream or sys.stderr
        self._done = 0
        self._is_line_there = False
        self._lock = threading.Lock()
        self._is_ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True) if self._stream.isatty() else None

    def __enter__(self) -> Self:
        if self._thread is not None:
            start_thread(self._thread)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_ended.set()
        if self._thread is not None:
            self._thread.join()
        self.clear()

    def advance(self, size: int) -> None:
        """So many more bytes are done."""
        with self._lock:
            self._done += size

    def clear(self) -> None:
        """Remove the line, so that another one can be printed."""
        with self._lock:
            if self._is_line_there:
                self._is_line_there = False
                self._stream.write(ERASE)
                self._stream.flush()

    def _run(self) -> None:
        start_s, pause_s, size = monotonic_s(), DELAY_S, -1
        while not self._is_ended.wait(pause_s):
            pause_s = INTERVAL_S
            size = self._size() if size < 0 else size
            with self._lock:
                line = f"logstore {self._verb}: {self._words(size, monotonic_s() - start_s)}"
                self._is_line_there = True
                self._stream.write(f"{ERASE}{line[: shutil.get_terminal_size().columns - 1]}")
                self._stream.flush()

    def _words(self, size: int, seconds: float) -> str:
        if size:
            percent = min(100 * self._done // size, 100)
            rate = f"{self._done / 2**20 / seconds:.0f} MiB/s" if self._has_rate else f"{seconds:.0f} s"
            return f"{percent} % of {size / 2**30:.2f} GiB, {rate}"
        return f"{seconds:.0f} s"


def log_size(path: str, *, is_partition: bool = False) -> int:
    """Return the bytes of all segments of a data directory or a partition; 0 if it cannot be listed."""
    from logstore.disk.directory import list_data_directory, list_partition_directory
    from logstore.disk.files import file_size

    try:
        partitions = [list_partition_directory(path)] if is_partition else list_data_directory(path).partitions
    except DataDirectoryError:
        return 0  # the reader raises the error
    return sum(file_size(segment.log) for one in partitions for segment in one.segments)
