"""Figures of each segment."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..disk.directory import SegmentFiles
from ..disk.side_files import read_offset_index, read_time_index, read_transaction_index
from ..layout.batch import CODEC_MASK, CONTROL_FLAG, TRANSACTIONAL_FLAG
from ..model import Codec
from ..view.walk import Damage
from .evidence import AuditedBatches, Evidence, Follower
from .partition import unless_gone

_NO_TIMESTAMP = -1


@dataclass(slots=True)
class SegmentFigures:
    """One segment; sizes in bytes, timestamps in ms.

    Attributes:
        end_offset: behind the last batch; the base offset if there is none.
        record_count: of batches of magic 2, control records included; entries of magic 0 and 1 count as one each.
        damaged_size: bytes that are no good batch.
        offset_entries, …: of the indexes, zeros of a preallocated file included; None without the file.
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
    first_timestamp: int = _NO_TIMESTAMP
    largest_timestamp: int = _NO_TIMESTAMP
    offset_entries: int | None = None
    time_entries: int | None = None
    aborted_entries: int | None = None
    codecs: set[str] = field(default_factory=set)


class SegmentTable(Follower):
    """Collects the figures of each segment.

    Attributes:
        rows: one a segment, by base offset.
    """

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self.rows: list[SegmentFigures] = []

    def begin(self, segment: SegmentFiles) -> None:
        row = SegmentFigures(segment.base_offset, segment.base_offset, self._evidence.segment_size)
        if (offset_index := unless_gone(read_offset_index, segment.offset_index)) is not None:
            row.offset_entries = offset_index.entry_count
        if (time_index := unless_gone(read_time_index, segment.time_index)) is not None:
            row.time_entries = time_index.entry_count
        if (transaction_index := unless_gone(read_transaction_index, segment.transaction_index)) is not None:
            row.aborted_entries = transaction_index.entry_count
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
        if row.first_timestamp == _NO_TIMESTAMP:
            row.first_timestamp = int(timestamps[0])
        row.largest_timestamp = max(row.largest_timestamp, int(timestamps.max()))
        known = set(Codec)
        for codec in np.unique(attributes & CODEC_MASK).tolist():
            row.codecs.add(Codec(codec).kafka_name if codec in known else str(codec))

    def skip(self, piece: Damage) -> None:
        self.rows[-1].damaged_size += piece.end - piece.start
