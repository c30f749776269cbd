"""Where text goes: a buffer that kernels fill, handed over when it is full."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, BinaryIO

from logstore.kernels.dump.text import SLACK_SIZE

BUFFER_SIZE = 1024 * 1024  # bytes

Buffer = memoryview  # of bytes that may be written
Row = dict[str, Any]  # fields by the names that JSON has, `type` first


class Output:
    """Bytes, in order.

    `array[size:capacity]` is free for a kernel to fill, with SLACK_SIZE bytes behind it; both may be others after
    `make_room`, `write` and `flush`.

    Args:
        hand_over: takes a filled buffer and the bytes in it, and returns the buffer to go on with.
        advance: told the bytes of a log that are dumped.
    """

    def __init__(
        self, hand_over: Callable[[Buffer, int], Buffer], advance: Callable[[int], None] = lambda size: None
    ) -> None:
        self._hand_over = hand_over
        self.advance = advance
        self.array = new_buffer()
        self.size = 0
        self.put_batch: Callable[[Any], None] | None = None  # takes the rows of a table, which are not bytes

    @property
    def capacity(self) -> int:
        """Bytes that the buffer has room for."""
        return len(self.array) - SLACK_SIZE

    @classmethod
    def to_stream(cls, stream: BinaryIO) -> Output:
        """Write each filled buffer to `stream`, in the caller's thread."""

        def write(array: Buffer, size: int) -> Buffer:
            stream.write(array[:size])
            return array

        return cls(write)

    def write(self, text: bytes | memoryview) -> None:
        """Append bytes."""
        start = 0
        while start < len(text):
            part = text[start : start + self.capacity - self.size]
            self.array[self.size : self.size + len(part)] = part
            self.size += len(part)
            start += len(part)
            if self.size == self.capacity:
                self.flush()

    def print(self, text: str) -> None:
        """Append a line; what is no text, as half of a surrogate pair, prints as `?`, as in Java."""
        self.write(text.encode("utf-8", "replace") + b"\n")

    def make_room(self) -> None:
        """Empty the buffer; take one of twice the size where it is empty, as what comes next is larger than it."""
        if self.size:
            self.flush()
        else:
            self.array = new_buffer(2 * self.capacity)

    def flush(self) -> None:
        """Hand the filled buffer over, a larger one in pieces of the usual size."""
        if self.capacity > BUFFER_SIZE:
            text = self.array[: self.size]
            self.array, self.size = new_buffer(), 0
            self.write(text)
        if self.size:
            self.array = self._hand_over(self.array, self.size)
            self.size = 0


def new_buffer(size: int | None = None) -> Buffer:
    """An empty buffer of `size` bytes, else BUFFER_SIZE, and its slack."""
    return memoryview(bytearray((size or BUFFER_SIZE) + SLACK_SIZE))
