"""Places of good batches in the segments of a copy: the segments must load, as Kafka's `LogLoader` loads them.

A load asks only these of the offsets in a segment: each last offset can be expressed by an index of the segment, or the
segment can be split (`splitOverflowedSegment`), and the entries of both indexes ascend. If a segment passes, all of its
batches are kept, however odd their offsets are. If it does not, a broker would empty the segment or not start; then the
longest sequence of batches with ascending offsets is kept, so that one wrong offset costs one batch.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from logstore.columns.batch_table import BatchTable, Int64Array
from logstore.config.topic import INDEX_INTERVAL_BYTES, SEGMENT_INDEX_BYTES, LogConfig
from logstore.disk.mapped import SEGMENT_SIZE_MAX
from logstore.errors import IndexFullError, InvalidOffsetError, OffsetOverflowError
from logstore.folds import segment_indexes
from logstore.folds.segment_indexes import SegmentIndexes
from logstore.kernels.rules import RELATIVE_OFFSET_MAX
from logstore.kernels.scan import batches as fields
from logstore.layout.batch import CONTROL_FLAG
from logstore.view.walk import Run

_FIELDS = (
    fields.POSITION,
    fields.SIZE,
    fields.BASE_OFFSET,
    fields.LAST_OFFSET_DELTA,
    fields.MAX_TIMESTAMP,
    fields.ATTRIBUTES,
    fields.MAGIC,
)
_OFFSET_MAX = 2**63 - 1
_FITS_NOWHERE = "another segment of the copy begins where its own would"


class Part(NamedTuple):
    """Batches that come into one segment of the copy: those from byte `start` of the source's `.log` on."""

    start: int
    base_offset: int


class Placement(NamedTuple):
    """Where the good batches of a segment go.

    Attributes:
        problems: byte position of each batch that is left out, ascending, to the reason.
        parts: ascending by `start`; the first one is at byte 0.
    """

    problems: dict[int, str]
    parts: tuple[Part, ...]


class _Rows:
    """Columns of a segment's good batches: of each its place, its offsets, and what indexes hold of it."""

    def __init__(self, matrix: Int64Array) -> None:
        self.matrix = matrix
        self.position, self.size, self.base, deltas, _, attributes, magic = matrix
        self.last: Int64Array = self.base + deltas
        self.is_control: npt.NDArray[np.bool_] = (magic >= 2) & (attributes & CONTROL_FLAG != 0)

    def __len__(self) -> int:
        count: int = self.matrix.shape[1]
        return count

    def chosen(self, rows: npt.NDArray[np.intp] | slice) -> _Rows:
        return _Rows(self.matrix[:, rows])

    def table(self) -> BatchTable:
        """Return the rows as a table, at the positions that they have in a file of their own."""
        matrix = np.zeros((fields.COLUMN_COUNT, len(self)), np.int64)
        matrix[_FIELDS, :] = self.matrix
        matrix[fields.POSITION] = np.cumsum(self.size) - self.size
        return BatchTable(matrix, len(self), fields.END, int(self.size.sum()))


def place(pieces: Iterator[object], base_offset: int, taken: set[int], config: LogConfig) -> Placement:
    """Return where the good batches of the segment at `base_offset` go.

    Args:
        pieces: of `walk`.
        taken: base offsets of the copy's segments; those of new ones are added.
    """
    columns = [
        piece.table.matrix[_FIELDS, piece.first_row : piece.row_end] for piece in pieces if isinstance(piece, Run)
    ]
    rows = _Rows(np.concatenate([np.empty((len(_FIELDS), 0), np.int64), *columns], axis=1))
    if _is_plain(rows, base_offset):
        return Placement({}, (Part(0, base_offset),))
    problems: dict[int, str] = {}
    if not _loads(rows, base_offset, config):
        kept = _longest(rows)
        for row in np.setdiff1d(np.arange(len(rows)), kept).tolist():
            offsets = f"offsets {int(rows.base[row])} to {int(rows.last[row])}"
            problems[int(rows.position[row])] = f"{offsets} do not ascend among those around it"
        rows = rows.chosen(kept)
    parts = []
    for first, end in _parts(rows, base_offset):
        part = _part(rows, first, end, base_offset, taken)
        if part is None:
            problems |= dict.fromkeys(rows.position[first:end].tolist(), _FITS_NOWHERE)
        else:
            parts.append(part)
    first_part = parts[0]._replace(start=0) if parts else Part(0, base_offset)
    return Placement(dict(sorted(problems.items())), (first_part, *parts[1:]))


