"""One pass over the segments of a partition: bytes are read once, whatever follows it.

size = follow(evidence, [PartitionTransactions(evidence), …], ask)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..disk.directory import SegmentFiles
from ..disk.mapped import MappedFile
from ..view.walk import Damage, Run, Tail, walk
from .evidence import Evidence
from .facts.batches import Ask, BadBytes, BatchOrder, Follower, SegmentEnd
from .partition import unless_gone


@dataclass(slots=True)
class PassSize:
    """How much a pass has seen: files, good batches, bytes, and the offset behind the last batch."""

    segment_count: int = 0
    batch_count: int = 0
    size: int = 0
    log_end_offset: int = 0


def follow(evidence: Evidence, followers: Sequence[Follower], ask: Ask = lambda facts: None) -> PassSize:
    """Read the log once for all followers, the evidence first; rules are asked of batches, and of what is none.

    Raises:
        DataDirectoryError: a segment cannot be read.
    """
    size, order = PassSize(log_end_offset=evidence.partition.first_offset), BatchOrder(evidence)
    for segment in evidence.partition.files.segments:
        log = unless_gone(MappedFile, segment.log)
        if log is None:
            continue
        with log:
            size.segment_count += 1
            size.size += log.size
            size.log_end_offset = max(size.log_end_offset, segment.base_offset)
            _segment(log, segment, order, [evidence, *followers], ask, size)
    for follower in followers:
        follower.finish()
    return size


def _segment(
    log: MappedFile, segment: SegmentFiles, order: BatchOrder, followers: Sequence[Follower], ask: Ask, size: PassSize
) -> None:
    for follower in followers:
        follower.begin(segment)
    tail: Tail | None = None
    for piece in walk(log, segment.base_offset):
        if isinstance(piece, Run):
            batches = order.next(piece, segment)
            size.batch_count += len(batches.table)
            size.log_end_offset = int(batches.last[-1]) + 1
            for follower in followers:
                follower.step(batches)
            ask(batches)
            continue
        order.is_after_damage = True
        for follower in followers:
            follower.skip(piece)
        if isinstance(piece, Damage):
            ask(BadBytes(order.partition, segment.log, piece))
        else:
            tail = piece
    end = SegmentEnd(segment, log.size, _size_now(segment, log.size) > log.size)
    if tail is not None and not end.is_growing:
        ask(BadBytes(order.partition, segment.log, tail))
    for follower in followers:
        follower.end(end)


def _size_now(segment: SegmentFiles, size: int) -> int:
    """Bytes of the `.log` by now; `size` if it is gone."""
    log = unless_gone(MappedFile, segment.log)
    if log is None:
        return size
    with log:
        return log.size
