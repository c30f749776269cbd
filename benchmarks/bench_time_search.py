"""Offsets by time: a time index alone, and whole questions to a log, beside Kafka's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.bench_index_search import CALL_COUNT, KAFKA_CALL_COUNT, OFFSETS_AN_ENTRY, STEP
from benchmarks.floors import library
from benchmarks.logs import NAME, SEGMENT, opened, twin
from benchmarks.measured import Growth, Measured
from benchmarks.peers.warm_kafka import WarmKafka
from benchmarks.segments import BASE_TIMESTAMP_MS, write_segment
from benchmarks.sizes import KIB, MIB, scaled, steps
from logstore.columns.batch_table import scan
from logstore.layout.time_index import ENTRY_DTYPE, parse_time_index

MS_AN_ENTRY = 10


@pytest.mark.parametrize("entry_count", steps(100, 1000, 10_000, 100_000, 1_000_000))
def test_search_of_a_time(measured: Measured, kafka: WarmKafka, tmp_path: Path, entry_count: int) -> None:
    path, span = tmp_path / "00000000000000000000.timeindex", (entry_count + 1) * MS_AN_ENTRY
    entries = np.zeros(entry_count, ENTRY_DTYPE)
    entries["timestamp"] = BASE_TIMESTAMP_MS + np.arange(entry_count) * MS_AN_ENTRY
    entries["relative_offset"] = np.arange(entry_count) * OFFSETS_AN_ENTRY
    path.write_bytes(entries.tobytes())
    index = parse_time_index(entries.tobytes(), base_offset=0, path=str(path))
    targets = [BASE_TIMESTAMP_MS + number * STEP % span for number in range(CALL_COUNT)]
    order = {"op": "searchTimes", "file": str(path), "first": BASE_TIMESTAMP_MS, "span": span}

    def search_all() -> int:
        return sum(index.lookup(target)[1] for target in targets)

    def kafkas() -> float:
        kafka.seconds(**order, count=CALL_COUNT, expected_count=answer)
        return kafka.seconds(**order, count=KAFKA_CALL_COUNT) / KAFKA_CALL_COUNT * CALL_COUNT

    answer = search_all()
    measured(
        search_all,
        title=f"{CALL_COUNT} searches among {entry_count:,} times",
        count=CALL_COUNT,
        unit="searches",
        peers={"Kafka": kafkas},
        floor=library("`np.searchsorted`, all at once", np.searchsorted, index.timestamps, np.array(targets)),
        growth=Growth("entries of an index", f"{CALL_COUNT} time searches", entry_count),
    )
    last = (entry_count - 1) * OFFSETS_AN_ENTRY
    slots = [(target - BASE_TIMESTAMP_MS) // MS_AN_ENTRY for target in targets]
    assert answer == sum(min(slot * OFFSETS_AN_ENTRY, last) for slot in slots)


def test_offsets_for_times(measured: Measured, kafka: WarmKafka, tmp_path: Path) -> None:
    directory = tmp_path / "ours" / NAME
    directory.mkdir(parents=True)
    write_segment(directory / SEGMENT, scaled(256 * KIB, 64 * MIB))
    log = opened(directory, was_clean=False)
    last = log.offset_for_timestamp(-3)  # the record with the largest time
    assert last is not None
    span = last.timestamp - BASE_TIMESTAMP_MS + 1
    targets = [BASE_TIMESTAMP_MS + number * STEP % span for number in range(CALL_COUNT)]
    kafkas_directory = twin(directory)

    def ask_all() -> int:
        return sum(found.offset for found in map(log.offset_for_timestamp, targets) if found is not None)

    def kafkas() -> float:
        kafka.measure(op="hold", dir=str(kafkas_directory), clean=False)
        order = {"op": "times", "first": BASE_TIMESTAMP_MS, "span": span, "count": CALL_COUNT}
        seconds = kafka.seconds(**order, expected_count=answer)
        kafka.measure(op="release")
        return seconds

    answer = ask_all()
    title = f"{CALL_COUNT} offsets by time, of a log"
    times = scan(np.fromfile(directory / SEGMENT, np.uint8)).max_timestamp
    floor = library("`np.searchsorted` of batches, all at once", np.searchsorted, times, np.array(targets))
    asked = {"title": title, "count": CALL_COUNT, "unit": "questions"}
    reads = [directory / SEGMENT, kafkas_directory / SEGMENT]
    measured(ask_all, peers={"Kafka": kafkas}, floor=floor, reads=reads, **asked)
    assert answer > 0
    log.close()
