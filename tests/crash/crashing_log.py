"""A log that is written on a lossy disk by several producers, and what it has promised before each system call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from logstore.disk.seam import Seam
from logstore.log.partition_log import PartitionLog
from logstore.log.state import Later
from tests.crash.lossy_disk import ALL_OUTCOMES, Left, LossyDisk, Survivor, write_survivor
from tests.support.dice import Dice
from tests.support.encoder import TRANSACTIONAL, Batch, Rec
from tests.support.logs import append_batch, open_partition_log

OFFSET_MAX = 2**63 - 1
OTHER_THREAD = ("none", "late", "never")  # who syncs segments that were closed: nobody beside, or somebody who may wait
CONFIG = {"internal.segment.bytes": "600", "index.interval.bytes": "100", "segment.index.bytes": "65536"}


class Promise(NamedTuple):
    """What holds should the next call not be made.

    Attributes:
        flushed: the offset up to which appends are acknowledged by a flush.
        recovery_point, end_offset: of the log.
        is_closed: the log was closed in order, and its directory marked so.
    """

    flushed: int
    recovery_point: int
    end_offset: int
    is_closed: bool = False


@dataclass
class Writer:
    """A producer, and what it sends next."""

    producer_id: int
    is_transactional: bool
    sequence: int = 0
    is_open: bool = False


class CrashingLog:
    """The log and its disk.

    Attributes:
        disk: with the directories that a crash may have left, and a `Promise` for each.
        content: the log's batches in the end.
        closed: what a crash behind an orderly close may have left.
    """

    def __init__(
        self,
        directory: Path,
        seed: str,
        *,
        other_thread: str = "none",
        config: Mapping[str, str] | None = None,
        draws: int = 1,
    ) -> None:
        """`other_thread`: of OTHER_THREAD; `config` is added to CONFIG; `draws`: as the disk has it."""
        directory.mkdir(parents=True)
        self.closed: list[Left] = []
        self.content = b""
        self._dice = Dice(seed)
        self._flushed = 0
        self._leader_epoch = 0
        self._writers = [Writer(-1, False), Writer(3, False), Writer(7, True), Writer(2**40, True)]
        self._log: PartitionLog | None = None
        self.disk = LossyDisk(directory, seed, outcomes=ALL_OUTCOMES, promise=self._promise, draws=draws)
        self._directory, self._config = directory, {**CONFIG, **(config or {})}
        self._other_thread, self._tasks = other_thread, list[Callable[[], None]]()
        self._log = self._open(0)

    def write(self, step_count: int) -> None:
        """Do that many steps, and close the log."""
        log = self._opened
        for _ in range(step_count):
            self._step(log)
            log = self._opened
        self.content = content(log)
        self._close(log)

    def _open(self, recovery_point: int) -> PartitionLog:
        later = None if self._other_thread == "none" else self._tasks.append
        return open_log(
            self._directory,
            self.disk,
            was_clean=True,
            recovery_point=recovery_point,
            config=self._config,
            flush_later=later,
        )

    def _close(self, log: PartitionLog) -> None:
        """In order; what the other thread has not come to is never done."""
        log.close()
        self._tasks.clear()
        self._flushed = end = log.log_end_offset
        promise = Promise(end, log.recovery_point, end, is_closed=True)
        call = self.disk.call_count
        self.closed += [Left(self.disk.survivor(outcome), call, outcome, promise) for outcome in ALL_OUTCOMES]

    @property
    def _opened(self) -> PartitionLog:
        assert self._log is not None
        return self._log

    def _promise(self) -> Promise:
        log = self._log
        return Promise(0, 0, 0) if log is None else Promise(self._flushed, log.recovery_point, log.log_end_offset)

    def _step(self, log: PartitionLog) -> None:
        kind, writer = self._dice.below(22), self._dice.choose(self._writers)
        if self._tasks and self._other_thread == "late" and self._dice.chance(30):
            self._tasks.pop(0)()
        if kind < 10:
            self._append(log, writer)
        elif kind < 14 and writer.is_open:
            is_commit = self._dice.chance(40)
            log.append_end_transaction(
                writer.producer_id,
                0,
                is_commit=is_commit,
                coordinator_epoch=0,
                transaction_version=0,
                leader_epoch=self._leader_epoch,
            )
            writer.is_open = False
        elif kind < 16:
            log.flush()
            self._flushed = log.log_end_offset
        elif kind < 18:
            log.roll()
        elif kind < 20:
            self._leader_epoch += 1
        else:
            self._close(log)
            self._log = self._open(log.recovery_point)
        if self._config.get("flush.messages") == "1":
            self._flushed = log.log_end_offset

    def _append(self, log: PartitionLog, writer: Writer) -> None:
        count, size = self._dice.choose((1, 2, 5)), self._dice.below(60)
        records = [Rec(b"k", b"v" * size, offset_delta=number) for number in range(count)]
        is_numbered = writer.producer_id >= 0
        batch = Batch(
            0,
            records,
            last_offset_delta=count - 1,
            flags=TRANSACTIONAL if writer.is_transactional else 0,
            producer_id=writer.producer_id,
            producer_epoch=0 if is_numbered else -1,
            base_sequence=writer.sequence if is_numbered else -1,
        )
        append_batch(log, batch, leader_epoch=self._leader_epoch)
        writer.sequence += count
        writer.is_open = writer.is_transactional


def open_log(
    directory: Path,
    seam: Seam,
    *,
    was_clean: bool,
    recovery_point: int = 0,
    config: Mapping[str, str] = CONFIG,
    flush_later: Later | None = None,
) -> PartitionLog:
    """The log as the only replica of its partition."""
    return open_partition_log(
        directory,
        config,
        was_clean=was_clean,
        recovery_point=recovery_point,
        seam=seam,
        requires_verification=False,
        flush_later=flush_later,
    )


def content(log: PartitionLog) -> bytes:
    return b"".join(segment.data.tobytes() for segment in log.state.segments)


def lay_out(survivor: Survivor, place: Path) -> Path:
    """A directory that a crash has left, below `place`."""
    return write_survivor(survivor, place / "t-0")
