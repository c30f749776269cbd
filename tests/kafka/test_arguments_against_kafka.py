"""The answers that `tests/support/argument_answers.py` keeps are still the real tool's answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.comparison import differences
from tests.support.argument_answers import ANSWERS, VERSION, lay_out
from tests.support.judges import judged
from tests.support.oracle import Oracle

pytestmark = [pytest.mark.kafka, pytest.mark.by_release(is_slow=True)]


def test_kept_answers_are_the_real_tools_answers(oracle: Oracle, tmp_path: Path) -> None:
    lay_out(tmp_path)
    own = (0, f"{judged().release}\n", "")
    kept = [(argv, own if found == VERSION else found) for rule in ANSWERS.values() for argv, found in rule]
    dumps = oracle.dump(tmp_path, [argv for argv, _ in kept])
    reports = [
        differences(argv, (dump.rc, dump.stdout, dump.stderr), found)
        for (argv, found), dump in zip(kept, dumps, strict=True)
    ]
    assert [report for report in reports if report] == []
