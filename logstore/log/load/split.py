"""Split of a segment whose offsets lie too far above its base (`splitOverflowedSegment`).

Old cleaners joined too much, or an offset, which no checksum covers, is damaged. The parts are written as `.cleaned`
files and renamed from the last to the first; the old `.log` is removed or replaced in the end. A crash before that
leaves it as it was, and the next load splits it again. Kafka goes by way of `.swap` files, which a load after a crash
finishes by removing every segment between the lowest and the highest of them: with one damaged offset, the whole log.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...columns.batch_table import BatchTable, scan
from ...config.topic import LogConfig
from ...disk.seam import Writable
from ...errors import CorruptRecordError, OffsetOverflowError
from ...kernels.rules import RELATIVE_OFFSET_MAX
from ...layout.batch import MAGIC_V2
from ...layout.file_names import (
    CLEANED_SUFFIX,
    LOG_SUFFIX,
    OFFSET_INDEX_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    segment_file_name,
)
from ...view.segments import Segments
from ..segment.log_segment import LogSegment
from .segment_recovery import index_segment

_KINDS = (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, LOG_SUFFIX)  # in this order: never a `.log` without its indexes


def split_overflowed_segment(segments: Segments[LogSegment], segment: LogSegment, config: LogConfig) -> bool:
    """Replace the segment, and its files, by several; return whether one of them has its base offset.

    Raises:
        OffsetOverflowError: a batch before the last overflows, which no split mends: a broker does not start with it.
        CorruptRecordError: the segment does not end with a whole batch.
    """
    _require_overflow(segment)
    segment.keep_bytes()
    directory = segment.directory
    base_offsets = _write_cleaned(segment, config)
    for kind in (OFFSET_INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX):
        directory.delete(segment.file_name(kind), f"segment is split into {base_offsets}")
    directory.sync()
    for base_offset in reversed(base_offsets):
        for kind in _KINDS:
            name = segment_file_name(base_offset, kind)
            directory.rename(name + CLEANED_SUFFIX, name, f"split from segment {segment.base_offset}")
        directory.sync()
    if segment.base_offset not in base_offsets:
        directory.delete(segment.file_name(LOG_SUFFIX), f"segment is split into {base_offsets}")
        directory.sync()
    segments.remove(segment.base_offset)
    for base_offset in base_offsets:
        segments.add(LogSegment.open(directory, base_offset))
    return segment.base_offset in base_offsets


def _require_overflow(segment: LogSegment) -> None:
    next_offset = segment.next_offset()
    if next_offset <= segment.base_offset or segment.can_hold(next_offset - 1):
        raise OffsetOverflowError(
            "Split operation is only permitted for segments with overflow, and the problem path is "
            + segment.path(LOG_SUFFIX),
            path=segment.path(LOG_SUFFIX),
            expected=f"offsets {segment.base_offset} to {segment.base_offset + RELATIVE_OFFSET_MAX} in all batches",
            found="another one before the last batch",
            advice="find it with `logstore dump` and put its offset right; the records are whole",
            java_class="java.lang.IllegalArgumentException",
        )


def _write_cleaned(segment: LogSegment, config: LogConfig) -> list[int]:
    """Write the parts as `.cleaned` files; return their base offsets, ascending."""
    directory, base_offsets = segment.directory, []
    with segment.map_log() as mapped:
        data = mapped.data[: segment.size]
        table = scan(data)
        _require_whole(segment, table, data.size)
        for first_row, row_end in _parts(table):
            base_offset = int(table.base_offset[first_row])
            start, end = int(table.position[first_row]), int(table.position[row_end - 1] + table.size[row_end - 1])
            part = scan(data[start:end])
            new = LogSegment(directory, base_offset, CLEANED_SUFFIX, end - start)
            indexes = index_segment(new, part, config)
            log: Writable = data[start:end].data  # mapped, not copied
            contents = (indexes.offset_index_bytes(), indexes.time_index_bytes(), log)
            for kind, content in zip(_KINDS, contents, strict=True):
                directory.replace(new.file_name(kind), content, f"split from segment {segment.base_offset}")
            base_offsets.append(base_offset)
    return base_offsets


def _parts(table: BatchTable) -> Iterator[tuple[int, int]]:
    """Yield rows [first, end) for each part: as many as its base offset can hold."""
    last_offsets = table.last_offset.tolist()
    first_row = 0
    for row, last_offset in enumerate(last_offsets):
        base_offset = int(table.base_offset[first_row])
        # also below the base offset: a damaged offset may go back
        if row > first_row and not 0 <= last_offset - base_offset <= RELATIVE_OFFSET_MAX:
            yield first_row, row
            first_row = row
    yield first_row, len(last_offsets)


def _require_whole(segment: LogSegment, table: BatchTable, size: int) -> None:
    path = segment.path(LOG_SUFFIX)
    error = table.error(path, size)
    if error is not None:
        raise error
    magics = table.magic
    if (magics > MAGIC_V2).any():
        raise CorruptRecordError(f"Invalid magic found in record: {int(magics[magics > MAGIC_V2][0])}", path=path)
    if table.next_position < size:
        raise CorruptRecordError(
            None,
            path=path,
            position=table.next_position,
            expected="a batch",
            found=f"{size - table.next_position} bytes that are none, behind offsets that overflow the segment",
            advice="cut them off, then recover again",
            java_class="java.util.NoSuchElementException",
        )
