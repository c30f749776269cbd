"""Rules of a log that random workloads seldom come to, each asked of Kafka's UnifiedLog by a workload of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kafka.judge import Asked, Judge
from tests.kafka.workload_log import WorkloadLog
from tests.kafka.workloads import Step
from tests.support.encoder import SOME_TIME, Batch, Rec

pytestmark = pytest.mark.kafka

ROLLED = ({"cleanup.policy": "compact"}, {"cleanup.policy": "compact,delete"}, {"cleanup.policy": "delete"})
WAITS_MS = (0, 50, 51, 100, 101, 151, 152)


@pytest.fixture
def judge(asked: Callable[..., Asked], tmp_path: Path) -> Judge:
    return Judge(asked("Workloads"), tmp_path)


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
