"""Segments that a copy of a running broker's directory holds beside the one that the cleaner merged them into."""

from __future__ import annotations

from ...columns.batch_table import BoolArray
from ...disk.directory import SegmentFiles
from ...layout.file_names import METADATA_TOPIC
from ..cluster import Known
from ..evidence import AuditedBatches, Evidence, Follower
from ..partition import Partition


class CopiedSwap(Follower):
    """Looks for segments whose batches are also in a segment before them.

    The cleaner renames old segments to `.deleted` before it renames the merged one to `.log`
    (`LocalLog.replaceSegments`), so that no crash leaves both; a copy, which takes files one after the other, may. A
    cleaned batch keeps its first and last offset (`MemoryRecords.filterTo`), so each batch behind the merged segment's
    old end is in one of the old segments too, or was in one that the copy does not have; else something is wrong.
    """

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._merged: SegmentFiles | None = None
        self._unmatched = set[tuple[int, int]]()  # first and last offsets
        self._last_offset = -1
        self._ends = dict[int, int]()  # of old segments, by base offset

    def step(self, batches: AuditedBatches) -> None:
        is_beyond = batches.last >= self._evidence.partition.end_of(batches.segment)
        if self._merged is None and is_beyond.any():
            self._merged = batches.segment
        if self._merged is None:
            return
        if self._merged is not batches.segment:
            self._unmatched.difference_update(_offsets(batches, batches.base <= self._last_offset))
            self._ends[batches.segment.base_offset] = int(batches.last[-1]) + 1
        elif is_beyond.any():
            self._unmatched.update(_offsets(batches, is_beyond))
            self._last_offset = int(batches.last[is_beyond].max())

    def without_copies(self) -> Partition | None:
        """Return, after the pass, the partition as the cleaner left it; None if nothing was copied twice."""
        partition, merged, evidence = self._evidence.partition, self._merged, self._evidence
        is_never = partition.files.topic == METADATA_TOPIC or evidence.is_cleaned_beyond is Known.NO
        if merged is None or partition.surroundings.was_closed or is_never:
            return None
        bases = [one.base_offset for one in partition.files.segments]
        for first, _ in self._unmatched:
            end = self._ends.get(max(base for base in bases if base <= first))
            if end is None or first < end:
                return None
        copied = range(merged.base_offset + 1, self._last_offset + 1)
        segments = tuple(one for one in partition.files.segments if one.base_offset not in copied)
        return partition._replace(files=partition.files._replace(segments=segments))


def _offsets(batches: AuditedBatches, is_wanted: BoolArray) -> zip[tuple[int, int]]:
    return zip(batches.base[is_wanted].tolist(), batches.last[is_wanted].tolist(), strict=True)
