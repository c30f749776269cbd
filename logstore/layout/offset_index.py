"""`<base offset>.index`: maps offsets to byte positions in the segment (`OffsetIndex`).

Entries of 8 bytes, big-endian, without gaps and without a header:

    int32 relative_offset   last offset of a batch, minus the base offset in the file name
    int32 position          byte position of that batch in the `.log`

Both columns ascend. Kafka adds about one entry per `index.interval.bytes` (4096) of log, never for the first batch of a
segment; before 4.1, but for 3.9.1 and 3.9.2, one for all batches of an append, with the last offset of the last and the
position of the first. The file of the active segment is preallocated to `segment.index.bytes` with zeros behind its
entries; Kafka truncates it to its entries when the segment rolls or the log is closed. After a crash the zeros remain:
an entry other than the first with relative offset 0 marks the end, and recovery rebuilds the file. Bytes behind the
last whole entry are ignored.

A lookup gives the largest entry whose offset is ≤ the target, and (base offset, 0) if there is none.

>>> data = bytes.fromhex("00000006 00000116  0000000a 00000164")
>>> index = parse_offset_index(data, base_offset=100, path="/d/100.index")
>>> index.offsets.tolist(), index.positions.tolist()
([106, 110], [278, 356])
>>> index.lookup(109), index.lookup(105)
((106, 278), (100, 0))
>>> index.upper_bound_offset(300), index.upper_bound_offset(357)
(110, None)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import CorruptIndexError
from .index_search import (
    NO_SLOT,
    WARM_BYTES,
    entry_count_before_zeros,
    largest_lower_bound_slot,
    largest_lower_bound_slots,
    smallest_upper_bound_slot,
)

ENTRY_SIZE = 8
ENTRY_DTYPE = np.dtype([("relative_offset", ">i4"), ("position", ">i4")])
WARM_ENTRY_COUNT = WARM_BYTES // ENTRY_SIZE


@dataclass(frozen=True, slots=True, eq=False)
class OffsetIndex:
    """Entries of one `.index`.

    Attributes:
        path: absolute path, for messages.
        base_offset: from the file name.
        size_bytes: length of the file.
        offsets: int64, absolute: base offset + relative offset, which overflows as in Java.
        positions: int64, as stored; may be negative in a damaged file.
    """

    path: str
    base_offset: int
    size_bytes: int
    offsets: NDArray[np.int64]
    positions: NDArray[np.int64]

    @property
    def entry_count(self) -> int:
        """Number of entries."""
        return self.offsets.size

    @property
    def written_count(self) -> int:
        """Number of entries before the zeros of a preallocated file."""
        if self.entry_count and self.offsets[0] == self.base_offset and self.positions[0] == 0:
            return 0
        return entry_count_before_zeros(self.offsets, self.base_offset)

    def lookup(self, target_offset: int) -> tuple[int, int]:
        """Return (offset, position) of the largest entry ≤ the target; (base offset, 0) if there is none."""
        slot = largest_lower_bound_slot(self.offsets, target_offset, WARM_ENTRY_COUNT)
        if slot == NO_SLOT:
            return self.base_offset, 0
        return self.offsets.item(slot), self.positions.item(slot)

    def lookup_positions(self, target_offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the position that `lookup` gives for each target: int64, same length."""
        slots = largest_lower_bound_slots(self.offsets, target_offsets, WARM_ENTRY_COUNT)
        if self.entry_count == 0:
            return np.zeros(slots.size, dtype=np.int64)
        return np.where(slots == NO_SLOT, np.int64(0), self.positions[slots])

    def upper_bound_offset(self, position: int) -> int | None:
        """Return the offset of the first entry at or behind `position`; None without one (`fetchUpperBoundOffset`)."""
        slot = smallest_upper_bound_slot(self.positions, position, WARM_ENTRY_COUNT)
        return None if slot == NO_SLOT else int(self.offsets[slot])

    def sanity_check(self) -> None:
        """Raise CorruptIndexError for a last offset below the base or a partial entry (`OffsetIndex.sanityCheck`)."""
        if self.entry_count and int(self.offsets[-1]) < self.base_offset:
            raise CorruptIndexError(
                f"Corrupt index found, index file {self.path} has non-zero size but the last offset is "
                f"{int(self.offsets[-1])} which is less than the base offset {self.base_offset}"
            )
        if self.size_bytes % ENTRY_SIZE:
            raise CorruptIndexError(
                f"Index file {self.path} is corrupt, found {self.size_bytes} bytes which is neither positive "
                f"nor a multiple of {ENTRY_SIZE}"
            )


def parse_offset_index(data: bytes | NDArray[np.uint8], *, base_offset: int, path: str) -> OffsetIndex:
    """Return the entries in `data`, the whole file; ignores bytes behind the last whole entry.

    Raises nothing, as any bytes are an index; `sanity_check` judges them.
    """
    entries = np.frombuffer(data, dtype=ENTRY_DTYPE, count=len(data) // ENTRY_SIZE)
    return OffsetIndex(
        path=path,
        base_offset=base_offset,
        size_bytes=len(data),
        offsets=entries["relative_offset"].astype(np.int64) + np.int64(base_offset),
        positions=entries["position"].astype(np.int64),
    )
