"""A partition as a list of batches: everything else about it is found by going through all of them again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

COMMIT, ABORT = "commit", "abort"
REMEMBERED_COUNT = 5  # batches of a producer that are recognized when they come again


@dataclass(frozen=True)
class Written:
    """A batch as it stands in the log, or a marker."""

    base_offset: int
    timestamp: int
    values: Sequence[bytes] = ()
    producer_id: int = -1
    epoch: int = -1
    sequence: int = -1
    is_transactional: bool = False
    marker: str | None = None

    @property
    def end_offset(self) -> int:
        return self.base_offset + max(len(self.values), 1)


@dataclass
class Producer:
    """What a producer did, by its batches.

    Attributes:
        batches: of its epoch, without markers.
        known_from: who reads the log from this offset on knows its epoch and its next sequence.
    """

    epoch: int = -1
    next_sequence: int = 0
    open_since: int | None = None
    batches: list[Written] = field(default_factory=list)
    known_from: int = -1


@dataclass
class Partition:
    """The model.

    Attributes:
        batches: all that were not cut off, also those below the start.
    """

    batches: list[Written] = field(default_factory=list)
    start_offset: int = 0
    end_offset: int = 0
    high_watermark: int = 0

    def append(self, batch: Written) -> None:
        self.batches.append(batch)
        self.end_offset = batch.end_offset
        self.high_watermark = self.end_offset

    def begin_anew(self, offset: int) -> None:
        """Drop all; the log starts and ends at the offset."""
        self.batches = []
        self.start_offset = self.end_offset = self.high_watermark = offset

    def producers(self, end_offset: int | None = None) -> dict[int, Producer]:
        """As of the batches that begin below the offset."""
        found: dict[int, Producer] = {}
        for batch in self.batches:
            if batch.producer_id < 0 or (end_offset is not None and batch.base_offset >= end_offset):
                continue
            producer = found.setdefault(batch.producer_id, Producer())
            if batch.epoch != producer.epoch:
                producer.epoch, producer.next_sequence, producer.batches = batch.epoch, 0, []
                producer.known_from = batch.base_offset
            if batch.marker is not None:
                producer.open_since = None
                continue
            producer.batches.append(batch)
            producer.next_sequence = batch.sequence + len(batch.values)
            producer.known_from = batch.base_offset
            if batch.is_transactional and producer.open_since is None:
                producer.open_since = batch.base_offset
        return found

    def has_open_below_start(self, end_offset: int | None = None) -> bool:
        """Whether a log cut at the offset would have an open transaction of which a part is below its start."""
        start = self.start_offset if end_offset is None else min(self.start_offset, end_offset)
        opened = [each.open_since for each in self.producers(end_offset).values() if each.open_since is not None]
        return any(offset < start for offset in opened)

    def last_stable_offset(self) -> int:
        """The high watermark, or the batch with which a transaction begins that was not decided below it."""
        producers = self.producers(self.high_watermark).values()
        starts = [each.open_since for each in producers if each.open_since is not None]
        if not starts:
            return self.high_watermark
        first = max(min(starts), self.start_offset)
        batches = (batch.base_offset for batch in self.batches if batch.end_offset > first)
        return min(next(batches, self.end_offset), self.high_watermark)

    def records(self, start_offset: int, end_offset: int, *, is_committed: bool) -> list[tuple[int, int, bytes]]:
        """(offset, timestamp, value) of what a consumer gets below the end."""
        aborted, decided = set(), {}
        for batch in reversed(self.batches):
            if batch.marker is not None:
                decided[batch.producer_id] = batch.marker
            elif batch.is_transactional and decided.get(batch.producer_id) == ABORT:
                aborted.add(batch.base_offset)
        return [
            (batch.base_offset + number, batch.timestamp, value)
            for batch in self.batches
            if not (is_committed and batch.base_offset in aborted)
            for number, value in enumerate(batch.values)
            if max(start_offset, self.start_offset) <= batch.base_offset + number < end_offset
        ]

    def first_at_or_after(self, timestamp: int, segment_bases: Sequence[int]) -> tuple[int, int] | None:
        """(timestamp, offset) of the first record or marker that is not older, in the one segment that is searched.

        It is the first with such a batch, even if all those of it are below the log's start, as in Kafka.
        """
        for base, next_base in pairwise([*segment_bases, self.end_offset + 1]):
            batches = [
                batch
                for batch in self.batches
                if base <= batch.base_offset < next_base and batch.timestamp >= timestamp
            ]
            if batches:
                found = next((batch for batch in batches if batch.end_offset > self.start_offset), None)
                offset = -1 if found is None else max(found.base_offset, self.start_offset)
                return None if found is None or offset >= self.high_watermark else (found.timestamp, offset)
        return None
