"""The examples of rules are what planted faults are told as."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from logstore.audit.checks import RULES, examples
from logstore_tools.check_commands import audit
from tests.support.audit_examples import EXAMPLES
from tests.support.audit_examples import examples as told

ON_FEW_SYSTEMS = {"log-unreadable"}  # a disk that fails


@pytest.mark.slow
def test_examples_are_what_is_told(tmp_path: Path) -> None:
    assert EXAMPLES.read_text() == told(tmp_path), "python -m tests.support.audit_examples writes them again"
    assert examples().keys() == {rule.name for rule in RULES} - ON_FEW_SYSTEMS


def test_a_rule_is_explained_with_its_example() -> None:
    printed = CliRunner().invoke(audit, ["--explain", "offsets-lost"]).output
    assert f"For example: {examples()['offsets-lost']}" in printed
