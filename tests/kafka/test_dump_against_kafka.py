"""`logstore dump` against the real tool itself, on files that no stored answer knows.

`LOGSTORE_ORACLE_CASES` (default 60) says how many of each, `LOGSTORE_ORACLE_SEED` makes a run again
(`tests.seeds`).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conformance.beyond import difference
from tests.conformance.damaged_cases import cases, lay_out_all
from tests.conformance.dumping import disagreement
from tests.golden.archive import NAMES, answers, read_rows
from tests.golden.matrix import LOG_OPTIONS, ODD_LOG_OPTIONS, argvs_of
from tests.kafka.oracle import Oracle
from tests.naive.dice import Dice
from tests.naive.encoder import random_segment
from tests.seeds import seed_of

pytestmark = pytest.mark.kafka

CASE_COUNT = int(os.environ.get("LOGSTORE_ORACLE_CASES", "60"))
SEED = seed_of("ORACLE")


def check(oracle: Oracle, place: Path, argvs: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """The real tool, in a copy of `place`, and `logstore dump` in `place` itself agree on all calls.

    A copy, because the real tool writes: it trims an index of odd length, and creates one that is missing.
    """
    with tempfile.TemporaryDirectory() as elsewhere:
        copy = Path(shutil.copytree(place, Path(elsewhere, place.name)))
        rows = [vars(dump) for dump in oracle.dump(copy, argvs)]
    monkeypatch.chdir(place)
    problem = disagreement(rows)
    assert not problem, f"LOGSTORE_ORACLE_SEED={SEED}\n{problem}"


def test_stored_answers_are_still_the_real_tools_answers(oracle: Oracle, golden: Callable[[str], Path]) -> None:
    rows = read_rows(answers("control"))
    dumps = oracle.dump(golden("control"), [row["argv"] for row in rows])
    assert [vars(dump) for dump in dumps] == rows


@pytest.mark.parametrize("name", NAMES)
def test_golden_directories(
    name: str, oracle: Oracle, golden: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    argvs = [argv for argv in argvs_of(name, golden(name)) if difference(argv) is None]
    dice = Dice(f"{SEED}/{name}")
    chosen = [[*dice.choose(argvs), *dice.choose(((), ("--print-data-log",)))] for _ in range(CASE_COUNT)]
    check(oracle, golden(name), chosen, monkeypatch)


def test_damaged_files(
    oracle: Oracle, golden: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    argvs = lay_out_all(cases(SEED, golden, 5 * CASE_COUNT), golden, tmp_path)
    check(oracle, tmp_path, argvs, monkeypatch)


def test_random_segments(oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    argvs = []
    for number in range(2 * CASE_COUNT):
        seed = f"{SEED}/{number}"
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "0.log").write_bytes(random_segment(seed))
        options = Dice(seed).choose((*LOG_OPTIONS, *ODD_LOG_OPTIONS))
        argvs.append([*options, "--files", f"{number}/0.log"])
    check(oracle, tmp_path, argvs, monkeypatch)
