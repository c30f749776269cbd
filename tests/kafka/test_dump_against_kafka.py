"""`logstore dump` against the real tool itself, on files that no stored answer knows.

`LOGSTORE_ORACLE_CASES` says how many of each, `LOGSTORE_ORACLE_SEED` makes a run again
(`tests.support.sampling`).
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from logstore.config.kafka_version import NEWEST
from tests.conformance.beyond import difference
from tests.conformance.comparison import differences
from tests.conformance.damaged_cases import cases, lay_out_all
from tests.conformance.dumping import disagreement
from tests.golden.archive import NAMES, answers, read_newest, read_rows
from tests.golden.matrix import LOG_OPTIONS, ODD_LOG_OPTIONS, argvs_of
from tests.support.dice import Dice
from tests.support.encoder import random_segment
from tests.support.golden import Golden
from tests.support.judges import judged
from tests.support.oracle import Oracle
from tests.support.sampling import case_count, seed_of

pytestmark = pytest.mark.kafka

CASE_COUNT = case_count("LOGSTORE_ORACLE_CASES", sample=30, whole=120)
SEED = seed_of("ORACLE")
SAMPLE = ("random", "edges", "transactions")  # of the golden directories, whose answers are all recorded


def check(oracle: Oracle, place: Path, argvs: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """The real tool, in a copy of `place`, and `logstore dump` in `place` itself agree on all calls.

    A copy, because the real tool writes: it trims an index of odd length, and creates one that is missing.
    """
    with tempfile.TemporaryDirectory() as elsewhere:
        copy = Path(shutil.copytree(place, Path(elsewhere, place.name)))
        rows = [vars(dump) for dump in oracle.dump(copy, argvs)]
    monkeypatch.chdir(place)
    problem = disagreement([{**row, "argv": ["--kafka-version", judged().name, *row["argv"]]} for row in rows])
    assert not problem, f"LOGSTORE_ORACLE_SEED={SEED}\n{problem}"


def test_stored_answers_are_still_the_real_tools_answers(oracle: Oracle, golden: Golden) -> None:
    rows = read_newest("control", answers("control")) if judged() is NEWEST else read_rows(answers("control"))
    for row, dump in zip(rows, oracle.dump(golden("control"), [row["argv"] for row in rows]), strict=True):
        recorded = row["rc"], row["stdout"], row["stderr"]
        assert differences(dump.argv, recorded, (dump.rc, dump.stdout, dump.stderr)) == []


@pytest.mark.parametrize(
    "name", [name if name in SAMPLE else pytest.param(name, marks=pytest.mark.long) for name in NAMES]
)
def test_golden_directories(name: str, oracle: Oracle, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    argvs = [argv for argv in argvs_of(name, golden(name)) if difference(argv) is None]
    dice = Dice(f"{SEED}/{name}")
    chosen = [[*dice.choose(argvs), *dice.choose(((), ("--print-data-log",)))] for _ in range(CASE_COUNT)]
    check(oracle, golden(name), chosen, monkeypatch)


def test_damaged_files(oracle: Oracle, golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    argvs = lay_out_all(cases(SEED, golden, 5 * CASE_COUNT), golden, tmp_path)
    check(oracle, tmp_path, argvs, monkeypatch)


@pytest.mark.slow
def test_random_segments(oracle: Oracle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    argvs = []
    for number in range(2 * CASE_COUNT):
        seed = f"{SEED}/{number}"
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "0.log").write_bytes(random_segment(seed))
        options = Dice(seed).choose((*LOG_OPTIONS, *ODD_LOG_OPTIONS))
        argvs.append([*options, "--files", f"{number}/0.log"])
    check(oracle, tmp_path, argvs, monkeypatch)
