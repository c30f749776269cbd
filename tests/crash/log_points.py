"""A log that is written is stopped before each system call; what was not synced is kept, lost, torn or reordered.

Opened again it has a beginning of what was appended: no batch is half there, nothing that was flushed is missing, and
epochs, producers, open transactions and what was aborted are those of the batches that are left. A producer that sends
its last batch again is told that it is there, and readers of committed data see what was committed and no more. The
same holds behind an orderly close, when nothing is recovered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from logstore.disk.seam import Seam
from logstore.log.partition_log import PartitionLog
from logstore.model import FetchIsolation
from tests.crash.crashing_log import OFFSET_MAX, OTHER_THREAD, CrashingLog, Promise, content, open_log
from tests.crash.points import DRAWS, Point
from tests.naive import batch as naive
from tests.support.dice import Dice
from tests.support.encoder import CONTROL, TRANSACTIONAL
from tests.support.logs import records_of
from tests.support.seams import UnsyncedSeam

STEP_COUNT = 25
MARKER_TYPE = slice(68, 70)  # of a batch's bytes
AFTER_OFFSET = 8  # of a batch's bytes; the offset is the log's
# what another thread is to sync may be missing, and what is behind it not: a gap, but never in what was flushed
WORKLOADS = [(thread, flushes) for flushes in ({}, {"flush.messages": "1"}) for thread in reversed(OTHER_THREAD)]


@dataclass
class Known:
    """What of the log's batches follows.

    Attributes:
        last_batches: of each producer the base offset, the last sequence and the bytes of its last batch with records.
        open_transactions: first offset by producer id.
        aborted: (producer id, first offset, offset of the marker) of each, in the order of the markers.
        records: (producer id, base offset, last offset) of each batch that has any.
        epochs: (epoch, start offset) of each leader.
    """

    last_batches: dict[int, tuple[int, int, bytes]] = field(default_factory=dict)
    open_transactions: dict[int, int] = field(default_factory=dict)
    aborted: list[tuple[int, int, int]] = field(default_factory=list)
    records: list[tuple[int, int, int]] = field(default_factory=list)
    epochs: list[tuple[int, int]] = field(default_factory=list)

    def committed_offsets(self) -> list[int]:
        """What readers of committed data see: nothing behind a transaction that is open, nothing aborted."""
        end_offset = min(self.open_transactions.values(), default=OFFSET_MAX)
        aborted = {
            base_offset
            for producer_id, base_offset, _ in self.records
            for other_id, first_offset, marker_offset in self.aborted
            if producer_id == other_id and first_offset <= base_offset < marker_offset
        }
        seen = [row for row in self.records if row[1] < end_offset and row[1] not in aborted]
        return [offset for _, base_offset, last_offset in seen for offset in range(base_offset, last_offset + 1)]

    def add(self, row: naive.Row, batch: bytes) -> None:
        if not self.epochs or self.epochs[-1][0] < row.leader_epoch:
            self.epochs.append((row.leader_epoch, row.base_offset))
        if row.attributes & CONTROL:
            first_offset = self.open_transactions.pop(row.producer_id)
            if batch[MARKER_TYPE] == b"\0\0":
                self.aborted.append((row.producer_id, first_offset, row.base_offset))
            return
        self.records.append((row.producer_id, row.base_offset, row.base_offset + row.last_offset_delta))
        if row.producer_id >= 0:
            last_sequence = row.base_sequence + row.last_offset_delta
            self.last_batches[row.producer_id] = (row.base_offset, last_sequence, batch)
            if row.attributes & TRANSACTIONAL:
                self.open_transactions.setdefault(row.producer_id, row.base_offset)


@lru_cache(maxsize=256)
def known_of(log: bytes) -> Known:
    known = Known()
    for row in naive.scan(log, 0, len(log)).rows:
        known.add(row, log[row.position : row.position + row.size])
    return known


def points(seed: str, place: Path) -> Iterator[Point]:
    """Write a log, whose full segments are synced at once, by another thread late, or by it never."""
    other_thread, config = Dice(seed).choose(WORKLOADS)
    crashing = CrashingLog(place / "t-0", seed, other_thread=other_thread, config=config, draws=DRAWS)
    crashing.write(STEP_COUNT)
    for left in (*crashing.disk.left, *crashing.closed):
        promise: Promise = left.promise
        if other_thread != "none" and left.outcome == "reordered" and not promise.is_closed:
            continue  # with zeros in a segment before one without indexes neither Kafka's load nor ours begins
        look = partial(check, promise, crashing.content, other_thread != "none")
        yield Point.of(left, "t-0", reopen=partial(reopen, promise), look=look)


def reopen(promise: Promise, directory: Path, seam: Seam) -> PartitionLog:
    """As after the crash that left the directory."""
    return open_log(directory, seam, was_clean=promise.is_closed, recovery_point=promise.recovery_point)


def check(promise: Promise, written: bytes, may_have_gap: bool, directory: Path, is_kept: bool) -> None:
    """Open what a crash has left, compare it with what was written, and send the last batches again."""
    log = reopen(promise, directory, UnsyncedSeam())
    found = content(log)
    if may_have_gap and not is_kept and not promise.is_closed and has_gap(found, log.log_end_offset):
        check_flushed(log, found, promise, written)
        return
    assert written.startswith(found)
    assert log.log_end_offset >= (promise.end_offset if is_kept else promise.flushed)
    known = known_of(found)
    assert log.state.epochs.entries == known.epochs
    sequences = {producer.producer_id: producer.batches[-1].last_sequence for producer in log.state.producers.state}
    assert sequences == {producer_id: last for producer_id, (_, last, _) in known.last_batches.items()}
    check_transactions(log, known)
    for base_offset, _, batch in known.last_batches.values():
        sent = np.frombuffer(bytes(AFTER_OFFSET) + batch[AFTER_OFFSET:], np.uint8)
        info = log.append_as_leader(sent, leader_epoch=max(log.state.epochs.entries)[0])
        assert (info.is_duplicate, info.first_offset) == (True, base_offset)
    assert content(log) == found
    log.close()


def has_gap(found: bytes, end_offset: int) -> bool:
    """Whether what another thread had not synced is missing before a segment that is there."""
    rows = naive.scan(found, 0, len(found)).rows
    ends = [row.base_offset + row.last_offset_delta + 1 for row in rows]
    return [*(row.base_offset for row in rows), end_offset] != [0, *ends]


def check_flushed(log: PartitionLog, found: bytes, promise: Promise, written: bytes) -> None:
    """As `check`, of what is acknowledged alone."""
    acknowledged = flushed_of(written, promise.flushed)
    assert found.startswith(acknowledged)
    assert log.log_end_offset >= promise.flushed
    committed = known_of(acknowledged).committed_offsets()
    assert committed_offsets(log)[: len(committed)] == committed
    log.close()


def flushed_of(whole: bytes, offset: int) -> bytes:
    return b"".join(
        whole[row.position : row.position + row.size]
        for row in naive.scan(whole, 0, len(whole)).rows
        if row.base_offset < offset
    )


def committed_offsets(log: PartitionLog) -> list[int]:
    return [record.offset for record in records_of(log, isolation=FetchIsolation.READ_COMMITTED)]


def check_transactions(log: PartitionLog, known: Known) -> None:
    first_unstable = min(known.open_transactions.values(), default=None)
    assert log.first_unstable_offset == first_unstable
    assert log.last_stable_offset == (log.log_end_offset if first_unstable is None else first_unstable)
    indexes = [segment.transaction_index for segment in log.state.segments]
    columns = [(index.producer_ids, index.first_offsets, index.last_offsets) for index in indexes]
    entries = [entry for three in columns for entry in zip(*(column.tolist() for column in three), strict=True)]
    assert entries == known.aborted
    assert committed_offsets(log) == known.committed_offsets()
