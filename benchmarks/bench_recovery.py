"""Partitions that were not closed, recovered, and many that were, opened and closed; beside Kafka's log.

Kafka recovers a log on one thread, ours on two from 4 MiB on: a row says on how many. That of one thread is pinned to
one processor, where a reader has no helper.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from benchmarks.floors import mapped
from benchmarks.logs import NAME, SEGMENT, opened, settings_of
from benchmarks.measured import Growth, Measured
from benchmarks.peers.warm_kafka import WarmKafka
from benchmarks.segments import write_segment
from benchmarks.sizes import KIB, MIB, scaled, steps
from logstore.columns.window_scan import PARALLEL_SIZE_MIN
from logstore.log.load.recover import recover_partition
from logstore.log.partition_log import PartitionLog

INDEX_SIZES = {".index": 10 * MIB, ".timeindex": 10 * MIB - 4}  # `segment.index.bytes` in whole entries
THREADS = {1: "one thread", 2: "two threads"}
ASKED_SIZE = scaled(256 * KIB, 1024 * MIB)


@dataclass(frozen=True)
class Crashed:
    """One segment, linked anew for each recovery; neither side changes a sound one.

    Without indexes Kafka reads it twice; with them, preallocated as a broker leaves them that dies, once.
    """

    segment: Path
    record_count: int
    has_indexes: bool = True

    @classmethod
    def written(cls, place: Path, size: int, *, has_indexes: bool = True) -> Crashed:
        """A new one."""
        return cls(place / SEGMENT, write_segment(place / SEGMENT, size), has_indexes)

    def partition(self, side: str) -> Path:
        """The directory that a side recovers."""
        return self.segment.parent / side / NAME

    def fresh(self, side: str) -> Path:
        """The partition as the crash left it."""
        directory = self.partition(side)
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        os.link(self.segment, directory / SEGMENT)
        for kind, index_size in INDEX_SIZES.items() if self.has_indexes else ():
            index = directory / f"{0:020d}{kind}"
            index.touch()
            os.truncate(index, index_size)
        return directory

    def made(self, side: str) -> list[bytes]:
        """What a recovery has written: indexes, snapshots, checkpoints."""
        return [path.read_bytes() for path in sorted(self.partition(side).iterdir()) if path.suffix != ".log"]


@contextlib.contextmanager
def one_processor() -> Iterator[None]:
    """This thread on one processor; where the system can do that."""
    if not hasattr(os, "sched_setaffinity"):
        pytest.skip("this system pins no thread to a processor")
    all_of_them = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(all_of_them)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_of_them)


def measure_recovery(
    measured: Measured,
    kafka: WarmKafka,
    crashed: Crashed,
    growth: Growth | None = None,
    *,
    is_pinned: bool = False,
) -> int:
    """Log end offsets are compared, and where Kafka ran the offset indexes; the number of records."""
    size = crashed.segment.stat().st_size
    thread_count = 1 if is_pinned or size < PARALLEL_SIZE_MIN else 2

    def recover() -> int:
        with one_processor() if is_pinned else contextlib.nullcontext():
            return recover_partition(str(crashed.partition("ours")), settings_of(was_clean=False)).log_end_offset

    def kafkas() -> float:
        directory = str(crashed.fresh("kafka"))
        return kafka.seconds(op="open", dirs=[directory], clean=False, expected_count=crashed.record_count)

    indexes = "with" if crashed.has_indexes else "without"
    log_end_offset = measured(
        recover,
        title=f"recovery of {size / MIB:.4g} MiB, not closed, {indexes} indexes, {THREADS[thread_count]}",
        size=size,
        count=crashed.record_count,
        prepare=lambda: crashed.fresh("ours"),
        peers={"Kafka": kafkas},
        floor=mapped(crashed.segment, thread_count),
        reads=[crashed.segment],
        growth=growth,
        hashed=lambda end: [end, *crashed.made("ours")],
    )
    assert log_end_offset == crashed.record_count > 0
    if crashed.partition("kafka").exists():
        ours, theirs = (crashed.partition(side) / f"{0:020d}.index" for side in ("ours", "kafka"))
        assert ours.read_bytes() == theirs.read_bytes()
    return crashed.record_count


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crashed]:
    """Of the size that was asked for."""
    place = tmp_path_factory.mktemp("crashed")
    yield Crashed.written(place, ASKED_SIZE)
    shutil.rmtree(place)


@pytest.mark.parametrize("threads", THREADS.values())
def test_recovery_of_a_crashed_log(measured: Measured, kafka: WarmKafka, asked: Crashed, threads: str) -> None:
    assert measure_recovery(measured, kafka, asked, is_pinned=threads == THREADS[1]) > 0


def test_recovery_without_indexes(measured: Measured, kafka: WarmKafka, tmp_path: Path) -> None:
    crashed = Crashed.written(tmp_path, scaled(256 * KIB, 256 * MIB), has_indexes=False)
    assert measure_recovery(measured, kafka, crashed) > 0


@pytest.mark.parametrize("size", steps(64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB))
def test_recovery_by_size(measured: Measured, kafka: WarmKafka, tmp_path: Path, size: int) -> None:
    growth = Growth("bytes of a segment", "recovery", size)
    assert measure_recovery(measured, kafka, Crashed.written(tmp_path, size), growth) > 0


class Closed:
    """Partitions of a record each, closed, and the logs of them that are open; Kafka has copies of its own."""

    def __init__(self, place: Path, partition_count: int) -> None:
        self.place = place
        self.directories = [place / "ours" / f"t-{number}" for number in range(partition_count)]
        (place / "ours").mkdir()
        self.logs: list[PartitionLog] = []
        for directory in self.directories:
            log = opened(directory)
            log.append_records([b"value"])
            log.close()
        shutil.copytree(place / "ours", place / "kafka")

    def open(self) -> list[int]:
        """The log end offsets."""
        self.logs = [opened(directory) for directory in self.directories]
        return [log.log_end_offset for log in self.logs]

    def close(self) -> list[int]:
        """The same, of those that were opened last."""
        for log in self.logs:
            log.close()
        return [log.log_end_offset for log in self.logs]

    def kafkas(self, kafka: WarmKafka, op: str) -> Callable[[], float]:
        """Seconds of all, opened or closed."""
        directories = [str(self.place / "kafka" / each.name) for each in self.directories]
        return lambda: kafka.seconds(op=op, dirs=directories, clean=True, expected_count=len(directories))


@pytest.mark.parametrize("partition_count", steps(1, 10, 100))
def test_opening_of_closed_partitions(
    measured: Measured, kafka: WarmKafka, tmp_path: Path, partition_count: int
) -> None:
    closed = Closed(tmp_path, partition_count)
    ends = measured(
        closed.open,
        title=f"{partition_count:,} closed partitions, opened",
        count=partition_count,
        unit="partitions",
        prepare=closed.close,
        peers={"Kafka": closed.kafkas(kafka, "open")},
        floor="few small files: nothing to measure against",
        growth=Growth("partitions", "open after a clean stop", partition_count),
    )
    assert ends == [1] * partition_count
    closed.close()


@pytest.mark.parametrize("partition_count", steps(1, 10, 100))
def test_closing_of_opened_partitions(
    measured: Measured, kafka: WarmKafka, tmp_path: Path, partition_count: int
) -> None:
    closed = Closed(tmp_path, partition_count)
    ends = measured(
        closed.close,
        title=f"{partition_count:,} opened partitions that nothing was written to, closed",
        count=partition_count,
        unit="partitions",
        prepare=closed.open,
        peers={"Kafka": closed.kafkas(kafka, "close")},
        floor="few small files: nothing to measure against",
        growth=Growth("partitions", "close", partition_count),
    )
    assert ends == [1] * partition_count
    assert all(opened(directory).log_end_offset == 1 for directory in closed.directories)
