"""A partition of interleaved transactions in several segments, drawn from a seed, and what a consumer may see of it."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from tests.support.dice import Dice
from tests.support.encoder import CONTROL, LOG_APPEND_TIME, SOME_TIME, TRANSACTIONAL, Batch, Rec

PRODUCER_IDS = (3, 4, 5, 1000, 2**40)
PLAIN_PRODUCER_ID = 77


@dataclass(frozen=True)
class Written:
    """A record as it was written, and whether its transaction was decided."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    is_aborted: bool = False


@dataclass
class TransactionalLog:
    """The bytes of each segment by base offset, and what is in them."""

    segments: dict[int, bytes] = field(default_factory=dict)
    records: list[Written] = field(default_factory=list)
    aborted: list[tuple[int, int]] = field(default_factory=list)  # (producer id, first offset), by their markers
    batch_offsets: list[int] = field(default_factory=list)
    last_stable_offset: int = 0
    end_offset: int = 0

    @property
    def committed(self) -> list[Written]:
        """What a read_committed consumer gets."""
        return [record for record in self.records if record.offset < self.last_stable_offset and not record.is_aborted]

    def files(self) -> dict[str, bytes]:
        """The `.log` files by name."""
        return {f"{base_offset:020}.log": content for base_offset, content in self.segments.items()}


class _Author:
    """Writes one log."""

    def __init__(self, dice: Dice, *, first_offset: int) -> None:
        self.dice = dice
        self.log = TransactionalLog()
        self.offset = first_offset
        self.base_offset = first_offset
        self.content: list[bytes] = []
        self.open: dict[int, list[int]] = {}  # producer id to the places of its records
        self.first_offsets: dict[int, int] = {}

    def write(self, batch_count: int, segment_count: int) -> TransactionalLog:
        for number in range(batch_count):
            if number and self.dice.below(batch_count) < segment_count - 1:
                self._roll()
            if self.dice.chance(7):
                self.offset += self.dice.between(1, 9)  # what a cleaner took away
            producer_id = self.dice.choose(PRODUCER_IDS)
            if producer_id in self.open and self.dice.chance(35):
                self._decide(producer_id)
            else:
                self._data(producer_id)
        self._roll()
        self.log.end_offset = self.offset
        self.log.last_stable_offset = min(self.first_offsets.values(), default=self.offset)
        return self.log

    def _roll(self) -> None:
        if self.content:
            self.log.segments[self.base_offset] = b"".join(self.content)
            self.base_offset, self.content = self.offset, []

    def _append(self, batch: Batch) -> None:
        self.log.batch_offsets.append(self.offset)
        self.content.append(batch.to_bytes())
        self.offset += batch.last_offset_delta + 1

    def _data(self, producer_id: int) -> None:
        count = self.dice.between(1, 6)
        is_transactional = self.dice.chance(70)
        holes = self.dice.chance(15)
        deltas = [delta for delta in range(count) if delta == count - 1 or not (holes and self.dice.chance(40))]
        if self.dice.chance(5):
            deltas = []  # all of it is cleaned away
        records = [self._record(delta) for delta in deltas]
        kind = TRANSACTIONAL if is_transactional else 0
        batch = Batch(
            self.offset,
            records,
            last_offset_delta=count - 1,
            codec=self.dice.choose((0, 0, 0, 1, 2, 3, 4)),
            flags=kind | (LOG_APPEND_TIME if self.dice.chance(10) else 0),
            base_timestamp=SOME_TIME + self.dice.below(100),
            max_timestamp=SOME_TIME + 1000 + self.dice.below(2000),
            producer_id=producer_id if is_transactional else self.dice.choose((-1, PLAIN_PRODUCER_ID)),
            producer_epoch=0 if is_transactional else -1,
            base_sequence=0 if is_transactional else -1,
        )
        if is_transactional:
            self.first_offsets.setdefault(producer_id, self.offset)
            places = self.open.setdefault(producer_id, [])
            places += range(len(self.log.records), len(self.log.records) + len(records))
        is_log_append = bool(batch.flags & LOG_APPEND_TIME)
        self.log.records += [
            Written(
                self.offset + record.offset_delta,
                batch.max_timestamp if is_log_append else batch.base_timestamp + record.timestamp_delta,
                record.key,
                record.value,
            )
            for record in records
        ]
        self._append(batch)

    def _record(self, delta: int) -> Rec:
        key = self.dice.choose((None, b"", self.dice.take(self.dice.below(5))))
        value = self.dice.choose((None, b"", self.dice.take(self.dice.below(40)), b"long" * self.dice.below(60)))
        headers = [(b"h", None)] if self.dice.chance(10) else []
        return Rec(key, value, headers, offset_delta=delta, timestamp_delta=self.dice.below(1000))

    def _decide(self, producer_id: int) -> None:
        is_abort = self.dice.chance(50)
        for place in self.open.pop(producer_id) if is_abort else ():
            written = self.log.records[place]
            self.log.records[place] = Written(written.offset, written.timestamp, written.key, written.value, True)
        self.open.pop(producer_id, None)
        first_offset = self.first_offsets.pop(producer_id)
        if is_abort:
            self.log.aborted.append((producer_id, first_offset))
        record = Rec(struct.pack(">hh", 0, 0 if is_abort else 1), struct.pack(">hi", 0, 0))
        time = SOME_TIME + self.dice.below(3000)
        self._append(
            Batch(
                self.offset,
                [record],
                flags=TRANSACTIONAL | CONTROL,
                base_timestamp=time,
                max_timestamp=time,
                producer_id=producer_id,
                producer_epoch=0,
            )
        )


def transactional_log(
    seed: str, *, batch_count: int = 120, segment_count: int = 4, first_offset: int = 0
) -> TransactionalLog:
    """Some `batch_count` batches in about `segment_count` segments; the same for the same seed."""
    return _Author(Dice(seed), first_offset=first_offset).write(batch_count, segment_count)
