"""The segments of a partition: sizes of logs and indexes, as numbers and as bars on one scale."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .markup import Markup, byte_text, count_of, size_text, swatches, table
from .scale import percent

if TYPE_CHECKING:
    from logstore.audit.verify import PartitionFacts
    from logstore.disk.directory import SegmentFiles

SEGMENT_COUNT_MAX = 40  # rows for one partition
_SUFFIXES = ("log", "index", "timeindex", "txnindex")

_Sizes = Sequence[int | None]  # bytes of the files of one segment, by suffix; None for a file that is not there


def segments(one: PartitionFacts) -> str:
    """A table with a row for each of the last segments, and what all of them take."""
    rows = [(segment.base_offset, _sizes(segment)) for segment in one.partition.files.segments]
    if not rows:
        return '<p class="note">There is no segment.</p>'
    shown = rows[-SEGMENT_COUNT_MAX:]
    largest = max(_total(sizes) for _, sizes in shown)
    index_size = sum(_total(sizes[1:]) for _, sizes in rows)
    log_size = sum(_total(sizes[:1]) for _, sizes in rows)
    about = f"{count_of(len(rows), 'segment')}: logs {byte_text(log_size)}, indexes {byte_text(index_size)}."
    if len(shown) < len(rows):
        about += f" The last {len(shown)}:"
    heads = ("base offset", *(f".{suffix}" for suffix in _SUFFIXES), f"of {byte_text(largest)}")
    cells = [
        (base_offset, *(None if size is None else size_text(size) for size in sizes), _bar(sizes, largest))
        for base_offset, sizes in shown
    ]
    return f'<p class="legend">{about} {swatches(_SUFFIXES)}</p>{table(heads, cells, minor=(2, 3, 4))}'


def _bar(sizes: _Sizes, largest: int) -> Markup:
    """The files of a segment one behind the other, each as long as it is of the largest segment."""
    parts, position = [], 0
    for suffix, size in zip(_SUFFIXES, sizes, strict=True):
        if size:
            x, width = percent(position, largest), percent(size, largest)
            parts.append(f'<rect x="{x}" width="{width}" height="10" class="{suffix}"/>')
            position += size
    return Markup(f'<svg class="sizes" height="10" aria-hidden="true">{"".join(parts)}</svg>')


def _sizes(segment: SegmentFiles) -> _Sizes:
    from logstore.audit.partition import unless_gone
    from logstore.disk.mapped import segment_size

    paths = (segment.log, segment.offset_index, segment.time_index, segment.transaction_index)
    return [unless_gone(segment_size, path) for path in paths]


def _total(sizes: _Sizes) -> int:
    return sum(size or 0 for size in sizes)
