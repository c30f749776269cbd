"""One pass over the segments of a partition, and many checks on it: bytes are read once, whatever is asked.

    run_checks(evidence, [BatchChecks(partition, report), …])

calls of each check, for each segment in order: `begin`, then `step` and `skip` as the pieces come, then `end`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from ..disk.directory import SegmentFiles
from ..disk.mapped import MappedFile
from ..view.walk import Damage, Run, Tail, walk
from .evidence import Evidence
from .partition import unless_gone


@dataclass(frozen=True, slots=True)
class SegmentEnd:
    """How a segment ended.

    Attributes:
        size: bytes of the `.log` when it was opened.
        is_growing: a writer has appended since, so that what was cut off may have been whole a moment later.
    """

    files: SegmentFiles
    size: int
    is_growing: bool


class Check(Protocol):
    """Something that is asked of all batches of a partition."""

    def begin(self, segment: SegmentFiles) -> None:
        """The next segment."""

    def step(self, run: Run) -> None:
        """Good batches of it."""

    def skip(self, piece: Damage | Tail) -> None:
        """Bytes of it that are no good batch."""

    def end(self, end: SegmentEnd) -> None:
        """There is no more of it."""

    def finish(self) -> None:
        """There are no more segments."""


@dataclass(slots=True)
class PassSize:
    """How much a pass has seen: files, good batches, bytes, and the offset behind the last batch."""

    segment_count: int = 0
    batch_count: int = 0
    size: int = 0
    log_end_offset: int = 0


def run_checks(evidence: Evidence, checks: Sequence[Check]) -> PassSize:
    """Read the log once, with all checks on it; the evidence is a step ahead of them.

    Raises:
        DataDirectoryError: a segment cannot be read.
    """
    total = PassSize(log_end_offset=evidence.partition.first_offset)
    for segment in evidence.partition.files.segments:
        log = unless_gone(MappedFile, segment.log)
        if log is None:
            continue
        with log:
            _segment(log, segment, evidence, checks, total)
    for check in checks:
        check.finish()
    return total


def _segment(
    log: MappedFile, segment: SegmentFiles, evidence: Evidence, checks: Sequence[Check], total: PassSize
) -> None:
    total.segment_count += 1
    total.size += log.size
    total.log_end_offset = max(total.log_end_offset, segment.base_offset)
    evidence.begin(segment)
    for check in checks:
        check.begin(segment)
    for piece in walk(log, segment.base_offset):
        if isinstance(piece, Run):
            total.batch_count += piece.row_end - piece.first_row
            total.log_end_offset = int(piece.table.last_offset[piece.row_end - 1]) + 1
            evidence.step(piece)
            for check in checks:
                check.step(piece)
        else:
            evidence.skip(piece)
            for check in checks:
                check.skip(piece)
    end = SegmentEnd(segment, log.size, _size_now(segment, log.size) > log.size)
    for check in checks:
        check.end(end)


def _size_now(segment: SegmentFiles, size: int) -> int:
    """Bytes of the `.log` by now; `size` if it is gone."""
    log = unless_gone(MappedFile, segment.log)
    if log is None:
        return size
    with log:
        return log.size
