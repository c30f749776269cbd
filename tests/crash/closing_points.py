"""The power fails beside and behind an orderly close of a store whose thread is busy: what was flushed is as it was.

Transactions are written, flushed and rolled away while housekeeping never comes to what it is to sync; checkpoints are
written in between. After each loss readers of committed data see first what was committed and flushed, and nothing that
was aborted and flushed.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from logstore.client.store import Store, open_store
from logstore.disk.seam import Seam
from logstore.layout.offset_checkpoint import RECOVERY_POINT_FILE_NAME
from logstore.log.partition_log import PartitionLog
from logstore.model import FetchIsolation
from tests.crash.lossy_disk import OUTCOMES, Left, LossyDisk
from tests.crash.points import DRAWS, Point
from tests.support.dice import Dice
from tests.support.logs import records_of
from tests.support.seams import UnsyncedSeam

STEP_COUNT = 12
NOW = 1_700_000_000_000
CONFIG = {"transaction.partition.verification.enable": False, "log.cleaner.enable": False}
PRODUCER_ID = 7


@dataclass
class Run:
    """What was written.

    Attributes:
        ended: values of transactions in order, and whether they were committed.
        acknowledged: how many of them a flush, or the close, has acknowledged by now.
    """

    ended: list[tuple[bytes, bool]] = field(default_factory=list)
    acknowledged: int = 0
    sequence: int = 0

    def write(self, log: PartitionLog, number: int, *, is_commit: bool) -> None:
        values: list[bytes | None] = [b"%d" % number] * 2
        log.append_records(
            values, producer_id=PRODUCER_ID, producer_epoch=0, base_sequence=self.sequence, is_transactional=True
        )
        self.sequence += len(values)
        log.append_end_transaction(PRODUCER_ID, 0, is_commit=is_commit, coordinator_epoch=0, transaction_version=0)
        self.ended += [(b"%d" % number, is_commit)] * len(values)

    def committed(self, count: int) -> list[bytes]:
        return [value for value, is_commit in self.ended[:count] if is_commit]


def opened(root: Path, seam: Seam) -> Store:
    return open_store(str(root), config=CONFIG, now_ms=lambda: NOW, progress=None, seam=seam)


def keep_busy(store: Store) -> None:
    """Let the store's thread do one thing until the store is closed."""
    timers, is_busy = store.directory._timers, threading.Event()

    def wait() -> None:
        is_busy.set()
        while not timers.is_stopped:
            time.sleep(0.001)

    timers.run_soon(wait)
    is_busy.wait()


def points(seed: str, place: Path) -> Iterator[Point]:
    """Work on a store, and close it; each batch is flushed or some are."""
    root = place / "store"
    root.mkdir()
    disk, run = worked(root, seed, flush_messages=Dice(seed).choose((1, 2**63 - 1)))
    disk.left += [Left(disk.survivor(outcome), disk.call_count, outcome, run.acknowledged) for outcome in OUTCOMES]
    for left in disk.left:
        yield Point.of(left, "store", reopen=reopen, look=partial(check, run, left.promise))


def reopen(root: Path, seam: Seam) -> None:
    """As after a power failure, and close it in order."""
    opened(root, seam).close()


def worked(root: Path, seed: str, *, flush_messages: int) -> tuple[LossyDisk, Run]:
    """A run of a store up to the end of its close."""
    run, dice = Run(), Dice(seed)
    disk = LossyDisk(root, seed, promise=lambda: run.acknowledged, draws=DRAWS)
    store = opened(root, disk)
    keep_busy(store)
    store.create_topic("orders", 1, {"flush.messages": flush_messages, "index.interval.bytes": 0})
    log = store.log("orders", 0)
    for number in range(STEP_COUNT):
        run.write(log, number, is_commit=dice.chance(50) if number > 1 else number == 0)  # both in every run
        if dice.chance(50):
            log.flush()
        if log.recovery_point == log.log_end_offset:
            run.acknowledged = len(run.ended)
        if dice.chance(50):
            log.roll()
        if dice.chance(30):
            store.directory._housekeeping.checkpoint(RECOVERY_POINT_FILE_NAME)
    store.close()
    run.acknowledged = len(run.ended)
    return disk, run


def check(run: Run, acknowledged: int, root: Path, _: bool) -> None:
    with opened(root, UnsyncedSeam()) as store:
        if "orders" not in store.topics:
            assert not acknowledged
            return
        records = records_of(store.log("orders", 0), isolation=FetchIsolation.READ_COMMITTED)
    values = [record.value for record in records]
    committed = run.committed(acknowledged)
    assert values[: len(committed)] == committed
    assert not set(values) & {value for value, is_commit in run.ended[:acknowledged] if not is_commit}
