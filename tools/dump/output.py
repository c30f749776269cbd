"""Standard output: text is collected in a buffer that kernels fill, and written while the next buffer is filled."""

from __future__ import annotations

import queue
import threading
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from logstore.kernels.text import SLACK_SIZE

BUFFER_SIZE = 2 * 1024 * 1024  # bytes
BUFFER_COUNT = 3


class Output:
    """Bytes to a stream, in order.

    `array[size:capacity]` is free for a kernel to fill, with SLACK_SIZE bytes behind it. The first full buffer starts a
    thread that writes, so that small dumps stay in one thread. A failed write (a closed pipe, a full disk) is raised by
    the next call.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.capacity = BUFFER_SIZE
        self.array = _buffer(BUFFER_SIZE)
        self.size = 0
        self._free: queue.Queue[npt.NDArray[np.uint8]] = queue.Queue()
        self._full: queue.Queue[tuple[npt.NDArray[np.uint8], int] | None] = queue.Queue()
        self._thread: threading.Thread | None = None
        self._error: OSError | ValueError | None = None

    def write(self, text: bytes) -> None:
        """Append bytes."""
        start = 0
        while start < len(text):
            part = text[start : start + self.capacity - self.size]
            self.array[self.size : self.size + len(part)] = np.frombuffer(part, np.uint8)
            self.size += len(part)
            start += len(part)
            if self.size == self.capacity:
                self.flush()

    def print(self, text: str) -> None:
        """Append a line."""
        self.write(text.encode("utf-8", "replace") + b"\n")

    def flush(self) -> None:
        """Hand the filled buffer to the writer and take an empty one."""
        self._raise_error()
        if self.size == 0:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._write_all, daemon=True)
            self._thread.start()
            for _ in range(BUFFER_COUNT - 1):
                self._free.put(_buffer(BUFFER_SIZE))
        self._full.put((self.array, self.size))
        self.array = self._free.get()
        self.size = 0

    def close(self) -> None:
        """Write all that is left and flush the stream."""
        if self._thread is None:
            self.stream.write(self.array[: self.size].data)
        else:
            self._full.put((self.array, self.size))
            self._full.put(None)
            self._thread.join()
            self._raise_error()
        self.size = 0
        self.stream.flush()

    def _write_all(self) -> None:
        while (filled := self._full.get()) is not None:
            array, size = filled
            if self._error is None:
                try:
                    self.stream.write(array[:size].data)
                except (OSError, ValueError) as error:
                    self._error = error
            self._free.put(array)

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error


def _buffer(size: int) -> npt.NDArray[np.uint8]:
    return np.empty(size + SLACK_SIZE, np.uint8)
