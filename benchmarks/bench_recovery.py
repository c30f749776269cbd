"""Partitions that were not closed, recovered, and many that were, opened; beside Kafka's log."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from benchmarks.floors import reading_file
from benchmarks.logs import NAME, SEGMENT, opened, settings_of
from benchmarks.measured import Growth, Measured, Side
from benchmarks.peers.warm_kafka import WarmKafka
from benchmarks.segments import write_segment
from benchmarks.sizes import KIB, MIB, scaled, steps
from logstore.log.recover import recover_partition

KAFKA_PARTITION_COUNT_MAX = 100
INDEX_SIZES = {".index": 10 * MIB, ".timeindex": 10 * MIB - 4}  # `segment.index.bytes` in whole entries


class Crashed:
    """One segment, linked anew for each recovery; neither side changes a sound one.

    Without indexes Kafka reads it twice; with them, preallocated as a broker leaves them that dies, once.
    """

    def __init__(self, place: Path, size: int, *, has_indexes: bool = False) -> None:
        self.place = place
        self.has_indexes = has_indexes
        self.segment = place / SEGMENT
        self.record_count = write_segment(self.segment, size)

    def fresh(self, side: str) -> Path:
        """The partition as the crash left it."""
        directory = self.place / side / NAME
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        os.link(self.segment, directory / SEGMENT)
        for kind, index_size in INDEX_SIZES.items() if self.has_indexes else ():
            index = directory / f"{0:020d}{kind}"
            index.touch()
            os.truncate(index, index_size)
        return directory


def measure_recovery(
    measured: Measured,
    kafka: WarmKafka,
    place: Path,
    size: int,
    growth: Growth | None = None,
    *,
    has_indexes: bool = False,
) -> int:
    """Log end offsets are compared; the number of records is returned when they are right."""
    crashed = Crashed(place, size, has_indexes=has_indexes)

    def kafkas() -> float:
        directory = str(crashed.fresh("kafka"))
        return kafka.seconds(op="open", dir=directory, clean=False, expected_count=crashed.record_count)

    log_end_offset = measured(
        lambda: recover_partition(str(place / "ours" / NAME), settings_of(was_clean=False)).log_end_offset,
        title=f"recovery of {size / MIB:.4g} MiB, not closed{', with indexes' if has_indexes else ''}",
        size=size,
        count=crashed.record_count,
        prepare=lambda: crashed.fresh("ours"),
        peers={"Kafka": kafkas},
        floor=reading_file(crashed.segment),
        growth=growth,
    )
    assert log_end_offset == crashed.record_count
    return log_end_offset


def test_recovery_of_a_crashed_log(measured: Measured, kafka: WarmKafka, tmp_path: Path) -> None:
    assert measure_recovery(measured, kafka, tmp_path, scaled(256 * KIB, 1024 * MIB)) > 0


def test_recovery_of_a_crashed_log_with_indexes(measured: Measured, kafka: WarmKafka, tmp_path: Path) -> None:
    assert measure_recovery(measured, kafka, tmp_path, scaled(256 * KIB, 256 * MIB), has_indexes=True) > 0


@pytest.mark.parametrize("size", steps(64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB))
def test_recovery_by_size(measured: Measured, kafka: WarmKafka, tmp_path: Path, size: int) -> None:
    growth = Growth("bytes of a segment", "recovery", size)
    assert measure_recovery(measured, kafka, tmp_path, size, growth) > 0


@pytest.mark.parametrize("partition_count", steps(1, 10, 100))
def test_opening_of_closed_partitions(
    measured: Measured, kafka: WarmKafka, tmp_path: Path, partition_count: int
) -> None:
    directories = [tmp_path / f"t-{number}" for number in range(partition_count)]
    for directory in directories:
        log = opened(directory)
        log.append_records([b"value"])
        log.close()

    def open_all() -> int:
        logs = [opened(directory) for directory in directories]
        end = sum(log.log_end_offset for log in logs)
        for log in logs:
            log.close()
        return end

    def kafkas() -> float:
        return sum(kafka.seconds(op="open", dir=str(each), clean=True, expected_count=1) for each in directories)

    peers: dict[str, Side] = {"Kafka": kafkas} if partition_count <= KAFKA_PARTITION_COUNT_MAX else {}
    found = measured(
        open_all,
        title=f"{partition_count:,} closed partitions, opened and closed",
        count=partition_count,
        unit="partitions",
        peers=peers,
        growth=Growth("partitions", "open after a clean stop", partition_count),
    )
    assert found == partition_count
