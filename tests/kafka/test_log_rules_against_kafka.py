"""Rules of a log that random workloads seldom come to, each asked of Kafka's UnifiedLog by a workload of its own."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kafka.judge import Judge
from tests.kafka.oracle import Oracle
from tests.kafka.workload_log import WorkloadLog
from tests.kafka.workloads import Step
from tests.naive.encoder import SOME_TIME, TRANSACTIONAL, Batch, Rec

pytestmark = pytest.mark.kafka

ROLLED = ({"cleanup.policy": "compact"}, {"cleanup.policy": "compact,delete"}, {"cleanup.policy": "delete"})
WAITS_MS = (0, 50, 51, 100, 101, 151, 152)
CUT = {"op": "truncate", "from": "end", "plus": -1}


@pytest.fixture(scope="module")
def judge(oracle: Oracle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    with Judge(oracle, tmp_path_factory.mktemp("judge")) as judge:
        yield judge


def work(steps: list[Step], **config: str) -> dict[str, Any]:
    return {
        "config": config,
        "now": SOME_TIME,
        "isOnlyReplica": True,
        "requiresVerification": False,
        "topicId": None,
        "steps": steps,
        "isClosedAfter": True,
    }


def append(later_ms: int = 0, **fields: int) -> Step:
    time = SOME_TIME + later_ms
    batch = Batch(0, [Rec(b"k", b"v")], base_timestamp=time, max_timestamp=time, leader_epoch=-1, **fields)
    return {
        "op": "append",
        "batches": batch.to_bytes().hex(),
        "epoch": 0,
        "origin": "CLIENT",
        "version": -1,
        "begin": None,
    }


def transaction(producer_id: int, sequence: int, *, is_commit: bool) -> list[Step]:
    marker = {"op": "marker", "producerId": producer_id, "producerEpoch": 0, "isCommit": is_commit}
    return [
        append(producer_id=producer_id, producer_epoch=0, base_sequence=sequence, flags=TRANSACTIONAL),
        {**marker, "coordinatorEpoch": 0, "version": 1, "epoch": 0},
    ]


@pytest.mark.parametrize("lag_ms", [50, 100, 1000])
def test_a_log_that_is_to_be_cleaned_rolls_as_the_real_one(judge: Judge, lag_ms: int) -> None:
    steps = [append(waited_ms) for waited_ms in WAITS_MS]
    for policy in ROLLED:
        config = {**policy, "segment.ms": "100", "max.compaction.lag.ms": str(lag_ms)}
        assert judge.disagreements(work(steps, **config)) == []


def test_segments_of_these_appends_differ_by_the_lag(tmp_path: Path) -> None:
    """Otherwise the test above would tell nothing."""
    counts = []
    for lag_ms in (50, 1000):
        config = {"cleanup.policy": "compact", "segment.ms": "100", "max.compaction.lag.ms": str(lag_ms)}
        directory = tmp_path / str(lag_ms) / "t-0"
        directory.parent.mkdir()
        steps = [append(waited_ms) for waited_ms in WAITS_MS]
        counts.append(len(WorkloadLog(work(steps, **config), directory).run()["end"]["segments"]))
    assert counts == [3, 2]


@pytest.mark.parametrize("is_commit", [False, True])
def test_aborts_that_are_cut_off_are_forgotten_as_by_the_real_log(judge: Judge, is_commit: bool) -> None:
    _, marker = transaction(2, 0, is_commit=is_commit)
    begun = [*transaction(1, 0, is_commit=False), *transaction(2, 0, is_commit=False)]
    assert judge.disagreements(work([*begun, CUT, marker, append()])) == []
    assert judge.disagreements(work([*begun, CUT, {"op": "reopen", "clean": False}, marker])) == []
    index = (judge.place / "ours" / "t-0" / f"{0:020}.txnindex").read_bytes()
    producers = [producer_id for _, producer_id, *_ in struct.iter_unpack(">hqqqq", index)]
    assert producers == ([1] if is_commit else [1, 2])


def test_a_log_cut_below_its_start_starts_where_the_real_one_does(judge: Judge, tmp_path: Path) -> None:
    steps = [append() for _ in range(6)]
    steps += [{"op": "start", "from": "start", "plus": 4}, {"op": "truncate", "from": "start", "plus": -2}]
    assert judge.disagreements(work([*steps, append(), {"op": "reopen", "clean": True}])) == []
    assert judge.real(work(steps), tmp_path / "t-0")["answers"][-1]["state"]["logStartOffset"] == 2
