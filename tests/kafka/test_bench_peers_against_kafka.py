"""The benchmarks' peers do what ours does: each counts its records, sums or offsets, and fails when they differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import run
from benchmarks.peers.warm_kafka import WarmKafka
from benchmarks.results import read_results
from tests.kafka.oracle import Oracle

OPERATIONS = ["append", "crc", "index_search", "time_search", "markers", "snapshot", "read", "recovery", "cleaning"]


@pytest.mark.long
def test_kafka_runs_beside_ours_in_every_round(oracle: Oracle, tmp_path: Path) -> None:
    chosen = [word for operation in OPERATIONS for word in ("--only", operation)]
    assert run.main([*chosen, "--scale", "0.0001", "--seconds", "0.01", "--out", str(tmp_path)]) == 0
    found = {each.identity: each for each in read_results(tmp_path / "results.json")}
    beside = [each for each in found.values() if "Kafka" in each.peers]
    assert {each.operation for each in beside} == set(OPERATIONS)
    assert len(beside) >= 28
    assert not any("Kafka" in each.absent for each in found.values())
    assert "×** Kafka (" in (tmp_path / "table.md").read_text()


def test_a_peer_that_finds_something_else_is_no_peer(oracle: Oracle, tmp_path: Path) -> None:
    order = {"op": "searchOffsets", "first": 0, "span": 100, "count": 3}  # offsets 0, 61 and 22
    index = tmp_path / "00000000000000000000.index"
    index.write_bytes(bytes.fromhex("00000006 00000116 0000000a 00000164"))
    kafka = WarmKafka()
    try:
        assert kafka.seconds(**order, file=str(index), expected_count=356 + 356) > 0
        with pytest.raises(RuntimeError, match="instead of 7"):
            kafka.seconds(**order, file=str(index), expected_count=7)
    finally:
        kafka.close()
