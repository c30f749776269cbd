"""Which batch is the first, from a given position on, to end at or after an offset: asked many times of one `.log`.

Kafka's tool reads all batches from the position to the end of the file for every entry of a time index. Here
every batch is looked at once. Batches follow one another in *chains*: nearly always in a single one to the end
of the file. A damaged index that points between batches begins a chain of its own, which ends soon or joins
another. Within a chain a search passes over blocks of batches by their largest last offset.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from logstore.columns.batch_table import scan_chunk
from logstore.kernels.scan import END, HEADER_BEYOND_FILE
from logstore.layout.batch import HEADER_UP_TO_MAGIC_SIZE, LOG_OVERHEAD_SIZE

from .segment_records import SegmentRecords

_BLOCK_SIZE = 1024
_CHUNK_SIZES = (64, 4096)
_UNREADABLE = np.iinfo(np.int64).max


class FoundBatch(NamedTuple):
    """Byte position and last offset of a batch."""

    position: int
    last_offset: int


class _Chain:
    """Batches from some start to the end of the file, or to the row of another chain that goes on from there."""

    def __init__(self, positions: NDArray[np.int64], last_offsets: NDArray[np.int64], joined: _Place | None) -> None:
        self.positions = positions
        self.last_offsets = last_offsets
        self.joined = joined
        starts = np.arange(0, positions.size, _BLOCK_SIZE)
        self._block_maxima = np.maximum.reduceat(last_offsets, starts) if positions.size else last_offsets

    def row_at(self, position: int) -> int:
        """Row of the batch at `position`, -1 if none begins there."""
        row = int(self.positions.searchsorted(position))
        return row if row < self.positions.size and self.positions[row] == position else -1

    def rows_at(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """`row_at` of many: int64, same length."""
        rows = np.searchsorted(self.positions, positions)
        rows[rows == self.positions.size] = 0
        return np.where(self.positions[rows] == positions, rows, -1)

    def first_row(self, row: int, offset: int) -> int | None:
        """The first row from `row` on whose last offset is at least `offset`."""
        block = row // _BLOCK_SIZE
        found = self._first_in_block(row, (block + 1) * _BLOCK_SIZE, offset)
        if found is None:
            blocks = np.flatnonzero(self._block_maxima[block + 1 :] >= offset)
            if blocks.size:
                start = (block + 1 + int(blocks[0])) * _BLOCK_SIZE
                found = self._first_in_block(start, start + _BLOCK_SIZE, offset)
        return found

    def _first_in_block(self, start: int, end: int, offset: int) -> int | None:
        is_found = self.last_offsets[start:end] >= offset
        row = int(is_found.argmax()) if is_found.size else 0
        return start + row if is_found.size and is_found[row] else None


class _Place(NamedTuple):
    chain: _Chain
    row: int


class BatchChains:
    """The chains of one `.log` that have been asked for."""

    def __init__(self, records: SegmentRecords) -> None:
        self._records = records
        self._chains: list[_Chain] = []

    def first_batch(self, position: int, offset: int) -> FoundBatch | None:
        """The first batch from `position` on whose last offset is at least `offset`.

        Raises:
            CorruptRecordError: anywhere from `position` to the end of the file there is a size that no batch can
                have, or the search meets a v2 header that the file is too short for.
        """
        place: _Place | None = self._place_at(position)
        while place is not None:
            chain, row = place
            found = chain.first_row(row, offset)
            if found is not None:
                batch = FoundBatch(int(chain.positions[found]), int(chain.last_offsets[found]))
                if batch.last_offset == _UNREADABLE and self._records.is_header_beyond_file(batch.position):
                    raise self._records.header_beyond_file(batch.position, position, self._records.size)
                return batch
            place = chain.joined
        return None

    def _place_at(self, position: int) -> _Place:
        for known in self._chains:
            row = known.row_at(position)
            if row >= 0:
                return _Place(known, row)
        chain = self._new_chain(position)
        if chain.positions.size:
            self._chains.append(chain)
        return _Place(chain, 0)

    def _known_place(self, positions: NDArray[np.int64]) -> tuple[int, _Place] | None:
        """The first of `positions` where a known chain has a batch: its index, and the place in that chain."""
        first: tuple[int, _Place] | None = None
        for chain in self._chains:
            rows = chain.rows_at(positions)
            hits = np.flatnonzero(rows >= 0)
            if hits.size and (first is None or hits[0] < first[0]):
                first = int(hits[0]), _Place(chain, int(rows[hits[0]]))
        return first

    def _new_chain(self, position: int) -> _Chain:
        """Scan from `position` to the end of the file or to a batch that is known."""
        if position < self._records.size - HEADER_UP_TO_MAGIC_SIZE:
            self._records.require_readable()
        positions: list[NDArray[np.int64]] = []
        last_offsets: list[NDArray[np.int64]] = []
        joined = None
        ended = False
        while not (ended or joined):
            chunk_positions, chunk_last_offsets, position, ended = self._chunk(position, len(positions))
            known = self._known_place(chunk_positions)
            if known is not None:
                joined = known[1]
                chunk_positions, chunk_last_offsets = chunk_positions[: known[0]], chunk_last_offsets[: known[0]]
            positions.append(chunk_positions)
            last_offsets.append(chunk_last_offsets)
        return _Chain(np.concatenate(positions), np.concatenate(last_offsets), joined)

    def _chunk(self, position: int, chunk_index: int) -> tuple[NDArray[np.int64], NDArray[np.int64], int, bool]:
        """Some batches from `position`: positions, last offsets, the position after them, and whether that is all."""
        records = self._records
        capacity = _CHUNK_SIZES[min(chunk_index, len(_CHUNK_SIZES) - 1)]
        table = scan_chunk(records.data, position, records.size, capacity=capacity)
        next_position = table.next_position
        positions, last_offsets = table.position.copy(), table.last_offset
        if table.status == HEADER_BEYOND_FILE:
            positions = np.append(positions, next_position)
            last_offsets = np.append(last_offsets, _UNREADABLE)
            next_position += LOG_OVERHEAD_SIZE + records.batch_length(next_position)
        elif (error := table.error(records.path, records.size)) is not None:
            raise error
        return positions, last_offsets, next_position, table.status == END
