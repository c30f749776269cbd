"""The producer snapshot of a log, made and written and synced; beside Kafka's."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from benchmarks.floors import library
from benchmarks.logs import NAME, SEGMENT, opened, twin, values
from benchmarks.measured import Floor, Growth, Measured
from benchmarks.peers.warm_kafka import WarmKafka
from benchmarks.segments import write_producers
from benchmarks.sizes import steps
from logstore.clock import now_ms
from logstore.disk.side_files import read_producer_snapshot
from logstore.layout.producer_snapshot import ENTRY_DTYPE, ENTRY_SIZE, HEADER_SIZE


class KafkasSnapshots:
    """Kafka's log over a copy, held open from the first round on."""

    def __init__(self, kafka: WarmKafka, directory: Path, producer_id: int) -> None:
        self.kafka = kafka
        self.directory = directory
        self.producer_id = producer_id
        self.sequence = 0

    def run(self) -> float:
        """Seconds of one snapshot."""
        if self.sequence == 0:
            self.kafka.measure(op="hold", dir=str(self.directory), clean=False)
        seconds = self.kafka.seconds(op="snapshot", id=self.producer_id, sequence=self.sequence)
        self.sequence += 1
        return seconds


def writing_and_syncing(path: Path, size: int) -> Floor:
    """So many bytes in one call to a new file, and then to the disk, as no snapshot can do without."""
    content = bytes(size)

    def write_and_sync() -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(descriptor, content)
        os.fsync(descriptor)
        os.close(descriptor)

    return library("write and fsync", write_and_sync)


def lasting(path: Path, appending_id: int) -> bytes:
    """What of a snapshot is the same in every run: all but times, and the producer that goes on meanwhile."""
    read_producer_snapshot(str(path))  # its checksum is right
    entries = np.frombuffer(path.read_bytes(), ENTRY_DTYPE, offset=HEADER_SIZE).copy()
    entries["timestamp"] = 0
    return entries[entries["producer_id"] != appending_id].tobytes()


@pytest.mark.parametrize("producer_count", steps(1, 1000, 10_000, 100_000, 300_000))
def test_snapshot(measured: Measured, kafka: WarmKafka, tmp_path: Path, producer_count: int) -> None:
    directory = tmp_path / "ours" / NAME
    directory.mkdir(parents=True)
    write_producers(directory / SEGMENT, producer_count, is_transactional=False, now_ms=now_ms())
    kafkas = KafkasSnapshots(kafka, twin(directory), producer_count)
    log = opened(directory, was_clean=False)
    sequence = 0

    def append() -> None:  # a snapshot is only written when the log has gone on
        nonlocal sequence
        log.append_records(values(1), producer_id=producer_count, producer_epoch=0, base_sequence=sequence)
        sequence += 1

    def snapshot() -> Path:
        log.producers.take_snapshot()
        return directory / f"{log.log_end_offset:020d}.snapshot"

    size = HEADER_SIZE + ENTRY_SIZE * (producer_count + 1)
    written = measured(
        snapshot,
        title=f"snapshot of {producer_count:,} producers",
        size=size,
        count=producer_count,
        unit="producers",
        prepare=append,
        peers={"Kafka": kafkas.run},
        floor=writing_and_syncing(tmp_path / "floor", size),
        growth=Growth("producers", "snapshot", producer_count),
        hashed=lambda path: lasting(path, producer_count),
    )
    if kafkas.sequence:
        kafka.measure(op="release")
    assert written.stat().st_size == size
    log.close()
