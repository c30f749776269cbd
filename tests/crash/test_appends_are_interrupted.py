"""A log that is written is stopped before each system call; what was not synced is kept, lost, torn or reordered.

Opened again it has a beginning of what was appended: no batch is half there, nothing that was flushed is missing, and
epochs, producers, open transactions and what was aborted are those of the batches that are left. A producer that sends
its last batch again is told that it is there, and readers of committed data see what was committed and no more. The
same holds behind an orderly close, when nothing is recovered. `LOGSTORE_CRASH_CASES` is the number of
workloads, `LOGSTORE_CRASH_SEED` makes a run again.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np

from logstore.log.partition_log import PartitionLog
from logstore.model import FetchIsolation
from tests.crash.crashing_log import OFFSET_MAX, OTHER_THREAD, CrashingLog, Promise, content, lay_out, open_log
from tests.crash.lossy_disk import ALL_OUTCOMES, Survivor
from tests.naive import batch as naive
from tests.support.encoder import CONTROL, TRANSACTIONAL
from tests.support.sampling import case_count, seed_of
from tests.support.seams import UnsyncedSeam

CASE_COUNT = case_count("LOGSTORE_CRASH_CASES", sample=2, whole=6)
SEED = seed_of("CRASH")
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


def check(directory: Path, promise: Promise, written: bytes, *, is_kept: bool, may_have_gap: bool) -> int:
    """Open what a crash has left; how many batches were sent again."""
    seam, was_clean = UnsyncedSeam(), promise.is_closed
    log = open_log(directory, seam, was_clean=was_clean, recovery_point=promise.recovery_point)
    found = content(log)
    if may_have_gap and not is_kept and not promise.is_closed and has_gap(found, log.log_end_offset):
        check_flushed(log, found, promise, written)
        return 0
    assert written.startswith(found)
    assert log.log_end_offset >= (promise.end_offset if is_kept else promise.flushed)
    known = known_of(found)
    assert log.epochs.entries == known.epochs
    sequences = {producer.producer_id: producer.batches[-1].last_sequence for producer in log.producers.state}
    assert sequences == {producer_id: last for producer_id, (_, last, _) in known.last_batches.items()}
    check_transactions(log, known)
    for base_offset, _, batch in known.last_batches.values():
        sent = np.frombuffer(bytes(AFTER_OFFSET) + batch[AFTER_OFFSET:], np.uint8)
        info = log.append_as_leader(sent, leader_epoch=max(log.epochs.entries)[0])
        assert (info.is_duplicate, info.first_offset) == (True, base_offset)
    assert content(log) == found
    log.close()
    return len(known.last_batches)


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
    chunks = log.records(isolation=FetchIsolation.READ_COMMITTED).chunks()
    return [record.offset for chunk in chunks for record in chunk.to_records()]


def check_transactions(log: PartitionLog, known: Known) -> None:
    first_unstable = min(known.open_transactions.values(), default=None)
    assert log.first_unstable_offset == first_unstable
    assert log.last_stable_offset == (log.log_end_offset if first_unstable is None else first_unstable)
    indexes = [segment.transaction_index for segment in log.segments]
    columns = [(index.producer_ids, index.first_offsets, index.last_offsets) for index in indexes]
    entries = [entry for three in columns for entry in zip(*(column.tolist() for column in three), strict=True)]
    assert entries == known.aborted
    assert committed_offsets(log) == known.committed_offsets()


def all_left(crashing: CrashingLog) -> Iterator[tuple[Survivor, str, Promise, str]]:
    """What a crash may have left, its outcome, what holds then, and when it was."""
    for survivor, (call, outcome) in crashing.disk.survivors.items():
        yield survivor, outcome, crashing.promises[call], f"before call {call}"
    for number, (survivor, outcome, promise) in enumerate(crashing.closed):
        yield survivor, outcome, promise, f"behind close {number // len(ALL_OUTCOMES)}"


def test_flushed_batches_survive_and_the_rest_is_whole(tmp_path: Path) -> None:
    outcomes: Counter[tuple[str, bool]] = Counter()
    sent_again = 0
    for number in range(CASE_COUNT):
        other_thread, config = WORKLOADS[number % len(WORKLOADS)]
        seed = f"{SEED} {number}"
        crashing = CrashingLog(tmp_path / str(number) / "t-0", seed, other_thread=other_thread, config=config)
        crashing.write(STEP_COUNT)
        for survivor, outcome, promise, when in all_left(crashing):
            if other_thread != "none" and outcome == "reordered" and not promise.is_closed:
                continue  # with zeros in a segment before one without indexes neither Kafka's load nor ours begins
            place = tmp_path / "left"
            try:
                directory = lay_out(survivor, place)
                is_kept, may_have_gap = outcome == "kept", other_thread != "none"
                sent_again += check(directory, promise, crashing.content, is_kept=is_kept, may_have_gap=may_have_gap)
            except Exception as error:
                error.add_note(f"LOGSTORE_CRASH_SEED={SEED}, workload {number}, {when}, {outcome}")
                raise
            shutil.rmtree(place)
            outcomes[outcome, promise.is_closed] += 1
    assert ("kept", False) in outcomes
    assert len(outcomes) >= 2 + len(ALL_OUTCOMES)  # a directory that two crashes leave counts for the first of them
    assert outcomes.total() >= 20 * CASE_COUNT
    assert sent_again >= 10 * CASE_COUNT
