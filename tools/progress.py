"""What is done of something that takes longer than a second: one line on a terminal, that is gone at its end.

with Progress("audit") as progress:
    for partition in progress.each(partitions): ...
"""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Self, TextIO, TypeVar

from logstore.clock import monotonic_s

T = TypeVar("T")
DELAY_S, INTERVAL_S = 1.0, 0.2  # before the first line, and between two
ERASE = "\r\033[K"


class Progress:
    """A line that a thread rewrites until the context ends; many threads may say what they have done.

    Args:
        verb: what is going on.
        size: bytes there are to be done; 0 where partitions are counted, or nothing.
        stream: where the line goes, if that is a terminal; by default standard error.
    """

    def __init__(self, verb: str, size: int = 0, stream: TextIO | None = None) -> None:
        self.partition_count = 0  # there are to be done
        self._verb = verb
        self._size = size
        self._stream = stream or sys.stderr
        self._done = 0
        self._is_line_there = False
        self._lock = threading.Lock()
        self._is_ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True) if self._stream.isatty() else None

    def __enter__(self) -> Self:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_ended.set()
        if self._thread is not None:
            self._thread.join()
        self.clear()

    def each(self, items: Sequence[T]) -> Iterator[T]:
        """Go over partitions, each of which is done when the next one is asked for."""
        self.partition_count += len(items)
        for item in items:
            yield item
            self.advance(1)

    def advance(self, count: int) -> None:
        """So many more bytes or partitions are done."""
        with self._lock:
            self._done += count

    def clear(self) -> None:
        """Remove the line, so that another one can be printed."""
        with self._lock:
            if self._is_line_there:
                self._is_line_there = False
                self._stream.write(ERASE)
                self._stream.flush()

    def _run(self) -> None:
        start_s, pause_s = monotonic_s(), DELAY_S
        while not self._is_ended.wait(pause_s):
            pause_s = INTERVAL_S
            with self._lock:
                line = f"logstore {self._verb}: {self._words(monotonic_s() - start_s)}"
                self._is_line_there = True
                self._stream.write(f"{ERASE}{line[: shutil.get_terminal_size().columns - 1]}")
                self._stream.flush()

    def _words(self, seconds: float) -> str:
        if self._size:
            percent = min(100 * self._done // self._size, 100)
            return f"{percent} % of {self._size / 2**30:.2f} GiB, {self._done / 2**20 / seconds:.0f} MiB/s"
        if self.partition_count:
            return f"{self._done:,} of {self.partition_count:,} partitions, {seconds:.0f} s"
        return f"{seconds:.0f} s"
