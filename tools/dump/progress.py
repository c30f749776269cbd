"""How far a long dump is, on a terminal."""

from __future__ import annotations

from typing import TextIO

from logstore.clock import monotonic_s

INTERVAL_S = 0.2
SIZE_MIN = 32 * 1024 * 1024  # bytes of input below which a dump is over before a line would help


class Progress:
    """One line that is rewritten in place; silent where `stream` is no terminal or the input is small."""

    def __init__(self, stream: TextIO, input_size: int) -> None:
        self._stream = stream
        self._input_size = input_size
        self._is_shown = input_size >= SIZE_MIN and stream.isatty()
        self._done_size = 0
        self._next_s = 0.0

    def advance(self, size: int) -> None:
        """`size` more bytes of input are dumped."""
        self._done_size += size
        if not self._is_shown:
            return
        now_s = monotonic_s()
        if now_s >= self._next_s:
            self._next_s = now_s + INTERVAL_S
            percent = min(100 * self._done_size // self._input_size, 100)
            self._stream.write(f"\rlogstore: {percent:3d} % of {self._input_size / 2**30:.2f} GiB dumped")
            self._stream.flush()

    def close(self) -> None:
        """Remove the line."""
        if self._is_shown and self._next_s:
            self._stream.write("\r\033[K")
            self._stream.flush()
