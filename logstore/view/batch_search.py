"""Batches of a segment from a position on, and the search for the batch that holds an offset.

Searches follow Kafka's step by step, so that a damaged index leads to the same batch, or error, as in a broker. In a
sound log a search reads a few headers one by one, in two microseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from struct import Struct
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..columns.batch_table import CHUNK_ROW_COUNT, WINDOW_SIZE, BatchTable, ByteArray, headers, scan_chunk
from ..columns.legacy import legacy_entry, read_legacy_records
from ..disk.directory import SegmentFiles
from ..disk.file_range import FileRange
from ..disk.index_slots import IndexSlots
from ..disk.names import is_url
from ..errors import CorruptRecordError, DataDirectoryError, LogstoreError
from ..kernels.rules import RELATIVE_OFFSET_MAX
from ..kernels.scan import batches as fields
from ..layout import legacy, offset_index
from ..layout.batch import BATCH_LENGTH, HEADER_SIZE, HEADER_UP_TO_MAGIC_SIZE, LENGTH_MIN, LOG_OVERHEAD_SIZE, MAGIC_V2

SEARCH_COUNT = 128  # batches that a search scans at once: more than lie between two index entries
_QUICK_COUNT = 16  # batches read one by one before that
_GROWTH = 8
_WINDOW_SIZE_MIN = 1 << 16  # bytes of the first read: an index leads near
_OBJECT_WINDOW_SIZE_MIN = 56 * 1024  # of an object: three batches of the usual 16 KiB, as bytes cost time there
_OFFSET_MAX = 2**63 - 1
_BASE_OFFSET_AND_MAGIC = Struct(">q8xb")
_HEADER = Struct(">qi4xb6xi")  # base offset, length, magic, last offset delta


class BatchPlace(NamedTuple):
    """Place of a batch (`LogOffsetPosition`)."""

    base_offset: int
    position: int
    size: int


def batch_tables(
    data: ByteArray, position: int, path: str, *, first_capacity: int = CHUNK_ROW_COUNT
) -> Iterator[BatchTable]:
    """Yield `headers` from `position` to the end; raise CorruptRecordError if batches end before the data does."""
    for table in headers(data, position, first_capacity=first_capacity):
        yield table
        if (error := table.error(path, data.size)) is not None:
            raise error


def read_batch_tables(
    read: Callable[[int, int], ByteArray], position: int, end: int, path: str, *, capacity: int
) -> Iterator[tuple[int, ByteArray, BatchTable]]:
    """Yield `batch_tables` of a file that is read piece by piece: position, the bytes from there on, their table.

    Args:
        read: returns so many bytes at a position.
        end: bytes of the file that count.

    Raises:
        CorruptRecordError: as `batch_tables`.
    """
    window, growth = (_OBJECT_WINDOW_SIZE_MIN, 2) if is_url(path) else (_WINDOW_SIZE_MIN, _GROWTH)
    while True:
        data = read(position, min(window, end - position))
        table = scan_chunk(data, 0, data.size, capacity=capacity)
        is_whole = position + data.size == end
        if not len(table) and not is_whole and table.status != fields.LENGTH_TOO_SMALL:
            # the first batch is larger than the window
            window = max(growth * window, first_batch_size(data))
            continue
        yield position, data, table
        if is_whole or table.status == fields.LENGTH_TOO_SMALL:
            if (error := table.error(path, end, position)) is not None:
                raise error
            if table.status != fields.MORE:
                return
        position += table.next_position
        window, capacity = min(growth * window, WINDOW_SIZE), min(_GROWTH * capacity, CHUNK_ROW_COUNT)


def first_batch_size(data: ByteArray) -> int:
    """Return the size of the first batch by its header; 0 if the header is incomplete or impossible."""
    if data.size < HEADER_UP_TO_MAGIC_SIZE:
        return 0
    length = int.from_bytes(data[BATCH_LENGTH:LOG_OVERHEAD_SIZE].tobytes(), "big", signed=True)
    return length + LOG_OVERHEAD_SIZE if length >= LENGTH_MIN else 0


def last_offset_in(header: ByteArray) -> int | None:
    """Return the last offset of the batch that begins with these bytes, by its header; None if they are too few."""
    if header.size < HEADER_UP_TO_MAGIC_SIZE:
        return None
    base_offset, magic = _BASE_OFFSET_AND_MAGIC.unpack_from(header.data)
    if magic < MAGIC_V2:
        return int(base_offset)
    return base_offset + _HEADER.unpack_from(header.data)[3] if header.size >= HEADER_SIZE else None


class IndexedBatch(NamedTuple):
    """A batch that an index names, and its byte in the segment."""

    base_offset: int
    position: int


def indexed_batch(segment: SegmentFiles, offset: int | None = None) -> IndexedBatch | None:
    """Return the last batch that the index of a segment names, of those that end at or below `offset` if it is given.

    A few entries and one header are read; for an entry of older Kafka all headers up to the next entry. None without an
    index, or where no such batch is: the index may be damaged.
    """
    relative = RELATIVE_OFFSET_MAX if offset is None else offset - segment.base_offset
    try:
        if segment.offset_index is None:
            return None
        with IndexSlots(segment.offset_index, offset_index.ENTRY_DTYPE) as slots, FileRange(segment.log) as log:
            slot = slots.slot_above(0, relative) - 1
            entry = (0, 0) if slot < 0 else slots[slot]
            position, last_offset = entry[1], segment.base_offset + entry[0]
            if not 0 < position < log.size:
                return None
            header = log.read(position, HEADER_SIZE)
            if last_offset_in(header) != last_offset:
                end = slots[slot + 1][1] if slot + 1 < len(slots) else log.size
                if not _holds_end(log, position, min(end, log.size), last_offset):
                    return None
    except DataDirectoryError:
        return None  # what reads the log, or proves the index, tells of it
    return IndexedBatch(_BASE_OFFSET_AND_MAGIC.unpack_from(header.data)[0], position)


def _holds_end(log: FileRange, position: int, end: int, last_offset: int) -> bool:
    """Return whether one of the batches in [position, end) ends with an offset.

    Kafka before 4.1 made one entry for all batches of an append: the position of the first, the offset of the last.
    """
    try:
        tables = read_batch_tables(log.read_exactly, position, end, log.path, capacity=SEARCH_COUNT)
        return position < end and any(last_offset in table.last_offset for _, _, table in tables)
    except CorruptRecordError:
        return False


class QuickAnswer(NamedTuple):
    """Result of a quick search; `place` is valid if `is_answer`."""

    is_answer: bool
    place: BatchPlace | None


_NO_ANSWER = QuickAnswer(False, None)


def quick_search(data: ByteArray, offset: int, position: int) -> QuickAnswer:
    """Search as `search` does among the next few batches; no answer if one is not whole or of another magic."""
    view, end = data.data, data.size
    previous: BatchPlace | None = None
    previous_last_offset = -1
    for _ in range(_QUICK_COUNT):
        if position + HEADER_SIZE > end:
            break
        base_offset, length, magic, last_offset_delta = _HEADER.unpack_from(view, position)
        size = length + LOG_OVERHEAD_SIZE
        if magic != MAGIC_V2 or size < HEADER_SIZE or size > end - position:
            return _NO_ANSWER
        place = BatchPlace(base_offset, position, size)
        if base_offset >= offset:
            # no batch begins at the offset: the one before holds it, if it reaches so far
            if base_offset != offset and previous is not None and previous_last_offset >= offset:
                return QuickAnswer(True, previous)
            return QuickAnswer(True, place)
        previous, previous_last_offset = place, base_offset + last_offset_delta
        if abs(previous_last_offset) > _OFFSET_MAX:  # wraps around in Java: left to `search`
            return _NO_ANSWER
        position += size
    if position != end:
        return _NO_ANSWER
    return QuickAnswer(True, previous if previous_last_offset >= offset else None)


def quick_end(data: ByteArray, offset: int) -> int | None:
    """Return the offset behind the last of a few whole v2 batches, of which the first holds `offset`; else None."""
    view, position, end, next_offset = data.data, 0, data.size, 0
    for _ in range(SEARCH_COUNT):
        if end - position < HEADER_SIZE:
            return None
        base_offset, length, magic, last_offset_delta = _HEADER.unpack_from(view, position)
        size = length + LOG_OVERHEAD_SIZE
        if magic != MAGIC_V2 or not HEADER_SIZE <= size <= end - position or base_offset < next_offset:
            return None
        next_offset = base_offset + last_offset_delta + 1
        if not base_offset < next_offset <= _OFFSET_MAX or (position == 0 and not base_offset <= offset < next_offset):
            return None
        position += size
        if position == end:
            return int(next_offset)
    return None


def search(batches: Iterable[tuple[int, ByteArray, BatchTable]], offset: int) -> BatchPlace | None:
    """Return the batch that a read of `offset` starts with (`FileRecords.searchForOffsetFromPosition`).

    Args:
        batches: of `Segment.batches`, from where an index leads.

    Raises:
        CorruptRecordError, InvalidRecordError: the batches do not lead there.
    """
    previous: BatchPlace | None = None
    previous_last_offset = -1
    for start, data, table in batches:
        row = _first_row_from(data, table, offset)
        if row:
            previous = _place(start, data, table, row - 1)
            previous_last_offset = int(table.last_offset[row - 1])
        if row < len(table):
            place = _place(start, data, table, row)
            if place.base_offset != offset and previous is not None and previous_last_offset >= offset:
                return previous
            return place
    return previous if previous_last_offset >= offset else None


def _first_row_from(data: ByteArray, table: BatchTable, offset: int) -> int:
    """Return the first row whose batch begins at `offset` or above; the number of rows if none does."""
    is_wrapper = _is_wrapper(table)
    plain = np.flatnonzero((table.base_offset >= offset) & ~is_wrapper)
    end = int(plain[0]) if plain.size else len(table)
    for row in np.flatnonzero(is_wrapper[:end]).tolist():
        if _base_offset(data, table, row) >= offset:
            return int(row)
    return end


def _place(start: int, data: ByteArray, table: BatchTable, row: int) -> BatchPlace:
    base_offset = _base_offset(data, table, row) if _is_wrapper(table)[row] else int(table.base_offset[row])
    return BatchPlace(base_offset, start + int(table.position[row]), int(table.size[row]))


def _is_wrapper(table: BatchTable) -> npt.NDArray[np.bool_]:
    """Return which rows are compressed message sets, whose first offset is known only from their content."""
    is_wrapper: npt.NDArray[np.bool_] = (table.magic < MAGIC_V2) & (
        (table.column(fields.ATTRIBUTES) & legacy.CODEC_MASK) != 0
    )
    return is_wrapper


def unreadable_wrappers(data: ByteArray, table: BatchTable, first_row: int, row_end: int) -> dict[int, str]:
    """Return the rows of compressed message sets whose first offset cannot be found, ascending, and why.

    A broker fails at such a set when it looks for an offset there, as it does for the log's end when it starts.
    """
    problems = {}
    for row in (np.flatnonzero(_is_wrapper(table)[first_row:row_end]) + first_row).tolist():
        try:
            _base_offset(data, table, row)
        except LogstoreError as error:
            problems[row] = f"expected messages that can be read, found {error.message or type(error).__name__}"
    return problems


def _base_offset(data: ByteArray, table: BatchTable, row: int) -> int:
    return next(read_legacy_records(legacy_entry(data, table, row))).offset
