"""`<base offset>.timeindex`: maps timestamps to offsets in the segment (`TimeIndex`).

Entries of 12 bytes, big-endian, without gaps and without a header:

    int64 timestamp         ms since 1970; the largest of all records up to the offset
    int32 relative_offset   last offset of the batch that has it, minus the base offset in the file name

Timestamps ascend strictly, offsets ascend. Kafka adds an entry with each entry of the offset index if the segment's
largest timestamp has grown since, and once more when the segment rolls or is closed; it keeps one slot free for that.
Up to 3.6 the offset is that of the first record with the timestamp, if a producer sent the batch uncompressed.
Preallocation and the zeros behind the entries are as in the offset index.

A lookup gives the entry with the largest timestamp ≤ the target, and (-1, base offset) if there is none.

>>> data = bytes.fromhex("0000018bcfe56814 00000006")
>>> index = parse_time_index(data, base_offset=100, path="/d/100.timeindex")
>>> index.timestamps.tolist(), index.offsets.tolist()
([1700000000020], [106])
>>> index.lookup(1700000000021), index.lookup(5)
((1700000000020, 106), (-1, 100))
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..errors import CorruptIndexError
from .batch import NO_TIMESTAMP
from .index_search import NO_SLOT, WARM_BYTES, entry_count_before_zeros, largest_lower_bound_slot

ENTRY_SIZE = 12
ENTRY_DTYPE = np.dtype([("timestamp", ">i8"), ("relative_offset", ">i4")])
WARM_ENTRY_COUNT = WARM_BYTES // ENTRY_SIZE


@dataclass(frozen=True, slots=True, eq=False)
class TimeIndex:
    """Entries of one `.timeindex`.

    Attributes:
        path: absolute path, for messages.
        base_offset: from the file name.
        size_bytes: length of the file.
        timestamps: int64, ms since 1970.
        offsets: int64, absolute: base offset + relative offset, which overflows as in Java.
    """

    path: str
    base_offset: int
    size_bytes: int
    timestamps: NDArray[np.int64]
    offsets: NDArray[np.int64]

    @property
    def entry_count(self) -> int:
        """Number of entries."""
        return self.timestamps.size

    @property
    def written_count(self) -> int:
        """Number of entries before the zeros of a preallocated file. A lone entry may have the timestamp 0."""
        if self.entry_count > 1 and self.offsets[0] == self.base_offset and self.timestamps[0] == 0:
            return 0
        return entry_count_before_zeros(self.offsets, self.base_offset)

    def lookup(self, target_timestamp: int) -> tuple[int, int]:
        """Return (timestamp, offset) of the largest entry ≤ the target; (-1, base offset) if there is none."""
        slot = largest_lower_bound_slot(self.timestamps, target_timestamp, WARM_ENTRY_COUNT)
        if slot == NO_SLOT:
            return NO_TIMESTAMP, self.base_offset
        return int(self.timestamps[slot]), int(self.offsets[slot])

    def sanity_check(self) -> None:
        """Raise CorruptIndexError for a last entry below the first or a partial entry (`TimeIndex.sanityCheck`)."""
        if self.entry_count:
            self._check_last_entry()
        if self.size_bytes % ENTRY_SIZE:
            raise CorruptIndexError(
                f"Time index file {self.path} is corrupt, found {self.size_bytes} bytes which is neither "
                f"positive nor a multiple of {ENTRY_SIZE}"
            )

    def _check_last_entry(self) -> None:
        first_timestamp, last_timestamp = int(self.timestamps[0]), int(self.timestamps[-1])
        last_offset = int(self.offsets[-1])
        prefix = f"Corrupt time index found, time index file ({self.path}) has non-zero size but the last"
        if last_timestamp < first_timestamp:
            raise CorruptIndexError(
                f"{prefix} timestamp is {last_timestamp} which is less than the first timestamp {first_timestamp}"
            )
        if last_offset < self.base_offset:
            raise CorruptIndexError(
                f"{prefix} offset is {last_offset} which is less than the first offset {self.base_offset}"
            )


def parse_time_index(data: bytes | NDArray[np.uint8], *, base_offset: int, path: str) -> TimeIndex:
    """Return the entries in `data`, the whole file; ignores bytes behind the last whole entry.

    Raises nothing, as any bytes are an index; `sanity_check` judges them.
    """
    entries = np.frombuffer(data, dtype=ENTRY_DTYPE, count=len(data) // ENTRY_SIZE)
    return TimeIndex(
        path=path,
        base_offset=base_offset,
        size_bytes=len(data),
        timestamps=entries["timestamp"].astype(np.int64),
        offsets=entries["relative_offset"].astype(np.int64) + np.int64(base_offset),
    )
