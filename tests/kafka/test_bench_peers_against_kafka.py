"""The benchmarks' peers do what ours does: each counts its records, sums or offsets, and fails when they differ."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.peers.kafka import WarmKafka
from benchmarks.support.compare import environment
from benchmarks.support.report import read_results
from tests.support.oracle import Oracle

ROOT = Path(__file__).parents[2]
OPERATIONS = ["append", "clean", "kernels", "read", "recover"]


@pytest.mark.long
def test_kafka_runs_beside_ours_in_every_round(oracle: Oracle, tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    options = ["-p", "no:cacheprovider", "--benchmark-only", "--benchmark-quiet"]
    options += ["--benchmark-max-time=0.01", "--benchmark-min-rounds=1"]
    files = [f"benchmarks/bench_{operation}.py" for operation in OPERATIONS]
    command = [sys.executable, "-m", "pytest", *options, f"--benchmark-json={results}", *files]
    sizes = {"LOGSTORE_BENCH_PEERS": "on", "LOGSTORE_BENCH_SCALE": "0.0001"}
    subprocess.run(command, cwd=ROOT, env={**environment(), **sizes}, check=True)
    found = read_results(results)
    beside = [each for each in found if "Kafka" in each.peers]
    assert {each.identity.partition("::")[0] for each in beside} == set(OPERATIONS)
    assert len(beside) >= 26
    assert not any("Kafka" in each.absent for each in found)


@pytest.mark.slow
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
