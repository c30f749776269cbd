"""How far a long dump is, on a terminal."""

from __future__ import annotations

import threading
from typing import BinaryIO, TextIO

from logstore.clock import monotonic_s

INTERVAL_S = 0.2
SIZE_MIN = 32 * 1024 * 1024  # bytes of input below which a dump is over before a line would help
_REMOVE = "\r\033[K"


class Progress:
    """One line on stderr that is rewritten in place; safe to be told of progress by many threads.

    Silent where stderr is no terminal, where stdout is one (its lines are the progress), and where the input is small.
    """

    def __init__(self, stderr: TextIO, stdout: BinaryIO, input_size: int) -> None:
        self._stream = stderr
        self._input_size = input_size
        self._is_shown = input_size >= SIZE_MIN and stderr.isatty() and not stdout.isatty()
        self._done_size = 0
        self._next_s = 0.0
        self._is_line_there = False
        self._lock = threading.Lock()

    def advance(self, size: int) -> None:
        """`size` more bytes of input are dumped."""
        if not self._is_shown:
            return
        with self._lock:
            self._done_size += size
            now_s = monotonic_s()
            if now_s >= self._next_s:
                self._next_s = now_s + INTERVAL_S
                self._write()

    def clear(self) -> None:
        """Remove the line, so that another one can be printed."""
        with self._lock:
            if self._is_line_there:
                self._is_line_there = False
                self._stream.write(_REMOVE)
                self._stream.flush()

    def _write(self) -> None:
        percent = min(100 * self._done_size // self._input_size, 100)
        self._is_line_there = True
        self._stream.write(f"\rlogstore: {percent:3d} % of {self._input_size / 2**30:.2f} GiB dumped")
        self._stream.flush()
