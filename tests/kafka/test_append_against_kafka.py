"""Random workloads on Kafka's UnifiedLog and on ours: the same answers, the same state and, in the end, the same files.

`LOGSTORE_ORACLE_CASES` says how many, `LOGSTORE_ORACLE_SEED` makes a run again
(`tests.support.sampling`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kafka.judge import Asked, Judge
from tests.kafka.workload_log import WorkloadLog
from tests.kafka.workloads import workload
from tests.support.encoder import Batch, Rec
from tests.support.sampling import case_count, seed_of

pytestmark = pytest.mark.kafka

CASE_COUNT = case_count("LOGSTORE_ORACLE_CASES", sample=15, whole=60)
SEED = seed_of("ORACLE")


@pytest.fixture
def judge(asked: Callable[..., Asked], tmp_path: Path) -> Judge:
    return Judge(asked("Workloads"), tmp_path)


def test_logs_are_written_as_by_the_real_log(judge: Judge) -> None:
    for number in range(CASE_COUNT):
        disagreements = judge.disagreements(workload(f"{SEED} {number}"))
        assert disagreements == [], f"workload {number} of LOGSTORE_ORACLE_SEED={SEED}"


def test_a_disagreement_is_seen(judge: Judge) -> None:
    """Otherwise the test above would tell nothing: one log does a step more than the other."""
    batches = Batch(0, [Rec()]).to_bytes().hex()
    append = {"op": "append", "batches": batches, "epoch": 0, "origin": "CLIENT", "version": -1, "begin": None}
    work = {**workload("any"), "config": {}, "steps": [append]}
    assert judge.disagreements(work) == []
    real = judge.real
    judge.real = lambda work, directory: real({**work, "steps": [append, append]}, directory)
    told = [line.partition(":")[0] for line in judge.disagreements(work)]
    assert {"logEndOffset in the end", f"{0:020}.log", f"{2:020}.snapshot"} <= set(told)


@pytest.mark.slow
def test_workloads_try_what_logs_do(tmp_path: Path) -> None:
    """Every kind of step is taken and every refusal met, so that the agreement is about something."""
    ops: Counter[str] = Counter()
    refusals: Counter[str] = Counter()
    segment_counts = []
    for number in range(60):
        work = workload(f"coverage {number}")
        directory = tmp_path / str(number) / "t-0"
        directory.parent.mkdir()
        done = WorkloadLog(work, directory).run()
        ops.update(step["op"] for step in work["steps"])
        refusals.update(_refusal(answer) for answer in done["answers"] if "error" in answer)
        segment_counts.append(len(done["end"]["segments"]) if done["end"] else 0)
    assert {
        "append",
        "clean",
        "records",
        "columns",
        "retain",
        "marker",
        "follow",
        "verify",
        "restart",
        "reopen",
        "roll",
        "start",
    } <= ops.keys()
    assert {
        "OutOfOrderSequenceException",
        "InvalidProducerEpochException",
        "InvalidTxnStateException",
        "InvalidRecordException",
        "InvalidTimestampException",
        "RecordTooLargeException",
        "CorruptRecordException",
        "OffsetOutOfRangeException",
        "UnexpectedAppendOffsetException",
    } <= refusals.keys()
    assert max(segment_counts) > 10


def _refusal(answer: dict[str, Any]) -> str:
    return answer["error"].partition(":")[0].rpartition(".")[2]
