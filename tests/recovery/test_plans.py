"""Plans of recoveries: they change nothing, count what goes byte by byte, and are what the real UnifiedLog did."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.golden.archive import read_rows
from tests.recovery.cases import DAMAGED_ANSWERS, Case
from tests.recovery.planning import plan_problem

EVERY = 16


def test_plans_are_what_recovery_does_and_kafka_did(golden: Callable[[str], Path], tmp_path: Path) -> None:
    problems, count = list[str](), 0
    for row in read_rows(DAMAGED_ANSWERS)[::EVERY]:
        case = Case.of(row["case"])
        problem = plan_problem(case, case.lay_out(golden(case.golden), tmp_path), row)
        problems += [f"{case}\n{problem}"] if problem else []
        count += 1
    assert (problems, count > 60) == ([], True)


def test_a_plan_that_is_wrong_is_told(golden: Callable[[str], Path], tmp_path: Path) -> None:
    row = next(row for row in read_rows(DAMAGED_ANSWERS) if "files" in row and not row["case"]["clean"])
    case = Case.of(row["case"])
    other = {**row, "files": dict.fromkeys(row["files"], "1:0")}
    assert plan_problem(case, case.lay_out(golden(case.golden), tmp_path), other).startswith("Kafka left")
