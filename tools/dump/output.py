"""The output of a dump: what writers do, and the buffer that they fill, handed over when it is full."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from logstore.kernels.dump.text import SLACK_SIZE

if TYPE_CHECKING:
    from logstore.columns.batch_table import BatchTable, Int64Array
    from logstore.columns.decoded_records import Records

BUFFER_SIZE = 1024 * 1024  # bytes

Buffer = memoryview  # of writable bytes
Row = dict[str, Any]  # fields by their names in JSON, `type` first


class Writer(Protocol):
    """Writes what stands in a file, in one format."""

    def write_batches(self, table: BatchTable, rows: Int64Array) -> None:
        """Write the headers of v2 batches; raise the error of a codec that Kafka does not know at its batch."""

    def write_records(self, table: BatchTable, batches: Int64Array, window: Records, records: Int64Array) -> None:
        """Write headers of v2 batches, each before those of the window's records that are its, and these records.

        Args:
            batches: int64, ascending: rows of the table.
            records: int64, ascending: rows of the window.

        Raises:
            LogstoreError: contents do not decode; all before them is written.
        """

    def write_rows(self, rows: list[Row]) -> None:
        """Write rows that are made one by one."""

    def write_part(self, row: Row) -> None:
        """Write the beginning of a row whose other fields cannot be read, if the format has such rows."""


class Output:
    """A stream of bytes.

    A kernel may fill `array[size:capacity]`, and SLACK_SIZE bytes behind it. `make_room`, `write` and `flush` may
    replace the array.

    Args:
        hand_over: takes a filled buffer and the number of bytes in it, and returns the next buffer to fill.
        advance: gets the number of bytes of a log that are done.
    """

    def __init__(
        self, hand_over: Callable[[Buffer, int], Buffer], advance: Callable[[int], None] = lambda size: None
    ) -> None:
        self._hand_over = hand_over
        self.advance = advance
        self.array = new_buffer()
        self.size = 0
        self.put_batch: Callable[[Any], None] | None = None  # takes rows of an Arrow or Parquet table

    @property
    def capacity(self) -> int:
        """The size of the buffer in bytes, without its slack."""
        return len(self.array) - SLACK_SIZE

    @classmethod
    def to_stream(cls, stream: BinaryIO) -> Output:
        """Write each filled buffer to `stream`, in the caller's thread."""

        def write(array: Buffer, size: int) -> Buffer:
            stream.write(array[:size])
            return array

        return cls(write)

    def write(self, text: bytes | memoryview) -> None:
        start = 0
        while start < len(text):
            part = text[start : start + self.capacity - self.size]
            self.array[self.size : self.size + len(part)] = part
            self.size += len(part)
            start += len(part)
            if self.size == self.capacity:
                self.flush()

    def print(self, text: str) -> None:
        """Append a line; half of a surrogate pair prints as `?`, as in Java."""
        self.write(text.encode("utf-8", "replace") + b"\n")

    def make_room(self) -> None:
        """Empty the buffer; double it if it is empty, because the next text is larger."""
        if self.size:
            self.flush()
        else:
            self.array = new_buffer(2 * self.capacity)

    def flush(self) -> None:
        """Hand the filled buffer over; a doubled one in pieces of the usual size."""
        if self.capacity > BUFFER_SIZE:
            text = self.array[: self.size]
            self.array, self.size = new_buffer(), 0
            self.write(text)
        if self.size:
            self.array = self._hand_over(self.array, self.size)
            self.size = 0


def new_buffer(size: int | None = None) -> Buffer:
    """Return a buffer of `size` bytes, by default BUFFER_SIZE, and slack."""
    return memoryview(bytearray((size or BUFFER_SIZE) + SLACK_SIZE))
