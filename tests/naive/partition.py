"""A partition as a list of batches: everything else about it is found by going through all of them again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

COMMIT, ABORT = "commit", "abort"


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
    """What a producer did, by its batches."""

    epoch: int = -1
    next_sequence: int = 0
    open_since: int | None = None
    last: Written | None = None


@dataclass
class Partition:
    """The model."""

    batches: list[Written] = field(default_factory=list)
    start_offset: int = 0
    end_offset: int = 0

    def append(self, batch: Written) -> None:
        self.batches.append(batch)
        self.end_offset = batch.end_offset

    def truncate(self, offset: int) -> None:
        """Drop the batch that begins at the offset and all behind it."""
        self.batches = [batch for batch in self.batches if batch.end_offset <= offset]
        self.end_offset = offset

    def producers(self) -> dict[int, Producer]:
        found: dict[int, Producer] = {}
        for batch in self.batches:
            if batch.producer_id < 0:
                continue
            producer = found.setdefault(batch.producer_id, Producer())
            if batch.epoch != producer.epoch:
                producer.epoch, producer.next_sequence, producer.last = batch.epoch, 0, None
            if batch.marker is not None:
                producer.open_since = None
                continue
            producer.last, producer.next_sequence = batch, batch.sequence + len(batch.values)
            if batch.is_transactional and producer.open_since is None:
                producer.open_since = batch.base_offset
        return found

    def last_stable_offset(self) -> int:
        starts = [each.open_since for each in self.producers().values() if each.open_since is not None]
        return max(min([*starts, self.end_offset]), min(self.start_offset, self.end_offset))

    def records(self, start_offset: int, *, is_committed: bool) -> list[tuple[int, int, bytes]]:
        """(offset, timestamp, value) of what a consumer gets."""
        aborted, decided = set(), {}
        for batch in reversed(self.batches):
            if batch.marker is not None:
                decided[batch.producer_id] = batch.marker
            elif batch.is_transactional and decided.get(batch.producer_id) == ABORT:
                aborted.add(batch.base_offset)
        bound = self.last_stable_offset() if is_committed else self.end_offset
        return [
            (batch.base_offset + number, batch.timestamp, value)
            for batch in self.batches
            if not (is_committed and batch.base_offset in aborted)
            for number, value in enumerate(batch.values)
            if max(start_offset, self.start_offset) <= batch.base_offset + number < bound
        ]

    def first_at_or_after(self, timestamp: int) -> tuple[int, int] | None:
        """(timestamp, offset) of the first record or marker that is not older."""
        for batch in self.batches:
            if batch.timestamp >= timestamp and batch.end_offset > self.start_offset:
                return batch.timestamp, max(batch.base_offset, self.start_offset)
        return None
