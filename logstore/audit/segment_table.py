"""Figures of each segment: of all its batches, or only those that its indexes, its first and its last batches tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..columns.batch_table import BatchTable, headers
from ..columns.legacy import check_all
from ..disk.directory import SegmentFiles
from ..disk.index_slots import IndexSlots
from ..disk.loaded import LoadedFile
from ..disk.mapped import segment_size
from ..errors import CorruptRecordError, LogstoreError
from ..layout import offset_index, time_index, transaction_index
from ..layout.batch import CODEC_MASK, CONTROL_FLAG, HEADER_SIZE, NO_TIMESTAMP, TRANSACTIONAL_FLAG
from ..model import Codec
from ..view.batch_search import indexed_batch
from ..view.walk import Damage, batch_at
from .evidence import AuditedBatches, Evidence, Follower
from .partition import Partition, unless_gone


@dataclass(slots=True)
class SegmentFigures:
    """One segment; sizes in bytes, timestamps in ms.

    Attributes:
        end_offset: behind the last batch; the base offset if there is none.
        record_count: of batches of magic 2, control records included; entries of magic 0 and 1 count as one each.
        damaged_size: bytes that are no good batch.
        offset_entries, …: of the indexes, without the zeros of a preallocated file; None without the file.
        codecs: names of the codecs of its batches, "none" among them, sorted.
    """

    base_offset: int
    end_offset: int
    size: int = 0
    batch_count: int = 0
    record_count: int = 0
    control_count: int = 0
    transactional_count: int = 0
    damaged_size: int = 0
    first_timestamp: int = NO_TIMESTAMP
    largest_timestamp: int = NO_TIMESTAMP
    offset_entries: int | None = None
    time_entries: int | None = None
    aborted_entries: int | None = None
    codecs: set[str] = field(default_factory=set)

    def count_entries(self, segment: SegmentFiles) -> None:
        """Count the entries of the indexes; only a `.txnindex` is never longer than those."""
        self.offset_entries = _entry_count(segment.offset_index, offset_index.ENTRY_DTYPE)
        self.time_entries = _entry_count(segment.time_index, time_index.ENTRY_DTYPE)
        size = unless_gone(segment_size, segment.transaction_index)
        self.aborted_entries = None if size is None else size // transaction_index.ENTRY_SIZE


def _entry_count(path: str | None, entry: np.dtype[Any]) -> int | None:
    slots = unless_gone(lambda path: IndexSlots(path, entry), path)
    if slots is None:
        return None
    with slots:
        return len(slots)


class SegmentTable(Follower):
    """Collects the figures of each segment as `rows`, by base offset."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self.rows: list[SegmentFigures] = []

    def begin(self, segment: SegmentFiles) -> None:
        row = SegmentFigures(segment.base_offset, segment.base_offset, self._evidence.segment_size)
        row.count_entries(segment)
        self.rows.append(row)

    def step(self, batches: AuditedBatches) -> None:
        table, is_v2, row = batches.table, batches.is_v2, self.rows[-1]
        attributes = np.where(is_v2, table.attributes, table.attributes & CODEC_MASK)
        row.batch_count += is_v2.size
        row.record_count += int(np.where(is_v2, table.record_count, 1).sum())
        row.control_count += int(((attributes & CONTROL_FLAG) != 0).sum())
        row.transactional_count += int(((attributes & TRANSACTIONAL_FLAG) != 0).sum())
        row.end_offset = int(batches.last[-1]) + 1
        timestamps = table.max_timestamp
        if row.first_timestamp == NO_TIMESTAMP:
            row.first_timestamp = int(timestamps[0])
        row.largest_timestamp = max(row.largest_timestamp, int(timestamps.max()))
        known = set(Codec)
        for codec in np.unique(attributes & CODEC_MASK).tolist():
            row.codecs.add(Codec(codec).kafka_name if codec in known else str(codec))

    def skip(self, piece: Damage) -> None:
        self.rows[-1].damaged_size += piece.end - piece.start


def end_figures(partition: Partition, segment: SegmentFiles, problems: list[LogstoreError]) -> SegmentFigures | None:
    """Return what the ends of a segment tell: offsets, times, entries; None if it is gone.

    Reads its first batch, and from the last one that its index names to its end; adds damage there to `problems`.
    """
    log = unless_gone(LoadedFile, segment.log)
    if log is None:
        return None
    with log:
        row = SegmentFigures(segment.base_offset, segment.base_offset, log.size)
        row.count_entries(segment)
        first = batch_at(log, 0, log.size)
        if len(first):
            row.first_timestamp = int(first.max_timestamp[0])
        row.largest_timestamp = _indexed_timestamp(segment)
        is_last = segment is partition.last_segment
        indexed = indexed_batch(segment)
        for table in _last_tables(log, 0 if indexed is None else indexed.position, problems, is_last=is_last):
            is_good = (table.is_valid == 1) & (table.magic >= 0)
            for position in table.position[~is_good].tolist():
                what = "Record is corrupt: the checksum of its batch is wrong"
                problems.append(CorruptRecordError(what, path=segment.log, position=position))
            if is_good.any():
                row.end_offset = int(table.last_offset[is_good][-1]) + 1
                row.largest_timestamp = max(row.largest_timestamp, int(table.max_timestamp[is_good].max()))
    return row


def _last_tables(
    log: LoadedFile, position: int, problems: list[LogstoreError], *, is_last: bool
) -> Iterator[BatchTable]:
    """Yield the batches from a byte to the end, or to what is none; a batch that is being written is no problem."""
    if position >= log.size:
        return
    for table in headers(log.data, position, load=log.load):
        check_all(log.data, table)
        yield table
        position = table.next_position
    if position == log.size:
        return
    log.load(position, position + HEADER_SIZE)
    error = table.error(log.path, log.size)
    if not is_last or (error is not None and log.data[position : position + HEADER_SIZE].any()):
        what = "the rest of the segment is no batch"
        problems.append(error or CorruptRecordError(what, path=log.path, position=position))


def _indexed_timestamp(segment: SegmentFiles) -> int:
    """Return the largest timestamp up to the last entry of the time index; -1 without one."""
    slots = unless_gone(lambda path: IndexSlots(path, time_index.ENTRY_DTYPE), segment.time_index)
    if slots is None:
        return NO_TIMESTAMP
    with slots:
        return slots[len(slots) - 1][0] if len(slots) else NO_TIMESTAMP
