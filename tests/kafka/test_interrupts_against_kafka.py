"""What interrupted calls have left, opened, closed and audited by ours: the real UnifiedLog opens it too.

Of each call a few lines are taken, `LOGSTORE_ORACLE_CASES`; `LOGSTORE_ORACLE_SEED` makes a run again.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.acknowledged import spans_of
from tests.crash.interrupt_runs import Runs
from tests.crash.interrupted_calls import CALLS
from tests.kafka.judge import Asked
from tests.support.dice import Dice
from tests.support.encoder import SOME_TIME
from tests.support.sampling import IS_LONG, case_count, seed_of

pytestmark = pytest.mark.kafka

CASE_COUNT = case_count("LOGSTORE_ORACLE_CASES", sample=1, whole=3)
SEED = seed_of("ORACLE")
LINE_COUNT_MAX = 150  # lines that even a short call has, some of them
CHANGING = [name for name in CALLS if not name.startswith(("log read", "log open", "log flush"))]
CHOSEN = CHANGING if IS_LONG else CHANGING[::4]


@pytest.mark.slow
def test_kafka_opens_what_interrupts_have_left(asked: Callable[..., Asked], tmp_path: Path) -> None:
    kept, dice = tmp_path / "kept", Dice(SEED)
    kept.mkdir()
    runs = Runs(keep=str(kept), keep_all=True)
    for name in CHOSEN:
        for _ in range(CASE_COUNT):
            assert runs.run(name, step=10**6, start=dice.below(LINE_COUNT_MAX)).wrong == {}
    runs.close()
    partitions = sorted(path for path in kept.glob("*/*-*") if path.is_dir() and not path.name.endswith("-delete"))
    assert len(partitions) > len(CHOSEN) // 2
    check = asked("LogCheck", "--warnings")
    for path in partitions:
        spans = spans_of(path)
        question = {
            "directory": str(path),
            "clean": True,
            "logStart": _checkpointed(path.parent / "log-start-offset-checkpoint", path.name),
            "recoveryPoint": spans[-1].last + 1 if spans else 0,
            "now": SOME_TIME if path.name == "t-0" else int(time.time() * 1000),
            "config": {},
        }
        answer = check.ask(question)
        where = f"LOGSTORE_ORACLE_SEED={SEED}, {path}: {answer}"
        assert "error" not in answer, where
        assert answer["warnings"] == [], where
        assert not spans or answer["state"]["logEndOffset"] == spans[-1].last + 1, where


def _checkpointed(checkpoint: Path, partition: str) -> int:
    """The partition's offset of a checkpoint, 0 without."""
    for line in checkpoint.read_text().splitlines()[2:] if checkpoint.exists() else ():
        topic, number, offset = line.rsplit(" ", 2)
        if f"{topic}-{number}" == partition:
            return int(offset)
    return 0
