"""`logstore dump` says of damaged files what the real tool said: the same lines, the same last words."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.damage import KINDS, damaged
from tests.conformance.damaged_cases import ANSWERS, Case
from tests.conformance.dumping import disagreement
from tests.golden.archive import read_newest, read_older
from tests.golden.matrix import argvs_of


@cache
def kept_rows() -> list[dict[str, Any]]:
    return read_newest("damaged", ANSWERS)


@pytest.mark.parametrize("which", [*KINDS, "of an older Kafka"])
def test_dump_of_damaged_files_equals_the_real_tool(
    which: str, golden: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row for row in kept_rows() if Path(row["case"]["file"]).suffix == which]
    if which not in KINDS:
        rows = read_older("damaged", ANSWERS)
    assert rows
    for row in rows:  # the damaged file where its arguments look for it
        case = Case(**row["case"])
        case.lay_out(golden(case.directory), tmp_path)
    monkeypatch.chdir(tmp_path)
    problem = disagreement(rows)
    assert not problem, problem


def test_every_kind_of_damage_is_kept() -> None:
    kept = {(Path(row["case"]["file"]).suffix, row["case"]["kind"]) for row in kept_rows()}
    assert {(suffix, kind) for suffix, kinds in KINDS.items() for kind in kinds} - kept == set()


def test_damage_is_done_again_the_same(golden: Callable[[str], Path]) -> None:
    for suffix, kinds in KINDS.items():
        files = sorted(golden("transactions").rglob(f"*{suffix}"))
        content = next(path for path in files if path.stat().st_size > 60).read_bytes()
        for kind in kinds:
            outcomes = {damaged(content, suffix, kind, str(seed)) for seed in range(8)}
            assert outcomes == {damaged(content, suffix, kind, str(seed)) for seed in range(8)}, (suffix, kind)
            assert outcomes != {content}, (suffix, kind)


def test_the_calls_about_a_golden_directory_do_not_depend_on_chance(golden: Callable[[str], Path]) -> None:
    argvs = argvs_of("control", golden("control"))
    assert len(argvs) > 100
    assert argvs == argvs_of("control", golden("control"))
