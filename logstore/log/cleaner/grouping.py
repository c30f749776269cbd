"""Which segments are cleaned into one (`Cleaner.groupSegmentsBySize`)."""

from __future__ import annotations

from collections.abc import Sequence

from ...layout import offset_index, time_index
from ..segment import RELATIVE_OFFSET_MAX, Segment


def group_segments(
    segments: Sequence[Segment], *, size_max: int, index_size_max: int, first_uncleanable_offset: int
) -> list[list[Segment]]:
    """Runs of segments that are, uncleaned, not larger than one may be, and whose offsets one can hold.

    Args:
        segments: ascending, closed.
        size_max, index_size_max: bytes of a `.log`, and of each of its indexes.
        first_uncleanable_offset: no segment reaches it.
    """
    groups: list[list[Segment]] = []
    sizes = index_sizes = time_index_sizes = 0
    for number, segment in enumerate(segments):
        size = segment.size
        index_size = segment.offset_index.entry_count * offset_index.ENTRY_SIZE
        time_index_size = segment.time_index.entry_count * time_index.ENTRY_SIZE
        is_last = number + 1 == len(segments)
        end_offset = first_uncleanable_offset if is_last else segments[number + 1].base_offset
        fits = (
            bool(groups)
            and sizes + size <= size_max
            and index_sizes + index_size <= index_size_max
            and time_index_sizes + time_index_size <= index_size_max
            and (size == 0 or end_offset - 1 - groups[-1][0].base_offset <= RELATIVE_OFFSET_MAX)
        )
        if not fits:
            groups.append([])
            sizes = index_sizes = time_index_sizes = 0
        groups[-1].append(segment)
        sizes += size
        index_sizes += index_size
        time_index_sizes += time_index_size
    return groups
