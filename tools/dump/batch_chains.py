"""The `.log` beside an index: its batches by position and offset, with the error messages of `FileRecords`.

For every entry of a time index Kafka's tool reads all batches from the entry's position to the end of the file. Here
they are read once, as a *chain* of batches, and nearly always one chain serves all entries. An entry of a damaged index
that points between batches begins another chain, which mostly ends soon.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from logstore.columns.batch_table import scan_chunk
from logstore.disk import paths
from logstore.disk.loaded import open_log
from logstore.disk.mapped import SEGMENT_SIZE_MAX
from logstore.errors import CorruptIndexError, CorruptRecordError
from logstore.kernels.primitives import add64
from logstore.kernels.scan.batches import END, HEADER_BEYOND_FILE
from logstore.layout.batch import HEADER_SIZE, HEADER_UP_TO_MAGIC_SIZE, LENGTH_MIN, LOG_OVERHEAD_SIZE, MAGIC_V2

KAFKA_EXCEPTION = "org.apache.kafka.common.KafkaException"
ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException"
_HEADER_UP_TO_MAGIC = struct.Struct(">qi4xb")
_LAST_OFFSET_DELTA = struct.Struct(">23xi")
_BLOCK_SIZE = 1024  # rows searched at once where offsets do not ascend
_UNREADABLE = np.iinfo(np.int64).max  # stands for the last offset of a header that the file is too short for


class FoundBatch(NamedTuple):
    """Byte position and last offset of a batch."""

    position: int
    last_offset: int


class _Chain(NamedTuple):
    """Batches from some position to the end of the file, int64 arrays of one length."""

    positions: NDArray[np.int64]
    last_offsets: NDArray[np.int64]
    is_ascending: bool

    def first_row(self, row: int, offset: int) -> int | None:
        """Return the first row from `row` on whose last offset is at least `offset`."""
        if self.is_ascending:
            row = max(row, int(self.last_offsets.searchsorted(offset)))
            return row if row < self.last_offsets.size else None
        for start in range(row, self.last_offsets.size, _BLOCK_SIZE):
            is_found = self.last_offsets[start : start + _BLOCK_SIZE] >= offset
            if is_found.any():
                return start + int(is_found.argmax())
        return None


class SegmentRecords:
    """A `.log` opened as `FileRecords.open` does. A directory opens too, as in Java, and fails at the first read.

    Attributes:
        path: absolute.
        data: uint8, 1-D, read-only: the whole file.
        size: bytes.
    """

    def __init__(self, path: str) -> None:
        """Map the file; raise DataDirectoryError if it is missing, unreadable, or larger than a segment can be."""
        self.path = path
        self.is_directory = paths.is_directory(path)
        if self.is_directory:
            self.data: NDArray[np.uint8] = np.empty(0, np.uint8)
            self.size = paths.stat(path).st_size
        else:
            file = open_log(path)
            file.load(0, file.size)
            self.data = file.data
            self.size = file.size
        self._bytes = self.data.data
        self._chains: list[_Chain] = []

    def slice_end(self, position: int, size: int) -> int:
        """Return the end of the slice of at most `size` bytes from `position`, or raise as `FileRecords.slice` does."""
        if position < 0:
            raise _bad_slice(f"Invalid position: {position} in read from {self._described()}")
        if position > self.size:
            raise _bad_slice(f"Slice from position {position} exceeds end position of {self._described()}")
        if size < 0:
            raise _bad_slice(f"Invalid size: {size} in read from {self._described()}")
        return min(position + size, self.size)

    def first_batch_last_offset(self, position: int, size: int) -> int:
        """Return the last offset of the first batch in the slice of at most `size` bytes from `position`.

        Raises:
            CorruptIndexError: as `slice_end`, or there is no whole batch in the slice (`NoSuchElementException`).
            CorruptRecordError: the bytes cannot be a batch.
        """
        end = self.slice_end(position, size)
        # the bounds and their order are those of `FileLogInputStream.nextBatch`
        if position >= end - HEADER_UP_TO_MAGIC_SIZE:
            raise _no_batch(position)
        self._require_readable()
        offset, length, magic = _HEADER_UP_TO_MAGIC.unpack_from(self._bytes, position)
        if length < LENGTH_MIN:
            raise CorruptRecordError(
                f"Found record size {length} smaller than minimum record overhead ({LENGTH_MIN}) in file {self.path}."
            )
        if position > end - LOG_OVERHEAD_SIZE - length:
            raise _no_batch(position)
        if magic < MAGIC_V2:
            return int(offset)
        if position + HEADER_SIZE > self.size:
            raise self._header_beyond_file(position, position, end)
        (last_offset_delta,) = _LAST_OFFSET_DELTA.unpack_from(self._bytes, position)
        return int(add64(offset, last_offset_delta))

    def first_batch(self, position: int, offset: int) -> FoundBatch | None:
        """Return the first batch from `position` on whose last offset is at least `offset`.

        Raises:
            CorruptRecordError: a batch between `position` and the end of the file has an impossible size, or the
                search meets a v2 header that the file is too short for.
        """
        chain, row = self._chain_at(position)
        found = chain.first_row(row, offset)
        if found is None:
            return None
        batch = FoundBatch(int(chain.positions[found]), int(chain.last_offsets[found]))
        _, _, magic = _HEADER_UP_TO_MAGIC.unpack_from(self._bytes, batch.position)
        if magic >= MAGIC_V2 and batch.position + HEADER_SIZE > self.size:
            raise self._header_beyond_file(batch.position, position, self.size)
        return batch

    def _chain_at(self, position: int) -> tuple[_Chain, int]:
        for chain in self._chains:
            row = int(chain.positions.searchsorted(position))
            if row < chain.positions.size and chain.positions[row] == position:
                return chain, row
        chain = self._new_chain(position)
        if chain.positions.size:
            self._chains.append(chain)
        return chain, 0

    def _new_chain(self, position: int) -> _Chain:
        """Scan from `position` to the end of the file."""
        if position < self.size - HEADER_UP_TO_MAGIC_SIZE:
            self._require_readable()
        positions: list[NDArray[np.int64]] = []
        last_offsets: list[NDArray[np.int64]] = []
        status = None
        while status != END:
            table = scan_chunk(self.data, position, self.size)
            positions.append(table.position.copy())
            last_offsets.append(table.last_offset)
            position, status = table.next_position, table.status
            if status == HEADER_BEYOND_FILE:
                positions.append(np.array([position]))
                last_offsets.append(np.array([_UNREADABLE]))
                position += LOG_OVERHEAD_SIZE + int(_HEADER_UP_TO_MAGIC.unpack_from(self._bytes, position)[1])
            elif (error := table.error(self.path, self.size)) is not None:
                raise error
        offsets = np.concatenate(last_offsets)
        return _Chain(np.concatenate(positions), offsets, bool((offsets[1:] >= offsets[:-1]).all()))

    def _require_readable(self) -> None:
        if self.is_directory:
            raise CorruptRecordError("java.io.IOException: Is a directory", java_class=KAFKA_EXCEPTION)

    def _header_beyond_file(self, position: int, start: int, end: int) -> CorruptRecordError:
        """Return the error of a v2 batch whose header the file is too short for, in the slice [start, end)."""
        return CorruptRecordError(
            f"Failed to load record batch at position {position} from {self._described(start, end)}",
            java_class=KAFKA_EXCEPTION,
        )

    def _described(self, start: int = 0, end: int = SEGMENT_SIZE_MAX) -> str:
        """Return `FileRecords.toString` of the file or a slice of it."""
        size = min(end, self.size) - start
        return f"FileRecords(size={size}, file={self.path}, start={start}, end={end})"


def _bad_slice(text: str) -> CorruptIndexError:
    return CorruptIndexError(text, java_class=ILLEGAL_ARGUMENT)


def _no_batch(position: int) -> CorruptIndexError:
    return CorruptIndexError(None, position=position, java_class="java.util.NoSuchElementException")
