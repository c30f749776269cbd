"""Batches of a segment to be cleaned, window by window, with checksums verified.

Kafka's cleaner verifies no checksum, and gives rewritten records a right one whatever they are. Here a damaged batch
ends the cleaning and the log stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...columns.batch_table import BatchTable, ByteArray, Int64Array, compute_is_valid
from ...columns.legacy import valid_row_count
from ...columns.record_table import BatchRecords
from ...config.topic import ARRAY_SIZE_MAX
from ...disk.mapped import MappedFile
from ...errors import CorruptRecordError
from ...kernels.scan import batches as fields
from ...layout.batch import CODEC_MASK, MAGIC_V2
from ...layout.file_names import LOG_SUFFIX
from ...view.batch_search import batch_tables
from ..segment.log_segment import LogSegment


def tables(
    segment: LogSegment, *, position: int = 0, is_checked: bool = False
) -> Iterator[tuple[ByteArray, BatchTable]]:
    """Yield the bytes of the segment and the next batches in them, from `position` to the end.

    Args:
        is_checked: the checksums were verified before.

    Raises:
        CorruptRecordError: batches end before the segment does, or a checksum is wrong.
        DataDirectoryError: the file cannot be read.
    """
    path = segment.path(LOG_SUFFIX)
    with MappedFile(path) as log:
        for table in batch_tables(log.data[: segment.size], position, path):
            if not is_checked:
                compute_is_valid(log.data, table)
                _require_valid(log.data, table, path)
            yield log.data, table
            log.release(position, table.next_position)
            position = table.next_position
    if position < segment.size:
        raise CorruptRecordError(
            f"Log segment may be corrupt, {segment.size - position} bytes left in segment for log segment {path} at "
            f"position {position}",
            path=path,
            position=position,
            expected="a whole batch",
            found="the end of the segment",
            advice="recover the log as not cleanly closed; it is not cleaned before",
        )


def require_record_sizes(data: ByteArray, table: BatchTable, rows: Int64Array, record_size_max: int) -> None:
    """Raise InvalidRecordError if a compressed batch of these rows has a larger record than is allowed; 0 is any."""
    if not 0 < record_size_max < ARRAY_SIZE_MAX:
        return
    is_compressed = (table.attributes[rows] & CODEC_MASK != 0) & (table.magic[rows] >= MAGIC_V2)
    for row in rows[is_compressed].tolist():
        for _ in BatchRecords(data, table, row, record_size_max=record_size_max).chunks():
            pass


def record_count_max(segment: LogSegment) -> int:
    """Return an upper bound of the segment's records, from its batch headers; no checksum is verified."""
    path = segment.path(LOG_SUFFIX)
    with MappedFile(path) as log:
        return sum(map(_record_count_max, batch_tables(log.data[: segment.size], 0, path)))


def _require_valid(data: ByteArray, table: BatchTable, path: str) -> None:
    row = valid_row_count(data, table)
    if row < len(table):
        raise CorruptRecordError(
            f"Record is corrupt (stored crc = {int(table.column(fields.CRC)[row])})",
            path=path,
            position=int(table.position[row]),
            offset=int(table.base_offset[row]),
            expected="the checksum of its bytes",
            found="another one",
            advice="copy the segment from another replica; the log is not cleaned before",
        )


def _record_count_max(table: BatchTable) -> int:
    """Count the records of v2 batches; a message of magic 0 or 1 may wrap as many as it has bytes."""
    counts = np.where(table.magic >= MAGIC_V2, table.record_count, table.size)
    return int(np.clip(counts, 0, None).sum())
