"""A log that is written is stopped before each system call; what was not synced is kept, lost, torn or reordered.

Opened again it has a beginning of what was appended: no batch is half there, nothing that was flushed is missing, and
epochs, producers, open transactions and what was aborted are those of the batches that are left. A producer that sends
its last batch again is told that it is there. `LOGSTORE_CRASH_CASES` (default 2) is the number of workloads,
`LOGSTORE_CRASH_SEED` makes a run again.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np

from logstore.log.partition_log import PartitionLog
from tests.crash.crashing_log import CrashingLog, Promise, content, lay_out, open_log
from tests.naive import batch as naive
from tests.naive.encoder import CONTROL, TRANSACTIONAL
from tests.recovery.comparison import UnsyncedSeam
from tests.seeds import seed_of

CASE_COUNT = int(os.environ.get("LOGSTORE_CRASH_CASES", "2"))
SEED = seed_of("CRASH")
STEP_COUNT = 25
MARKER_TYPE = slice(68, 70)  # of a batch's bytes
AFTER_OFFSET = 8  # of a batch's bytes; the offset is the log's


@dataclass
class Known:
    """What of the log's batches follows.

    Attributes:
        last_batches: of each producer the base offset, the last sequence and the bytes of its last batch with records.
        open_transactions: first offset by producer id.
        aborted: (producer id, first offset, offset of the marker) of each, in the order of the markers.
        epochs: (epoch, start offset) of each leader.
    """

    last_batches: dict[int, tuple[int, int, bytes]] = field(default_factory=dict)
    open_transactions: dict[int, int] = field(default_factory=dict)
    aborted: list[tuple[int, int, int]] = field(default_factory=list)
    epochs: list[tuple[int, int]] = field(default_factory=list)

    def add(self, row: naive.Row, batch: bytes) -> None:
        if not self.epochs or self.epochs[-1][0] < row.leader_epoch:
            self.epochs.append((row.leader_epoch, row.base_offset))
        if row.attributes & CONTROL:
            first_offset = self.open_transactions.pop(row.producer_id)
            if batch[MARKER_TYPE] == b"\0\0":
                self.aborted.append((row.producer_id, first_offset, row.base_offset))
        elif row.producer_id >= 0:
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


def check(directory: Path, promise: Promise, versions: list[bytes], *, is_kept: bool) -> int:
    """Open what a crash has left; how many batches were sent again."""
    log = open_log(directory, UnsyncedSeam(), was_clean=False, recovery_point=promise.recovery_point)
    found = content(log)
    assert any(whole.startswith(found) for whole in versions[: promise.version_count])
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


def check_transactions(log: PartitionLog, known: Known) -> None:
    first_unstable = min(known.open_transactions.values(), default=None)
    assert log.first_unstable_offset == first_unstable
    assert log.last_stable_offset == (log.log_end_offset if first_unstable is None else first_unstable)
    indexes = [segment.transaction_index for segment in log.segments]
    columns = [(index.producer_ids, index.first_offsets, index.last_offsets) for index in indexes]
    entries = [entry for three in columns for entry in zip(*(column.tolist() for column in three), strict=True)]
    assert entries == known.aborted


def test_what_was_flushed_survives_and_the_rest_is_whole(tmp_path: Path) -> None:
    outcomes: Counter[str] = Counter()
    sent_again = 0
    for number in range(CASE_COUNT):
        crashing = CrashingLog(tmp_path / str(number) / "t-0", f"{SEED} {number}")
        crashing.write(STEP_COUNT)
        for survivor, (call, outcome) in crashing.disk.survivors.items():
            place = tmp_path / "left"
            try:
                directory = lay_out(survivor, place)
                promise = crashing.promises[call]
                sent_again += check(directory, promise, crashing.versions, is_kept=outcome == "kept")
            except Exception as error:
                error.add_note(f"LOGSTORE_CRASH_SEED={SEED}, workload {number}, before call {call}, {outcome}")
                raise
            shutil.rmtree(place)
            outcomes[outcome] += 1
    assert "kept" in outcomes
    assert len(outcomes) >= 2  # a directory that two crashes leave counts for the first of them
    assert outcomes.total() >= 20 * CASE_COUNT
    assert sent_again >= 10 * CASE_COUNT
