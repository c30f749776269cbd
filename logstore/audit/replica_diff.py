"""Comparison of two replicas of a partition, batch by batch up to the first difference (KIP-101, KIP-279).

A follower writes the leader's bytes as they are, so replicas agree in every byte, but may cut them into other segments.
Compacted offsets of either replica are not compared: they need not agree.

    difference = compare("a/orders-0", "b/orders-0")
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from ..columns.batch_table import FIELD_NAMES, Int64Array
from ..disk.loaded import LoadedFile
from ..view.walk import Run, walk
from .evidence import Evidence
from .partition import Partition, open_partition, unless_gone

# Of two equal batches all columns are equal but the position; the checksum stands for the records.
_COMPARED = [name for name in FIELD_NAMES if name not in ("position", "is_valid")]
_COLUMNS = [FIELD_NAMES[name] for name in _COMPARED]


class DifferencePlace(NamedTuple):
    """A batch: the file it is in, its byte position there, and its header by Kafka's names."""

    path: str
    position: int
    header: dict[str, int]


class DamagedPlace(NamedTuple):
    """Bytes from `position` on that may have been batches and are none now."""

    path: str
    position: int


class Difference(NamedTuple):
    """The result of a comparison.

    Attributes:
        start_offset: where the comparison begins; below, offsets are missing in one replica, or compacted.
        end_offset: where the common batches end; exclusive.
        batch_count: number of common batches.
        first: the first different batch of each replica; None where a log ends.
        fields: names of the header's fields in which they differ; none if one is None.
        damaged: the last damage that was passed over in each replica on the way; None without any.
    """

    start_offset: int
    end_offset: int
    batch_count: int
    first: tuple[DifferencePlace | None, DifferencePlace | None]
    fields: tuple[str, ...]
    damaged: tuple[DamagedPlace | None, DamagedPlace | None]

    @property
    def is_same(self) -> bool:
        """Whether both end with the same batch."""
        return self.first == (None, None)

    @property
    def is_shorter(self) -> bool:
        """Whether one is a prefix of the other, like a follower that has not caught up, and not damaged."""
        return not self.is_same and None in self.first and self.damaged == (None, None)


class _Block(NamedTuple):
    """The next batches: columns of `_COMPARED`, positions, and the file."""

    path: str
    columns: Int64Array
    positions: Int64Array


def compare(path: str, other_path: str) -> Difference:
    """Compare the partition directories at `path` and `other_path`; damaged batches are skipped in both.

    They are compared from the later log start on; if neither has anything there, from the later first segment on.

    Raises:
        InvalidNameError: a name is no partition's.
        DataDirectoryError: one is missing, unreadable, or no directory.
    """
    one, other = open_partition(path), open_partition(other_path)
    start = max(max(each.first_offset, Evidence(each).cleaned_up_to) for each in (one, other))
    damage: tuple[list[DamagedPlace], list[DamagedPlace]] = [], []
    streams = _blocks(one, start, damage[0]), _blocks(other, start, damage[1])
    first, second = (next(stream, None) for stream in streams)
    if first is None and second is None:  # a log start above all there is would hide what differs
        start = max(one.base_offset, other.base_offset)
        damage = [], []
        streams = _blocks(one, start, damage[0]), _blocks(other, start, damage[1])
        first, second = (next(stream, None) for stream in streams)
    end_offset, batch_count = start, 0
    while first is not None and second is not None:
        count = min(first.positions.size, second.positions.size)
        is_different = (first.columns[:, :count] != second.columns[:, :count]).any(axis=0)
        same_count = int(is_different.argmax()) if is_different.any() else count
        if same_count:
            batch_count += same_count
            header = _header(first, same_count - 1)
            end_offset = header["base_offset"] + header["last_offset_delta"] + 1
        if same_count < count:
            wrong = first.columns[:, same_count] != second.columns[:, same_count]
            names = tuple(name for name, is_wrong in zip(_COMPARED, wrong.tolist(), strict=True) if is_wrong)
            places = (_place(first, same_count), _place(second, same_count))
            return Difference(start, end_offset, batch_count, places, names, _last(damage))
        first, second = (
            next(stream, None)
            if block.positions.size == count
            else _Block(block.path, block.columns[:, count:], block.positions[count:])
            for block, stream in zip((first, second), streams, strict=True)
        )
    return Difference(start, end_offset, batch_count, (_place(first, 0), _place(second, 0)), (), _last(damage))


def _last(
    damage: tuple[list[DamagedPlace], list[DamagedPlace]],
) -> tuple[DamagedPlace | None, DamagedPlace | None]:
    one, other = (places[-1] if places else None for places in damage)
    return one, other


def _blocks(partition: Partition, start: int, damage: list[DamagedPlace]) -> Iterator[_Block]:
    """Yield the good batches from offset `start` on; add the damage among them, when the batches behind it are due."""
    for segment in partition.files.segments:
        log = unless_gone(LoadedFile, segment.log)
        if log is None:
            continue
        with log:
            for piece in walk(log, segment.base_offset):
                if isinstance(piece, Run):
                    rows = np.arange(piece.first_row, piece.row_end)
                    is_below = piece.table.base_offset[rows] < start
                    if is_below.any():
                        damage.clear()  # it is below too
                    rows = rows[~is_below]
                    if not rows.size:
                        continue
                    yield _Block(segment.log, piece.table.matrix[_COLUMNS][:, rows], piece.table.position[rows])
                elif piece.may_hide_batches:
                    damage.append(DamagedPlace(segment.log, piece.start))


def _header(block: _Block, row: int) -> dict[str, int]:
    return dict(zip(_COMPARED, block.columns[:, row].tolist(), strict=True))


def _place(block: _Block | None, row: int) -> DifferencePlace | None:
    return None if block is None else DifferencePlace(block.path, int(block.positions[row]), _header(block, row))
