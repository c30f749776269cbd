"""A log that is written, flushed, rolled and cleaned in any order is stopped before each system call.

Segments that were closed are synced by another thread late, or never. Of each key there is the newest value that was
committed and flushed, or a newer one; a tombstone that was flushed may be gone, and what it deleted does not come back.
Readers of committed data see nothing whose abort was flushed, and no flushed sequence is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

from logstore.disk.seam import Seam
from logstore.log.partition_log import PartitionLog
from logstore.model import FetchIsolation
from tests.crash.lossy_disk import LossyDisk
from tests.crash.points import DRAWS, Point
from tests.support.dice import Dice
from tests.support.encoder import SOME_TIME
from tests.support.logs import open_partition_log, records_of
from tests.support.seams import UnsyncedSeam

STEP_COUNT = 60
DELETE_RETENTION_MS = 10
CONFIG = {
    "cleanup.policy": "compact,delete",
    "delete.retention.ms": str(DELETE_RETENTION_MS),
    "file.delete.delay.ms": "0",
    "internal.segment.bytes": "700",
    "retention.ms": "-1",
}
KEYS = [b"a", b"b", b"c", b"d"]
PRODUCER_IDS = (-1, 3, 7, 2**40)
TRANSACTIONAL_IDS = PRODUCER_IDS[2:]
LATE_PERCENT = 30  # of the steps: the other thread has its turn


class Promise(NamedTuple):
    """What holds should the next call not be made.

    Attributes:
        flushed: the offset up to which a flush has returned.
        recovery_point, start_offset, end_offset: of the log.
    """

    flushed: int
    recovery_point: int
    start_offset: int
    end_offset: int


@dataclass
class Written:
    """A record; `marker_offset` is that of the marker of its transaction, None without one."""

    offset: int
    key: bytes
    value: bytes | None
    producer_id: int
    last_sequence: int
    marker_offset: int | None = None
    is_aborted: bool = False

    def is_decided(self, end_offset: int) -> bool:
        """Whether readers of a log that ends there see it."""
        if self.producer_id not in TRANSACTIONAL_IDS:
            return self.offset < end_offset
        return self.marker_offset is not None and self.marker_offset < end_offset and not self.is_aborted


@dataclass
class World:
    """The log, and what was written to it."""

    directory: Path
    dice: Dice
    is_late: bool
    is_deleted_from: bool
    records: list[Written] = field(default_factory=list)
    sequences: dict[int, int] = field(default_factory=dict)
    tasks: list[Callable[[], None]] = field(default_factory=list)
    flushed: int = 0
    now_ms: int = SOME_TIME
    cleaned: int | None = None
    log: PartitionLog | None = None

    def promise(self) -> Promise:
        log = self.log
        if log is None:
            return Promise(0, 0, 0, 0)
        return Promise(self.flushed, log.recovery_point, log.log_start_offset, log.log_end_offset)

    def step(self, log: PartitionLog) -> None:
        kind, producer_id = self.dice.below(20), self.dice.choose(PRODUCER_IDS)
        if self.is_late and self.tasks and self.dice.chance(LATE_PERCENT):
            self.tasks.pop(0)()
        if kind < 9:
            self.append(log, producer_id)
        elif kind < 13 and (open_records := self.open_records(producer_id)):
            self.end(log, open_records, is_commit=self.dice.chance(60))
        elif kind < 14:
            log.flush()
            self.flushed = log.log_end_offset
        elif kind < 16:
            log.roll()
        elif kind < 19:
            self.now_ms += self.dice.choose((0, 1, DELETE_RETENTION_MS + 1))
            self.cleaned = log.clean(log.cleanable(self.cleaned, self.now_ms), self.now_ms)
            log.remove_deleted_files(self.now_ms)
        elif not self.is_deleted_from:  # else producers would be forgotten, as by a broker that is started again
            log.state.failure.is_cut_off = True  # as by an interrupt: the next use opens it from its files
        else:
            log.increment_log_start_offset(self.dice.between(log.log_start_offset, log.high_watermark))
            log.delete_old_segments(self.now_ms)

    def append(self, log: PartitionLog, producer_id: int) -> None:
        count = self.dice.choose((1, 2, 4))
        keys: list[bytes | None] = [self.dice.choose(KEYS) for _ in range(count)]
        sequence = self.sequences.get(producer_id, 0)
        has_producer = producer_id >= 0
        first = log.log_end_offset
        values = [None if self.dice.chance(15) else b"%d" % (first + number) for number in range(count)]
        info = log.append_records(
            values,
            keys,
            producer_id=producer_id,
            producer_epoch=0 if has_producer else -1,
            base_sequence=sequence if has_producer else -1,
            is_transactional=producer_id in TRANSACTIONAL_IDS,
        )
        assert info.first_offset == first
        self.sequences[producer_id] = sequence + count
        for offset, (key, value) in enumerate(zip(keys, values, strict=True), first):
            assert key is not None
            self.records.append(Written(offset, key, value, producer_id, sequence + count - 1))

    def open_records(self, producer_id: int) -> list[Written]:
        own = [record for record in self.records if record.producer_id == producer_id]
        return [record for record in own if producer_id in TRANSACTIONAL_IDS and record.marker_offset is None]

    def end(self, log: PartitionLog, open_records: list[Written], *, is_commit: bool) -> None:
        offset = end_transaction(log, open_records[0].producer_id, is_commit=is_commit)
        for record in open_records:
            record.marker_offset, record.is_aborted = offset, not is_commit


def end_transaction(log: PartitionLog, producer_id: int, *, is_commit: bool) -> int:
    info = log.append_end_transaction(producer_id, 0, is_commit=is_commit, coordinator_epoch=0, transaction_version=0)
    return info.first_offset


def points(seed: str, place: Path) -> Iterator[Point]:
    dice, directory = Dice(seed), place / "t-0"
    directory.mkdir()
    world = World(directory, dice, is_late=dice.chance(50), is_deleted_from=dice.chance(50))
    disk = LossyDisk(directory, seed, promise=world.promise, draws=DRAWS)
    world.log = log = open_partition_log(
        directory,
        CONFIG,
        seam=disk,
        requires_verification=False,
        flush_later=world.tasks.append,
        now_ms=lambda: world.now_ms,
    )
    for _ in range(STEP_COUNT):
        world.step(log)
    log.flush()
    for left in disk.left:
        promise: Promise = left.promise
        yield Point.of(left, "t-0", reopen=partial(reopen, promise), look=partial(check, promise, world.records))


def reopen(promise: Promise, directory: Path, seam: Seam) -> PartitionLog:
    return open_partition_log(
        directory,
        CONFIG,
        was_clean=False,
        recovery_point=promise.recovery_point,
        seam=seam,
        requires_verification=False,
    )


def check(promise: Promise, written: list[Written], directory: Path, is_kept: bool) -> None:
    """Open what a crash has left as a store does, which knows of no decision, and compare it with what was written."""
    log = reopen(promise, directory, UnsyncedSeam())
    acknowledged = promise.end_offset if is_kept else promise.flushed
    # as in Kafka, no flush writes what was deleted: a checkpoint has the log start
    assert log.log_end_offset >= acknowledged or acknowledged <= promise.start_offset
    producers = {entry.producer_id: entry for entry in log.producer_entries()}
    for entry in producers.values():
        if entry.current_txn_first_offset is not None:
            end_transaction(log, entry.producer_id, is_commit=False)
    by_offset = {record.offset: record for record in written}
    newest: dict[bytes, int] = {}
    for found in records_of(log, isolation=FetchIsolation.READ_COMMITTED):
        record = by_offset[found.offset]
        assert (found.key, found.value) == (record.key, record.value)
        # a marker that no flush covers may be lost, and a later one decides in its place, as in Kafka
        assert not record.is_aborted or (record.marker_offset or 0) >= acknowledged
        newest[record.key] = found.offset
    for key in KEYS:
        own = [record for record in written if record.key == key and record.is_decided(acknowledged)]
        if own and own[-1].offset >= promise.start_offset:
            least = own[-1]
            assert newest.get(key, least.offset if least.value is None else -1) >= least.offset, (key, least, newest)
    for record in written:
        if record.producer_id >= 0 and promise.start_offset <= record.offset < acknowledged:
            batches = producers[record.producer_id].batches
            assert batches[-1].last_sequence >= record.last_sequence, record
    log.close()
