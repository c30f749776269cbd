"""Walk through the batches of one segment, around damage.

A broker's recovery ends a segment at its first bad batch. An audit goes on: it trusts the length of a bad batch if a
good one follows there, else it searches byte by byte for the next good one.

    for piece in walk(log, base_offset):
        Run(table, first_row, row_end)       # consecutive good batches
        Damage(start, end, …)                # no batches; good ones follow unless `is_tail`
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..columns.batch_table import BatchTable, ByteArray, headers, scan_chunk
from ..columns.legacy import check_all, fill_legacy_is_valid
from ..errors import CorruptRecordError, LogstoreError
from ..kernels.rules import RELATIVE_OFFSET_MAX
from ..kernels.scan import batches as fields
from ..layout.batch import HEADER_SIZE, LENGTH_MIN, LOG_OVERHEAD_SIZE, MAGIC_V2
from .parallel_scan import scan_windows

_SEARCH_SIZE = 1 << 20  # bytes of one step of a search
_MAGIC_POSITION = 16
OFFSET_SPAN = RELATIVE_OFFSET_MAX + 1  # of a segment: exclusive bound above its base offset


Advance = Callable[[int], None]  # told of how many more bytes of a log have been read


class LogBytes(Protocol):
    """Bytes of a `.log`: a `MappedFile`, a `LoadedFile`, or a `FileInMemory`."""

    data: ByteArray

    def load(self, start: int, end: int) -> None:
        """Load data[start:end] before it is read."""

    def release(self, start: int, end: int) -> None:
        """Release the pages of data[start:end]."""


class Run(NamedTuple):
    """Rows of a table that are consecutive good batches; `data` is the whole file."""

    data: ByteArray
    table: BatchTable
    first_row: int
    row_end: int

    @property
    def end(self) -> int:
        """The byte behind the last batch."""
        return int(self.table.position[self.row_end - 1] + self.table.size[self.row_end - 1])


class Damage(NamedTuple):
    """Bytes `start` … `end` - 1 that are no good batch.

    Attributes:
        is_batch: the bytes are framed as one batch whose checksum is wrong; else nothing is known.
        offset: the base offset in the damaged header; None without one.
        expected, found: the check that failed.
        is_tail: no good batch follows.
    """

    start: int
    end: int
    is_batch: bool
    offset: int | None
    expected: str
    found: str
    is_tail: bool = False

    @property
    def may_hide_batches(self) -> bool:
        """Whether these may have been whole batches; bytes at the end that are not framed as one cannot."""
        return self.is_batch or not self.is_tail


def walk(log: LogBytes, base_offset: int, position: int = 0) -> Iterator[Run | Damage]:
    """Yield the pieces of the file, which cover its bytes from `position` on; pages are released behind each."""
    data = log.data
    while position < data.size:
        for table in scan_windows(data, position, data.size, load=log.load):
            position = table.next_position
            start = int(table.position[0]) if len(table) else position
            if table.status != fields.MORE or not _is_good(data, table).all():
                log.load(start, data.size)  # what follows damage is looked at, wherever it leads
            for piece in _pieces(data, table, base_offset):
                yield piece
                position = table.next_position if isinstance(piece, Run) else piece.end
            log.release(start, table.next_position)
            if position != table.next_position:
                break  # the scan misread what follows the damage; go on from the piece's end
        else:
            return


def _pieces(data: ByteArray, table: BatchTable, base_offset: int) -> Iterator[Run | Damage]:
    """Yield the rows of the table, and what ends it; stop at a piece whose end is not where the next row starts."""
    is_good = _is_good(data, table)
    row = 0
    for bad_row in np.flatnonzero(~is_good).tolist():
        if bad_row > row:
            yield Run(data, table, row, bad_row)
        row = bad_row + 1
        is_followed = row < len(table) and bool(is_good[row])
        piece = _bad_batch(data, table, bad_row, base_offset, is_followed=is_followed)
        yield piece
        if piece.end != int(table.position[bad_row] + table.size[bad_row]):
            return
    if row < len(table):
        yield Run(data, table, row, len(table))
    if table.status != fields.MORE and table.next_position < data.size:
        yield _bad_end(data, table, base_offset)


def _is_good(data: ByteArray, table: BatchTable) -> npt.NDArray[np.bool_]:
    """Return which rows have a valid checksum; those of magic 0 and 1 are computed here."""
    fill_legacy_is_valid(data, table)
    good: npt.NDArray[np.bool_] = (table.is_valid == 1) & (table.magic >= 0)
    return good


def _bad_batch(data: ByteArray, table: BatchTable, row: int, base_offset: int, *, is_followed: bool) -> Damage:
    start, size = int(table.position[row]), int(table.size[row])
    is_whole = size >= HEADER_SIZE or table.magic[row] < MAGIC_V2
    found = f"checksum {int(table.matrix[fields.CRC, row])} stored" if is_whole else f"{size} bytes"
    expected = "the checksum of the bytes" if is_whole else f"a batch of {HEADER_SIZE} bytes or more"
    offset = int(table.base_offset[row])
    if start + size == data.size:
        return Damage(start, data.size, True, offset, expected, found, is_tail=True)
    if is_followed or _starts_batch(data, start + size):
        return Damage(start, start + size, True, offset, expected, found)
    return _resume(data, start, base_offset, offset, expected, found)


def _bad_end(data: ByteArray, table: BatchTable, base_offset: int) -> Damage:
    start = table.next_position
    if table.status == fields.LENGTH_TOO_SMALL:
        expected, found = f"a batch length of at least {LENGTH_MIN}", str(table.bad_length)
    else:
        expected, found = "a whole batch", f"{data.size - start} bytes of one"
    return _resume(data, start, base_offset, None, expected, found)


def _resume(data: ByteArray, start: int, base_offset: int, offset: int | None, expected: str, found: str) -> Damage:
    end = find_batch(data, start + 1, base_offset)
    if end is None:  # old cleaners joined offsets into a segment that it cannot hold
        end = find_batch(data, start + 1, 0, offset_span=2**63)
    if end is None:
        return Damage(start, data.size, False, offset, expected, found, is_tail=True)
    return Damage(start, end, False, offset, expected, found)


def _starts_batch(data: ByteArray, position: int) -> bool:
    if position >= data.size:
        return False
    table = scan_chunk(data, position, data.size, check_crc=True, capacity=1)
    return bool(len(table)) and bool(_is_good(data, table)[0])


def tables_around_damage(
    log: LogBytes, start: int, end: int, base_offset: int, *, check_crc: bool = False
) -> Iterator[BatchTable]:
    """Yield `headers` of a part of a segment, and go on behind what is no batch; pages are released behind each table.

    Lengths are trusted whatever the checksum says. Behind a table that ends at what is no batch the next good one is
    searched for; there may be none.

    Args:
        start: byte of a batch.
        end: byte that no batch may reach past; at most the size of the file.
        check_crc: compute the checksums of all magics.
    """
    while start < end:
        for table in headers(log.data, start, end, load=log.load):
            if check_crc:
                check_all(log.data, table)
            yield table
            log.release(start, table.next_position)
            start = table.next_position
        if start < end:
            log.load(start, end)
            start = find_batch(log.data[:end], start + 1, base_offset) or end


def tables_and_damage(
    log: LogBytes, path: str, start: int, end: int, base_offset: int, *, is_tail: bool
) -> Iterator[BatchTable | LogstoreError]:
    """Yield `tables_around_damage` with checksums, and an error for bytes that are no batch.

    Args:
        path: of the segment, for errors.
        is_tail: the part ends a log that may be being written: a cut batch at its end, or zeros, are no error.
    """
    before: BatchTable | None = None
    for table in tables_around_damage(log, start, end, base_offset, check_crc=True):
        if before is not None and not before.has_more:
            yield _stop(path, before, end)
        yield table
        before = table
    if before is None or before.has_more or before.next_position == end:
        return
    log.load(before.next_position, end)
    is_unwritten = before.error("", end) is None or not log.data[before.next_position : end].any()
    if not (is_tail and is_unwritten):
        yield _stop(path, before, end)


def _stop(path: str, table: BatchTable, end: int) -> LogstoreError:
    return table.error(path, end) or CorruptRecordError(
        "A batch reaches past the end of its part of the segment",
        path=path,
        position=table.next_position,
        expected=f"an end at or before byte {end}",
    )


def batch_at(log: LogBytes, position: int, end: int, *, check_crc: bool = False) -> BatchTable:
    """Return the batch at a byte, loaded, as a table of one row; of none if there is no batch up to `end`."""
    table = next(headers(log.data, position, end, capacity=1, window_size=HEADER_SIZE, load=log.load))
    if check_crc:
        check_all(log.data, table)
    return table


def find_batch(data: ByteArray, position: int, base_offset: int, *, offset_span: int = OFFSET_SPAN) -> int | None:
    """Return where the next good v2 batch starts, at `position` or behind it; None if there is none.

    Args:
        data: uint8, 1-D: the whole file.
        base_offset: of the segment; a batch whose offset does not fit it is taken for a part of a record.
        offset_span: exclusive bound of offsets that fit, above the base offset.
    """
    last = data.size - HEADER_SIZE
    while position <= last:
        end = min(position + _SEARCH_SIZE, last + 1)
        for candidate in _candidates(data, position, end, base_offset, offset_span):
            if _starts_batch(data, candidate):
                return candidate
        position = end
    return None


def batch_across(data: ByteArray, position: int, base_offset: int) -> int | None:
    """Return where a good v2 batch starts in front of `position` and ends behind it; None if there is none.

    One of at most 1 MiB in front of it; arguments as of `find_batch`.
    """
    start = max(0, position - _SEARCH_SIZE)
    end = min(position, data.size - HEADER_SIZE + 1)
    for candidate in _candidates(data, start, end, base_offset, OFFSET_SPAN) if start < end else ():
        (length,) = data[candidate + 8 : candidate + LOG_OVERHEAD_SIZE].view(">i4")
        is_across = candidate + LOG_OVERHEAD_SIZE + int(length) > position
        if is_across and _starts_batch(data, candidate):
            return candidate
    return None


def _candidates(data: ByteArray, start: int, end: int, base_offset: int, offset_span: int) -> list[int]:
    """Return positions in [start, end) whose magic, length and offset may be those of a batch."""
    is_two = data[start + _MAGIC_POSITION : end + _MAGIC_POSITION] == MAGIC_V2
    places = np.flatnonzero(is_two) + start
    if not places.size:
        return []
    head = data[places[:, None] + np.arange(LOG_OVERHEAD_SIZE)]
    offsets = np.ascontiguousarray(head[:, :8]).view(">i8")[:, 0].astype(np.int64)
    lengths = np.ascontiguousarray(head[:, 8:]).view(">i4")[:, 0].astype(np.int64)
    sizes = lengths + LOG_OVERHEAD_SIZE
    above = offsets.astype(np.uint64) - np.uint64(base_offset)  # wraps around: below the base becomes far above
    fits = (sizes >= HEADER_SIZE) & (places + sizes <= data.size) & (above < np.uint64(offset_span))
    found: list[int] = places[fits].tolist()
    return found
