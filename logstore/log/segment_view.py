"""A segment as it is at one moment, for readers while it is written on."""

from __future__ import annotations

from .segment import Segment


class SegmentView(Segment):
    """What the segment held when this was made; its bytes are mapped then, so it may be renamed or removed."""

    def __init__(self, segment: Segment) -> None:
        """Take over what there is; nothing is copied and, but for the mapping, no file touched."""
        self.directory = segment.directory
        self.base_offset = segment.base_offset
        self.size = segment.size
        self.problem = segment.problem
        self.is_timestamp_known = segment.is_timestamp_known
        self.is_synced = segment.is_synced
        self.created_ms = segment.created_ms
        self.roll_jitter_ms = segment.roll_jitter_ms
        self._suffix = ""
        self._mapped = segment.data
        self._offset_index = segment.offset_index
        self._time_index = segment.time_index
        self._transaction_index = segment.transaction_index
        self._max_timestamp_and_offset = segment.max_timestamp_and_offset()

    def max_timestamp_and_offset(self) -> tuple[int, int]:
        """As the segment had it, see there."""
        return self._max_timestamp_and_offset
