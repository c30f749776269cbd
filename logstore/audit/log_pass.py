"""One pass over the segments of a partition: bytes are read once for all followers.

follow(evidence, [PartitionTransactions(evidence), …])
evidence.size, evidence.report.findings         what was read, and what the checks among the followers found
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..disk.directory import SegmentFiles
from ..disk.files import file_size
from ..disk.loaded import LoadedFile
from ..disk.mapped import segment_size
from ..view.walk import Advance, Run, walk
from .evidence import AuditedBatches, Evidence, Follower
from .partition import unless_gone


class LogStart(NamedTuple):
    """A batch where a pass begins: the base offset of its segment, its first byte there, and its base offset."""

    base_offset: int = 0
    position: int = 0
    offset: int = 0


LOG_START = LogStart()


def follow(
    evidence: Evidence,
    followers: Sequence[Follower],
    advance: Advance = lambda size: None,
    start: LogStart = LOG_START,
) -> None:
    """Read the log once for all followers, the evidence first, from `start` on; report what checks among them return.

    `advance` is told of the bytes before `start` at once.

    Raises:
        DataDirectoryError: a segment cannot be read.
    """
    report, followers = evidence.report, [evidence, *followers]
    evidence.is_tail = start != LOG_START
    segments = [one for one in evidence.partition.files.segments if one.base_offset >= start.base_offset]
    if evidence.is_tail:
        skipped = evidence.partition.files.segments[: -len(segments) or None]
        advance(sum(file_size(one.log) for one in skipped) + start.position)
    for follower in followers:
        report.take(follower.start())
    for segment in segments:
        log = unless_gone(LoadedFile, segment.log)
        if log is None:
            continue
        with log:
            inside = start if start.position and segment.base_offset == start.base_offset else None
            _segment(log, segment, evidence, followers, advance, inside)
    for follower in followers:
        report.take(follower.finish())


def _segment(
    log: LoadedFile,
    segment: SegmentFiles,
    evidence: Evidence,
    followers: Sequence[Follower],
    advance: Advance,
    start: LogStart | None,
) -> None:
    """Read one segment, perhaps from a batch in it on."""
    report, is_active = evidence.report, evidence.partition.is_active(segment)
    evidence.segment_size, evidence.is_growing = log.size, False
    for follower in followers:
        report.take(follower.begin(segment))
    position = 0
    if start is not None:
        position = start.position
        evidence.begin_inside(start.offset)
    for piece in walk(log, segment.base_offset, position):
        advance(piece.end - position)
        position = piece.end
        if isinstance(piece, Run):
            batches = AuditedBatches(evidence, segment, piece)
            for follower in followers:
                report.take(follower.step(batches))
        else:
            evidence.is_unused = is_active and piece.is_tail and not log.data[piece.start : piece.end].any()
            for follower in followers:
                report.take(follower.skip(piece))
    evidence.is_growing = (unless_gone(segment_size, segment.log) or 0) > log.size
    for follower in followers:
        report.take(follower.end())
