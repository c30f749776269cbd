"""Where text goes: a buffer that kernels fill, handed over when it is full."""

from __future__ import annotations

from collections.abc import Callable
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from logstore.kernels.text import SLACK_SIZE

BUFFER_SIZE = 4 * 1024 * 1024  # bytes

Buffer = npt.NDArray[np.uint8]


class Output:
    """Bytes, in order.

    `array[size:capacity]` is free for a kernel to fill, with SLACK_SIZE bytes behind it.

    Args:
        hand_over: takes a filled buffer and the bytes in it, and returns the buffer to go on with.
    """

    def __init__(self, hand_over: Callable[[Buffer, int], Buffer]) -> None:
        self._hand_over = hand_over
        self.array = new_buffer()
        self.capacity = BUFFER_SIZE
        self.size = 0

    @classmethod
    def to_stream(cls, stream: BinaryIO) -> Output:
        """Write each filled buffer to `stream`, in the caller's thread."""

        def write(array: Buffer, size: int) -> Buffer:
            stream.write(array[:size].data)
            return array

        return cls(write)

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
        """Append a line; what is no text, as half of a surrogate pair, prints as `?`, as in Java."""
        self.write(text.encode("utf-8", "replace") + b"\n")

    def flush(self) -> None:
        """Hand the filled buffer over."""
        if self.size:
            self.array = self._hand_over(self.array, self.size)
            self.size = 0


def new_buffer() -> Buffer:
    """An empty buffer of BUFFER_SIZE and its slack."""
    return np.empty(BUFFER_SIZE + SLACK_SIZE, np.uint8)
