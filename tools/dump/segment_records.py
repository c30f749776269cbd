"""The `.log` beside an index, with the words of Kafka's `FileRecords` for what is wrong with it."""

from __future__ import annotations

import os
import struct

import numpy as np
from numpy.typing import NDArray

from logstore.disk.mapped import SEGMENT_SIZE_MAX, MappedFile
from logstore.errors import CorruptIndexError, CorruptRecordError
from logstore.layout.batch import HEADER_SIZE, HEADER_UP_TO_MAGIC_SIZE, LENGTH_MIN, LOG_OVERHEAD_SIZE

KAFKA_EXCEPTION = "org.apache.kafka.common.KafkaException"
ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException"
_HEADER_UP_TO_MAGIC = struct.Struct(">qi4xb")
_LAST_OFFSET_DELTA = struct.Struct(">23xi")


class SegmentRecords:
    """A `.log` opened as `FileRecords.open` does. A directory opens too, as in Java, and fails at the first read.

    Attributes:
        path: absolute.
        data: uint8, 1-D, read-only: the whole file.
        size: bytes.
    """

    def __init__(self, path: str) -> None:
        """Map the file; raises DataDirectoryError if it is missing, unreadable, or larger than a segment can be."""
        self.path = path
        self.is_directory = os.path.isdir(path)
        if self.is_directory:
            self.data: NDArray[np.uint8] = np.empty(0, np.uint8)
            self.size = os.stat(path).st_size
        else:
            file = MappedFile(path)
            self.data = file.data
            self.size = file.size
        self._bytes = memoryview(self.data)

    def slice_end(self, position: int, size: int) -> int:
        """End of the slice of at most `size` bytes from `position` (`FileRecords.slice`).

        Raises:
            CorruptIndexError: with java_class IllegalArgumentException: no slice can start or be like that.
        """
        if position < 0:
            raise _bad_slice(f"Invalid position: {position} in read from {self._described()}")
        if position > self.size:
            raise _bad_slice(f"Slice from position {position} exceeds end position of {self._described()}")
        if size < 0:
            raise _bad_slice(f"Invalid size: {size} in read from {self._described()}")
        return min(position + size, self.size)

    def first_batch_last_offset(self, position: int, size: int) -> int:
        """Last offset of the first batch in the slice of at most `size` bytes from `position`.

        Raises:
            CorruptIndexError: no such slice, or no whole batch in it (`NoSuchElementException`).
            CorruptRecordError: what is there cannot be a batch.
        """
        end = self.slice_end(position, size)
        if position >= end - HEADER_UP_TO_MAGIC_SIZE:
            raise _no_batch(position)
        self.require_readable()
        offset, length, magic = _HEADER_UP_TO_MAGIC.unpack_from(self._bytes, position)
        if length < LENGTH_MIN:
            raise CorruptRecordError(
                f"Found record size {length} smaller than minimum record overhead ({LENGTH_MIN}) in file {self.path}."
            )
        if position > end - LOG_OVERHEAD_SIZE - length:
            raise _no_batch(position)
        if magic < 2:
            return int(offset)
        if self.is_header_beyond_file(position):
            raise self.header_beyond_file(position, position, end)
        (last_offset_delta,) = _LAST_OFFSET_DELTA.unpack_from(self._bytes, position)
        return _as_long(offset + last_offset_delta)

    def batch_length(self, position: int) -> int:
        """The length field of the batch at `position`, of which the file has at least 12 bytes."""
        return int(_HEADER_UP_TO_MAGIC.unpack_from(self._bytes, position)[1])

    def is_header_beyond_file(self, position: int) -> bool:
        """Whether the file is too short for the header of the v2 batch at `position`."""
        return position + HEADER_SIZE > self.size

    def require_readable(self) -> None:
        """Raise CorruptRecordError, a KafkaException, if this is a directory."""
        if self.is_directory:
            raise CorruptRecordError("java.io.IOException: Is a directory", java_class=KAFKA_EXCEPTION)

    def header_beyond_file(self, position: int, start: int, end: int) -> CorruptRecordError:
        """The error of a v2 batch whose header the file is too short for, in the slice [start, end)."""
        return CorruptRecordError(
            f"Failed to load record batch at position {position} from {self._described(start, end)}",
            java_class=KAFKA_EXCEPTION,
        )

    def _described(self, start: int = 0, end: int = SEGMENT_SIZE_MAX) -> str:
        """`FileRecords.toString` of the file or a slice of it."""
        size = min(end, self.size) - start
        return f"FileRecords(size={size}, file={self.path}, start={start}, end={end})"


def _bad_slice(text: str) -> CorruptIndexError:
    return CorruptIndexError(text, java_class=ILLEGAL_ARGUMENT)


def _no_batch(position: int) -> CorruptIndexError:
    return CorruptIndexError(None, position=position, java_class="java.util.NoSuchElementException")


def _as_long(value: int) -> int:
    """`value` wrapped to 64 bits, as Java adds."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