def _is_plain(rows: _Rows, base_offset: int) -> bool:
    """Return whether the segment is like almost all: its last offsets ascend, and it can hold them all."""
    if not len(rows):
        return True
    is_ascending = bool((rows.last[1:] > rows.last[:-1]).all())
    first, last, size = int(rows.last[0]), int(rows.last[-1]), int(rows.size.sum())
    return is_ascending and _can_hold(base_offset, first) and _can_hold(base_offset, last) and size <= SEGMENT_SIZE_MAX


def _can_hold(base_offset: int, offset: int) -> bool:
    return 0 <= offset - base_offset <= RELATIVE_OFFSET_MAX and offset < _OFFSET_MAX


def _loads(rows: _Rows, base_offset: int, config: LogConfig) -> bool:
    """Return whether a load keeps all batches of the segment, or would if the segment were not too large."""
    lasts = rows.last
    is_outside = (lasts < base_offset) | (lasts - base_offset > RELATIVE_OFFSET_MAX)
    if is_outside.any() and int(lasts[-1]) - base_offset <= RELATIVE_OFFSET_MAX:
        return False  # a broker splits a segment only if the last batch overflows it, and else does not start
    if (np.minimum(rows.base, lasts) < 0).any() or (lasts == _OFFSET_MAX).any():
        return False
    markers = lasts[rows.is_control]
    if (markers[1:] <= markers[:-1]).any():
        return False  # aborted transactions in the `.txnindex` ascend by their markers
    return all(_has_indexes(rows.chosen(slice(*part)), base_offset, config) for part in _parts(rows, base_offset))


def _has_indexes(part: _Rows, base_offset: int, config: LogConfig) -> bool:
    """Return whether the indexes of a segment with these batches can be built."""
    indexes = SegmentIndexes(
        base_offset if _can_hold(base_offset, int(part.last[0])) else _new_base(part),
        index_interval_bytes=config[INDEX_INTERVAL_BYTES],
        index_size_max=config[SEGMENT_INDEX_BYTES],
    )
    try:
        segment_indexes.step(indexes, part.table(), 0, len(part))
        indexes.finish()
    except (InvalidOffsetError, OffsetOverflowError, IndexFullError):
        return False
    return True


def _longest(rows: _Rows) -> npt.NDArray[np.intp]:
    """Return the rows of the longest sequence of batches whose last offsets ascend.

    `ends[n]` is the lowest last offset that a sequence of n + 1 batches can end with.
    """
    ends, ending, before = list[int](), list[int](), dict[int, int]()
    deltas = rows.last - rows.base
    fits = np.flatnonzero((rows.base >= 0) & (deltas >= 0) & (rows.last < _OFFSET_MAX))
    for row, last in zip(fits.tolist(), rows.last[fits].tolist(), strict=True):
        length = bisect_left(ends, last)
        before[row] = ending[length - 1] if length else -1
        if length == len(ends):
            ends.append(last)
            ending.append(row)
        elif last < ends[length]:
            ends[length], ending[length] = last, row
    kept, row = list[int](), ending[-1] if ending else -1
    while row >= 0:
        kept.append(row)
        row = before[row]
    return np.array(kept[::-1], np.intp)


def _parts(rows: _Rows, base_offset: int) -> Iterator[tuple[int, int]]:
    """Yield rows [first, end) of each segment of the copy: as many as its base offset and its file can hold."""
    if not len(rows):
        return
    ends = np.cumsum(rows.size)
    first, base, start = 0, base_offset, 0
    for row, (last, end) in enumerate(zip(rows.last.tolist(), ends.tolist(), strict=True)):
        if row == 0 and not _can_hold(base_offset, last):
            base = _new_base(rows)
        elif row and not (_can_hold(base, last) and end - start <= SEGMENT_SIZE_MAX):
            yield first, row
            first, base, start = row, _new_base(rows.chosen(slice(row, row + 1))), int(ends[row - 1])
    yield first, len(rows)


def _new_base(rows: _Rows) -> int:
    """Return the base offset of a new segment that begins with the first of the rows."""
    return max(min(int(rows.base[0]), int(rows.last[0])), 0)


def _part(rows: _Rows, first: int, end: int, base_offset: int, taken: set[int]) -> Part | None:
    """Return the part of rows `first` … `end` - 1, with a base offset that no segment has; None if all are taken."""
    start = int(rows.position[first])
    if first == 0 and _can_hold(base_offset, int(rows.last[0])):
        return Part(start, base_offset)
    lasts = rows.last[first:end]
    base = _new_base(rows.chosen(slice(first, end)))
    while base in taken:
        base -= 1
    if base < 0 or not _can_hold(base, int(lasts.max())):
        return None
    taken.add(base)
    return Part(start, base)
