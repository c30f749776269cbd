"""Recovery against the real UnifiedLog itself, on damage that no stored answer knows.

`LOGSTORE_ORACLE_CASES` says how many, `LOGSTORE_ORACLE_SEED` makes a run again
(`tests.support.sampling`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from logstore.config.kafka_version import OF_NEW_STORES
from tests.golden.archive import read_rows
from tests.kafka.judge import Asked
from tests.kafka.make_recovered import ask
from tests.recovery.cases import DAMAGED_ANSWERS, Case, damaged_cases
from tests.recovery.comparison import answer, disagreement
from tests.recovery.planning import plan_problem
from tests.support.golden import Golden
from tests.support.judges import judged
from tests.support.sampling import case_count, seed_of

pytestmark = pytest.mark.kafka

CASE_COUNT = case_count("LOGSTORE_ORACLE_CASES", sample=20, whole=80)
SEED = seed_of("ORACLE")
WRONG_CONFIGS = (
    {"segment.bytes": "1"},
    {"segment.index.bytes": "3"},
    {"index.interval.bytes": "-1"},
    {"index.interval.bytes": "many"},
    {"index.interval.bytes": "2147483648"},
    {"segment.ms": "0"},
    {"retention.ms": "x"},
    {"cleanup.policy": "delete,keep"},
    {"cleanup.policy": "delete,"},
    {"compression.type": "brotli"},
    {"compression.gzip.level": "0"},
    {"compression.zstd.level": "23"},
    {"preallocate": "perhaps"},
    {"min.cleanable.dirty.ratio": "1.5"},
    {"message.timestamp.type": "Never"},
)


def check(kafka: Asked, cases: Sequence[Case], golden: Golden, place: Path) -> list[str]:
    """Where the two disagree."""
    answers = ask(kafka, cases, golden, place / "theirs")
    found = []
    for case, expected in zip(cases, answers, strict=True):
        problem = disagreement(expected, answer(case, case.lay_out(golden(case.golden), place / "ours")))
        if problem:
            found.append(f"LOGSTORE_ORACLE_SEED={SEED} {case}\n{problem}")
    return found


@pytest.fixture
def kafka(asked: Callable[..., Asked]) -> Asked:
    return asked("LogCheck")


def test_damaged_partitions(kafka: Asked, golden: Golden, tmp_path: Path) -> None:
    assert check(kafka, damaged_cases(SEED, golden, 3 * CASE_COUNT), golden, tmp_path) == []


def test_plans_are_what_kafka_does(kafka: Asked, golden: Golden, tmp_path: Path) -> None:
    cases = damaged_cases(f"{SEED} planned", golden, CASE_COUNT)
    problems = []
    for case, expected in zip(cases, ask(kafka, cases, golden, tmp_path / "theirs"), strict=True):
        problem = plan_problem(case, case.lay_out(golden(case.golden), tmp_path / "ours"), expected)
        problems += [f"LOGSTORE_ORACLE_SEED={SEED} {case}\n{problem}"] if problem else []
    assert problems == []


def test_stored_answers_are_still_kafkas_answers(kafka: Asked, golden: Golden, tmp_path: Path) -> None:
    rows = read_rows(DAMAGED_ANSWERS)[:CASE_COUNT]
    cases = [Case.of(row.pop("case")) for row in rows]
    if judged() is OF_NEW_STORES:
        assert ask(kafka, cases, golden, tmp_path) == rows
    else:  # only the answers of that version are recorded
        assert check(kafka, cases, golden, tmp_path) == []


def test_wrong_configurations_are_refused_in_kafkas_words(kafka: Asked, golden: Golden, tmp_path: Path) -> None:
    cases = [Case(number, "demo", "orders-0", config=config) for number, config in enumerate(WRONG_CONFIGS)]
    for case, expected in zip(cases, ask(kafka, cases, golden, tmp_path / "theirs"), strict=True):
        assert "error" in expected
        assert answer(case, case.lay_out(golden("demo"), tmp_path / "ours")) == expected, case.config
