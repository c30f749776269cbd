"""Plan and result of a recovery: a partition's offsets, segments, producers and repairs."""

from __future__ import annotations

from dataclasses import dataclass

from ...errors import DataDirectoryError
from ...folds.producer_state import ProducerEntry
from ..segment.log_segment import LogSegment
from ..segment.writable_folder import Repair
from .removals import Removal


@dataclass(frozen=True, slots=True)
class RecoveredSegment:
    """One recovered segment.

    Attributes:
        size: bytes of the `.log`.
        next_offset: behind its last batch; None if its index leads nowhere, which a clean start does not check.
        aborted_transactions: (producer id, first offset, last offset, last stable offset) of each.
    """

    base_offset: int
    size: int
    next_offset: int | None
    index_entry_count: int
    time_index_entry_count: int
    aborted_transactions: tuple[tuple[int, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class RecoveredLog:
    """One recovered partition, in the state in which a broker with one replica would continue.

    Attributes:
        topic_id: of `partition.metadata`; None without the file.
        high_watermark: the log end offset, as nothing is replicated.
        recovery_point: the first offset that is not known to be durable.
        leader_epochs: (epoch, start offset) of each.
        producers: by ascending id.
        repairs: changes in order.
        removals: bytes of logs that went.
    """

    topic: str
    partition: int
    path: str
    topic_id: str | None
    log_start_offset: int
    log_end_offset: int
    last_stable_offset: int
    high_watermark: int
    recovery_point: int
    segments: tuple[RecoveredSegment, ...]
    leader_epochs: tuple[tuple[int, int], ...]
    producers: tuple[ProducerEntry, ...]
    repairs: tuple[Repair, ...]
    removals: tuple[Removal, ...]


@dataclass(frozen=True, slots=True)
class RecoveryPlan:
    """What a recovery of a partition would do.

    Attributes:
        path: of the directory.
        removals: bytes of logs that would go.
        repairs: changes in order.
    """

    path: str
    removals: tuple[Removal, ...]
    repairs: tuple[Repair, ...]

    @property
    def readable(self) -> list[Removal]:
        """The removals with readable batches in them."""
        return [one for one in self.removals if one.batch_count]


def describe_segment(segment: LogSegment) -> RecoveredSegment:
    """Return the description of a segment."""
    index = segment.transaction_index
    columns = (index.producer_ids, index.first_offsets, index.last_offsets, index.last_stable_offsets)
    return RecoveredSegment(
        base_offset=segment.base_offset,
        size=segment.size,
        next_offset=_next_offset(segment),
        index_entry_count=segment.offset_index.entry_count,
        time_index_entry_count=segment.time_index.entry_count,
        aborted_transactions=tuple(zip(*(column.tolist() for column in columns), strict=True)),
    )


def _next_offset(segment: LogSegment) -> int | None:
    try:
        return segment.next_offset()
    except (ValueError, DataDirectoryError):
        return None  # an index that a clean start does not check leads nowhere
