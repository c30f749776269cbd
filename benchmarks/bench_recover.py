"""Partitions that were not closed, recovered; verified; producer snapshots.

Beside Kafka's log, which recovers on one thread, ours on two from 4 MiB on: a row says on how many. That of one thread
is pinned to one processor, where a reader has no helper. The least that a proof takes is to check every byte.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers.kafka import HeldLog, WarmKafka
from benchmarks.support.data import KIB, MIB, SEGMENT, scaled, steps, values, write_producers, write_segment
from benchmarks.support.floors import library, mapped
from benchmarks.support.logs import NAME, opened, settings_of, twin
from benchmarks.support.measure import Floor, Growth, Measured
from logstore.audit.evidence import Evidence
from logstore.audit.partition import open_partition
from logstore.audit.verify import verify_partition
from logstore.clock import now_ms
from logstore.disk.side_files import read_producer_snapshot
from logstore.layout.producer_snapshot import ENTRY_DTYPE, ENTRY_SIZE
from logstore.layout.producer_snapshot import HEADER_SIZE as SNAPSHOT_HEADER_SIZE
from logstore.log.load.recover import recover_partition
from logstore.view.parallel_scan import PARALLEL_SIZE_MIN

INDEX_SIZES = {".index": 10 * MIB, ".timeindex": 10 * MIB - 4}  # `segment.index.bytes` in whole entries
THREADS = {1: "one thread", 2: "two threads"}
LARGE_SIZE = scaled(256 * KIB, 1024 * MIB)
VERIFIED_SIZE = scaled(4 * MIB, 1024 * MIB)
BATCH_SIZES = [1024, 16 * 1024]


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
        """Write a new one of about `size` bytes."""
        return cls(place / SEGMENT, write_segment(place / SEGMENT, size), has_indexes)

    def partition(self, side: str) -> Path:
        """Return the directory that a side recovers."""
        return self.segment.parent / side / NAME

    def fresh(self, side: str) -> Path:
        """Make the partition as the crash left it; return its directory."""
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
        """Return what a recovery has written: indexes, snapshots, checkpoints."""
        return [path.read_bytes() for path in sorted(self.partition(side).iterdir()) if path.suffix != ".log"]


@contextlib.contextmanager
def one_processor() -> Iterator[None]:
    """Pin this thread to one processor; skip the test where the system cannot."""
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
    """Measure a recovery and return the number of records; where Kafka ran, compare the offset indexes."""
    size = crashed.segment.stat().st_size
    thread_count = 1 if is_pinned or size < PARALLEL_SIZE_MIN else 2

    def recover() -> int:
        with one_processor() if is_pinned else contextlib.nullcontext():
            return recover_partition(str(crashed.partition("ours")), settings_of(was_clean=False))[0].log_end_offset

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
def crashed_log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crashed]:
    """Yield a crashed log of a GiB."""
    place = tmp_path_factory.mktemp("crashed")
    yield Crashed.written(place, LARGE_SIZE)
    shutil.rmtree(place)


@pytest.mark.parametrize("threads", THREADS.values())
def test_recover_crashed_log(measured: Measured, kafka: WarmKafka, crashed_log: Crashed, threads: str) -> None:
    assert measure_recovery(measured, kafka, crashed_log, is_pinned=threads == THREADS[1]) > 0


def test_recover_without_indexes(measured: Measured, kafka: WarmKafka, tmp_path: Path) -> None:
    crashed = Crashed.written(tmp_path, scaled(256 * KIB, 256 * MIB), has_indexes=False)
    assert measure_recovery(measured, kafka, crashed) > 0


@pytest.mark.parametrize("size", steps(64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB))
def test_recover_by_size(measured: Measured, kafka: WarmKafka, tmp_path: Path, size: int) -> None:
    growth = Growth("bytes of a segment", "recovery", size)
    assert measure_recovery(measured, kafka, Crashed.written(tmp_path, size), growth) > 0


@pytest.fixture(scope="module", params=BATCH_SIZES)
def sound_partition(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield a closed partition of one segment with its indexes."""
    directory = tmp_path_factory.mktemp(f"data{request.param}") / "orders-0"
    directory.mkdir()
    log = directory / SEGMENT
    write_segment(log, VERIFIED_SIZE, batch_size=request.param)
    recover_partition(str(directory), settings_of(was_clean=False))  # which makes its indexes
    yield directory
    shutil.rmtree(directory)


def figures_of(read: Evidence) -> tuple[int, ...]:
    """Return what a pass has read."""
    ends = read.log_end_offset, read.is_end_known, read.producer_id
    return read.segment_count, read.batch_count, read.size, *ends


def test_verify(measured: Measured, sound_partition: Path, request: pytest.FixtureRequest) -> None:
    batch_size = request.node.callspec.params["sound_partition"]
    verified = measured(
        lambda: verify_partition(open_partition(str(sound_partition))),
        title=f"verify of {VERIFIED_SIZE / MIB:.4g} MiB, batches of {batch_size:,} bytes, two threads",
        size=VERIFIED_SIZE,
        floor=mapped(sound_partition / SEGMENT, 2),
        reads=sound_partition.glob("*.log"),
        hashed=lambda verified: [*map(str, verified.findings), *figures_of(verified.evidence)],
    )
    assert verified.findings == ()
    assert verified.evidence.size > VERIFIED_SIZE // 2


def writing_and_syncing(path: Path, size: int) -> Floor:
    """Write and sync a new file of `size` bytes, which no snapshot can avoid."""
    content = bytes(size)

    def write_and_sync() -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(descriptor, content)
        os.fsync(descriptor)
        os.close(descriptor)

    return library("write and fsync", write_and_sync)


def lasting(path: Path, appending_id: int) -> bytes:
    """Return what of a snapshot is the same in every run: all but times and the appending producer."""
    read_producer_snapshot(str(path))  # its checksum is right
    entries = np.frombuffer(path.read_bytes(), ENTRY_DTYPE, offset=SNAPSHOT_HEADER_SIZE).copy()
    entries["timestamp"] = 0
    return entries[entries["producer_id"] != appending_id].tobytes()


@pytest.mark.parametrize("producer_count", steps(1, 1000, 10_000, 100_000, 300_000))
def test_snapshot(measured: Measured, kafka: WarmKafka, tmp_path: Path, producer_count: int) -> None:
    directory = tmp_path / "ours" / NAME
    directory.mkdir(parents=True)
    write_producers(directory / SEGMENT, producer_count, is_transactional=False, now_ms=now_ms())
    kafkas = HeldLog(kafka, twin(directory), producer_count)
    log = opened(directory, was_clean=False)
    sequence = 0

    def append() -> None:  # a snapshot is only written when the log has gone on
        nonlocal sequence
        log.append_records(values(1), producer_id=producer_count, producer_epoch=0, base_sequence=sequence)
        sequence += 1

    def snapshot() -> Path:
        log.state.producers.take_snapshot()
        return directory / f"{log.log_end_offset:020d}.snapshot"

    size = SNAPSHOT_HEADER_SIZE + ENTRY_SIZE * (producer_count + 1)
    written = measured(
        snapshot,
        title=f"snapshot of {producer_count:,} producers",
        size=size,
        count=producer_count,
        unit="producers",
        prepare=append,
        peers={"Kafka": lambda: kafkas.seconds("snapshot")},
        floor=writing_and_syncing(tmp_path / "floor", size),
        growth=Growth("producers", "snapshot", producer_count),
        hashed=lambda path: lasting(path, producer_count),
    )
    kafkas.release()
    assert written.stat().st_size == size
    log.close()
