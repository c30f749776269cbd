"""An offset index asked for positions, one at a time as a read does and many at once; beside Kafka's lookup."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.floors import library
from benchmarks.measured import Growth, Measured
from benchmarks.peers.warm_kafka import WarmKafka
from benchmarks.sizes import steps
from logstore.layout.offset_index import ENTRY_DTYPE, OffsetIndex, parse_offset_index

STEP = 2654435761  # between targets, as in `RecordBench.java`, so that one is far from the next
CALL_COUNT = 200
KAFKA_CALL_COUNT = 200_000
OFFSETS_AN_ENTRY = 40


def index_of(path: Path, entry_count: int) -> OffsetIndex:
    """An index of this many entries, written to `path`."""
    entries = np.zeros(entry_count, ENTRY_DTYPE)
    entries["relative_offset"] = np.arange(1, entry_count + 1) * OFFSETS_AN_ENTRY
    entries["position"] = np.arange(1, entry_count + 1) * 4096 % 2**31
    path.write_bytes(entries.tobytes())
    return parse_offset_index(entries.tobytes(), base_offset=0, path=str(path))


@pytest.mark.parametrize("entry_count", steps(100, 1000, 10_000, 100_000, 1_000_000))
def test_search_of_an_offset(measured: Measured, kafka: WarmKafka, tmp_path: Path, entry_count: int) -> None:
    path = tmp_path / "00000000000000000000.index"
    index, span = index_of(path, entry_count), (entry_count + 1) * OFFSETS_AN_ENTRY
    order = {"op": "searchOffsets", "file": str(path), "first": 0, "span": span}
    targets = [number * STEP % span for number in range(CALL_COUNT)]

    def search_all() -> int:
        return sum(index.lookup(target)[1] for target in targets)

    def kafkas() -> float:
        found = kafka.measure(**order, count=CALL_COUNT)["count"]
        if found != answer:
            raise RuntimeError(f"Kafka's positions sum up to {found} instead of {answer}")
        return kafka.seconds(**order, count=KAFKA_CALL_COUNT) / KAFKA_CALL_COUNT * CALL_COUNT

    answer = search_all()
    measured(
        search_all,
        title=f"{CALL_COUNT} searches among {entry_count:,} offsets",
        count=CALL_COUNT,
        unit="searches",
        peers={"Kafka": kafkas},
        floor=library("`np.searchsorted`, all at once", np.searchsorted, index.offsets, np.array(targets)),
        growth=Growth("entries of an index", f"{CALL_COUNT} offset searches", entry_count),
    )
    assert answer == sum((target // OFFSETS_AN_ENTRY) * 4096 % 2**31 for target in targets if target < span)


@pytest.mark.parametrize("entry_count", steps(1000, 10_000, 1_000_000))
def test_search_of_many_offsets(measured: Measured, tmp_path: Path, entry_count: int) -> None:
    index = index_of(tmp_path / "00000000000000000000.index", entry_count)
    targets = np.arange(100_000) * STEP % (entry_count * OFFSETS_AN_ENTRY)
    positions = measured(
        index.lookup_positions,
        targets,
        title=f"{targets.size:,} searches at once among {entry_count:,} offsets",
        count=targets.size,
        unit="searches",
        floor=library("`np.searchsorted` of sorted ones", np.searchsorted, index.offsets, np.sort(targets)),
    )
    assert positions[:100].tolist() == [index.lookup(target)[1] for target in targets[:100].tolist()]
