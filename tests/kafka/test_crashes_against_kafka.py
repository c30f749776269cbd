"""What a crash left of a log that was written: the real UnifiedLog makes of it what ours does, to the same files.

`LOGSTORE_CRASH_CASES` is the number of workloads, of each some directories are chosen by chance;
`LOGSTORE_CRASH_SEED` makes a run again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.crash.crashing_log import CONFIG, CrashingLog, lay_out
from tests.kafka.judge import Asked
from tests.recovery.cases import Case
from tests.recovery.comparison import answer, disagreement
from tests.support.dice import Dice
from tests.support.encoder import SOME_TIME
from tests.support.sampling import case_count, seed_of

pytestmark = pytest.mark.kafka

CASE_COUNT = case_count("LOGSTORE_CRASH_CASES", sample=1, whole=4)
SEED = seed_of("CRASH")
STEP_COUNT = 25
SAMPLE_COUNT = 40  # directories of a workload
LEFT_OVER = (
    "leader-epoch-checkpoint.tmp"  # read by nobody; the next write goes over it, for Kafka often that of the load
)


def test_kafka_makes_of_what_a_crash_left_what_ours_makes_of_it(asked: Callable[..., Asked], tmp_path: Path) -> None:
    torn_count = 0
    check = asked("LogCheck", "--warnings")
    for number in range(CASE_COUNT):
        crashing = CrashingLog(tmp_path / str(number) / "t-0", f"{SEED} {number}")
        crashing.write(STEP_COUNT)
        dice = Dice(f"{SEED} sample {number}")
        for sample in range(SAMPLE_COUNT):
            left = dice.choose(crashing.disk.left)
            theirs, ours = (lay_out(left.survivor, tmp_path / f"{number}-{sample}" / who) for who in ("theirs", "ours"))
            case = Case(0, "", "t-0", (), False, 0, left.promise.recovery_point, SOME_TIME, CONFIG)
            expected = check.ask({**case.question(), "directory": str(theirs)})
            torn_count += any("Corruption found in segment" in warning for warning in expected.pop("warnings"))
            assert "error" not in expected
            found = answer(case, ours)
            for one in (expected, found):
                one["files"].pop(LEFT_OVER, None)
            where = f"LOGSTORE_CRASH_SEED={SEED}, workload {number}, {left.when}"
            assert disagreement(expected, found) == "", where
    assert torn_count >= CASE_COUNT
