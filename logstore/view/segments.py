"""Segments of one log by base offset (`LogSegments`)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator
from typing import Generic, TypeVar

from .segment import Segment

SegmentT = TypeVar("SegmentT", bound=Segment)


class Segments(Generic[SegmentT]):
    """Segments in base offset order."""

    def __init__(self) -> None:
        self._by_base_offset: dict[int, SegmentT] = {}
        self._base_offsets: list[int] = []
        self._view: Segments[Segment] | None = None

    def __len__(self) -> int:
        return len(self._base_offsets)

    def __iter__(self) -> Iterator[SegmentT]:
        return iter([self._by_base_offset[base_offset] for base_offset in self._base_offsets])

    @property
    def base_offsets(self) -> list[int]:
        """All base offsets, ascending."""
        return list(self._base_offsets)

    @property
    def first(self) -> SegmentT | None:
        """The segment with the lowest offsets."""
        return self._by_base_offset[self._base_offsets[0]] if self._base_offsets else None

    @property
    def last(self) -> SegmentT | None:
        """The segment with the highest offsets: the active one."""
        return self._by_base_offset[self._base_offsets[-1]] if self._base_offsets else None

    def add(self, segment: SegmentT) -> None:
        """Add the segment, replacing one with the same base offset."""
        self._by_base_offset[segment.base_offset] = segment  # first: at any line, each listed offset has a segment
        if segment.base_offset not in self._base_offsets:
            insort(self._base_offsets, segment.base_offset)
        self._view = None

    def remove(self, base_offset: int) -> None:
        """Remove the segment, if there is one."""
        if base_offset in self._base_offsets:
            self._base_offsets.remove(base_offset)
            del self._by_base_offset[base_offset]
            self._view = None

    def clear(self) -> None:
        """Remove all segments."""
        self._base_offsets.clear()
        self._by_base_offset.clear()
        self._view = None

    def view(self) -> Segments[Segment]:
        """Return the segments as they are now, for readers; the last one as `Segment.view` returns it.

        The same object is returned until something changes. A change drops it at once, not the next call: a view holds
        the bytes of segments that were deleted since.
        """
        last = self.last
        viewed = None if self._view is None else self._view.last
        if self._view is None or last is None or viewed is None or viewed.size != last.size:
            view = Segments[Segment]()
            view._by_base_offset = dict(self._by_base_offset)
            view._base_offsets = list(self._base_offsets)
            if last is not None:
                view._by_base_offset[last.base_offset] = last.view()
            self._view = view
        return self._view

    def floor(self, offset: int) -> SegmentT | None:
        """Return the segment with the highest base offset that is not above `offset`."""
        index = bisect_right(self._base_offsets, offset)
        return self._by_base_offset[self._base_offsets[index - 1]] if index else None

    def lower(self, offset: int) -> SegmentT | None:
        """Return the segment with the highest base offset below `offset`."""
        index = bisect_left(self._base_offsets, offset)
        return self._by_base_offset[self._base_offsets[index - 1]] if index else None

    def higher(self, offset: int) -> SegmentT | None:
        """Return the segment with the lowest base offset above `offset`."""
        index = bisect_right(self._base_offsets, offset)
        return self._by_base_offset[self._base_offsets[index]] if index < len(self._base_offsets) else None

    def between(self, start: int, end: int | None = None) -> list[SegmentT]:
        """Return the segment that holds `start`, or the first above, and all up to base offset `end`, exclusive."""
        first = max(bisect_right(self._base_offsets, start) - 1, 0)
        last = len(self._base_offsets) if end is None else bisect_left(self._base_offsets, end)
        return [self._by_base_offset[base_offset] for base_offset in self._base_offsets[first:last]]

    def batch_base_offset(self, offset: int, end_offset: int) -> int:
        """Return the base offset of the batch that holds `offset`, or of the next one (`maybeConvertToOffsetMetadata`).

        Args:
            end_offset: of the log; returned if there is no such batch. An `offset` at or above it is returned as it is.

        Raises:
            CorruptRecordError, DataDirectoryError: see `Segment.place_of`.
        """
        if offset >= end_offset:
            return offset
        places = (segment.place_of(offset) for segment in self.between(offset))
        return next((place.base_offset for place in places if place is not None), end_offset)
