"""Segments of one log by base offset (`LogSegments`)."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import attrgetter
from typing import Generic, TypeVar

from .batch_search import BatchPlace
from .segment import Segment

SegmentT = TypeVar("SegmentT", bound=Segment)
_base_offset = attrgetter("base_offset")


class Segments(Generic[SegmentT]):
    """Segments in base offset order."""

    def __init__(self) -> None:
        self._segments: tuple[SegmentT, ...] = ()  # replaced, never changed: views have it too
        self._last: SegmentT | None = None  # of a view: the last segment as it was
        self._view: Segments[Segment] | None = None

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[SegmentT]:
        return iter(self._segments if self._last is None else (*self._segments[:-1], self._last))

    @property
    def base_offsets(self) -> list[int]:
        """All base offsets, ascending."""
        return list(map(_base_offset, self._segments))

    @property
    def first(self) -> SegmentT | None:
        """The segment with the lowest offsets."""
        return self._at(0) if self._segments else None

    @property
    def last(self) -> SegmentT | None:
        """The segment with the highest offsets: the active one."""
        return self._at(len(self._segments) - 1) if self._segments else None

    def add(self, segment: SegmentT) -> None:
        """Add the segment, replacing one with the same base offset."""
        start = bisect_left(self._segments, segment.base_offset, key=_base_offset)
        end = bisect_right(self._segments, segment.base_offset, key=_base_offset)
        self._replace((*self._segments[:start], segment, *self._segments[end:]))

    def remove(self, base_offset: int) -> None:
        """Remove the segment, if there is one."""
        self._replace(tuple(segment for segment in self._segments if segment.base_offset != base_offset))

    def clear(self) -> None:
        """Remove all segments."""
        self._replace(())

    def view(self) -> Segments[Segment]:
        """Return the segments as they are now, for readers; the last one as `Segment.view` returns it.

        The same object is returned until something changes. A change drops it at once, not the next call: a view holds
        the bytes of segments that were deleted since.
        """
        last = self.last
        viewed = None if self._view is None else self._view.last
        if self._view is None or last is None or viewed is None or viewed.size != last.size:
            view = Segments[Segment]()
            view._segments, view._last = self._segments, None if last is None else last.view()
            self._view = view
        return self._view

    @property
    def is_viewed(self) -> bool:
        """True while a view is kept, and with it the mapping of the last segment."""
        return self._view is not None

    def forget_view(self) -> None:
        """Keep the view no longer; readers that have it go on."""
        self._view = None

    def floor(self, offset: int) -> SegmentT | None:
        """Return the segment with the highest base offset that is not above `offset`."""
        index = bisect_right(self._segments, offset, key=_base_offset)
        return self._at(index - 1) if index else None

    def higher(self, offset: int) -> SegmentT | None:
        """Return the segment with the lowest base offset above `offset`."""
        index = bisect_right(self._segments, offset, key=_base_offset)
        return self._at(index) if index < len(self._segments) else None

    def between(self, start: int, end: int | None = None) -> list[SegmentT]:
        """Return the segment that holds `start`, or the first above, and all up to base offset `end`, exclusive."""
        first = max(bisect_right(self._segments, start, key=_base_offset) - 1, 0)
        last = len(self._segments) if end is None else bisect_left(self._segments, end, key=_base_offset)
        return list(map(self._at, range(first, last)))

    def _at(self, index: int) -> SegmentT:
        return self._segments[index] if self._last is None or index < len(self._segments) - 1 else self._last

    def _replace(self, segments: tuple[SegmentT, ...]) -> None:
        self._view = None
        self._segments = segments

    def place_of(self, offset: int) -> tuple[SegmentT, BatchPlace] | None:
        """Return segment and place of the batch that holds `offset`, or of the next; None behind all. See `Segment`."""
        segment = self.floor(offset) or self.first
        while segment is not None:
            place = segment.place_of(offset)
            if place is not None:
                return segment, place
            segment = self.higher(segment.base_offset)
        return None

    def batch_base_offset(self, offset: int, end_offset: int) -> int:
        """Return the base offset of the batch that holds `offset`, or of the next one (`maybeConvertToOffsetMetadata`).

        Args:
            end_offset: of the log; returned if there is no such batch. An `offset` at or above it is returned as it is.
        """
        if offset >= end_offset:
            return offset
        found = self.place_of(offset)
        return end_offset if found is None else found[1].base_offset
