"""What `logstore dump` prints about side files, word for word as the real tool did, and that it only looks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.comparison import differences
from tests.conformance.dumping import answer
from tests.support.side_file_cases import CASES, Case, recorded_answers

ANSWERS = recorded_answers()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.story)
def test_the_answer_is_the_recorded_one(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert differences(case.argv, ANSWERS[case.story], answer(["--kafka-version", "4.3", *case.argv])) == []
    found = {path.name: path.read_bytes() if path.is_file() else None for path in tmp_path.iterdir()}
    assert found == case.files, "the dump changed, made or removed a file"


def test_every_case_has_its_recorded_answer() -> None:
    assert list(ANSWERS) == [case.story for case in CASES]
