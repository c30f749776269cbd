"""Golden partition directories, whole and damaged, recover to what the real UnifiedLog made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.golden.archive import read_rows
from tests.recovery.cases import DAMAGED_ANSWERS, GOLDEN_ANSWERS, Case
from tests.recovery.comparison import answer, disagreement
from tests.support.sampling import sampled

SHARE_COUNT = 6  # so that a failure is found, and a run divided, sooner


def disagreements(rows: Iterable[dict[str, Any]], golden: Callable[[str], Path], place: Path) -> list[str]:
    """The cases whose recovery does not leave what is recorded."""
    found = []
    for row in rows:
        case = Case.of(row["case"])
        problem = disagreement(row, answer(case, case.lay_out(golden(case.golden), place)))
        if problem:
            found.append(f"{case}\n{problem}")
    return found


@pytest.mark.parametrize("share", sampled(range(SHARE_COUNT), (1,)))
@pytest.mark.parametrize("path", [GOLDEN_ANSWERS, DAMAGED_ANSWERS], ids=lambda path: path.name.split(".")[0])
def test_recovery_leaves_what_kafka_leaves(
    path: Path, share: int, golden: Callable[[str], Path], tmp_path: Path
) -> None:
    rows = read_rows(path)[share::SHARE_COUNT]
    assert len(rows) > 100
    assert disagreements(rows, golden, tmp_path) == []


def test_the_recorded_answers_are_of_all_kinds() -> None:
    rows = read_rows(DAMAGED_ANSWERS)
    assert sum("error" in row for row in rows) > 30
    assert sum(bool(row["case"]["clean"]) for row in rows) > 200
    assert sum(len(row["state"]["segments"]) > 1 for row in rows if "state" in row) > 200
    assert sum(any(name.endswith(".snapshot") for name in row.get("files", ())) for row in rows) > 200


def test_a_disagreement_is_told() -> None:
    row = next(row for row in read_rows(GOLDEN_ANSWERS) if "state" in row)
    other = {"state": {**row["state"], "logEndOffset": -1}, "files": {**row["files"], "left.over": "1:0"}}
    told = disagreement(row, other).splitlines()
    assert [line.split(":")[0] for line in told] == ["state logEndOffset", "files left.over"]
    assert disagreement(row, {"error": "java.io.IOException: no"}).startswith("expected {")
