"""Each rule of the audit has directories that break it, and is found nowhere in an audit of clean ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from logstore.audit import checks
from logstore.audit.directory_audit import audit_directory
from logstore.audit.finding import Report, Rule, Severity, Silence, Where
from tests.support import audit_faults, audit_story_faults

CLEAN = ("transactions",)  # golden directories, beside the clean story
UNREADABLE = "log-unreadable"  # `test_a_segment_that_cannot_be_read_is_found`
BROKEN = [audit_faults.FAULTS, audit_faults.PLAIN_FAULTS, audit_story_faults.FAULTS]  # each fault is a case of a test


@pytest.mark.parametrize("rule", checks.RULES, ids=[rule.name for rule in checks.RULES])
def test_a_rule_has_faults_and_is_listed_under_its_name(rule: Rule) -> None:
    assert any(faults.get(rule.name) for faults in BROKEN) != (rule.name == UNREADABLE)
    assert checks.BY_NAME[rule.name] is rule


def test_nothing_is_found_in_clean_directories(golden: Callable[[str], Path], tmp_path: Path) -> None:
    story = audit_story_faults.clean()
    root = story.write(tmp_path)
    assert audit_directory(str(root), story.now_ms + 1000).findings == ()
    for name in CLEAN:
        assert audit_directory(str(golden(name)), 0).findings == ()


def test_a_silence_is_noted_and_one_that_the_rule_does_not_name_is_refused() -> None:
    rule = Rule("a-rule", Severity.ERROR, "", "", unless=(Silence.GROWING,))
    report = Report()
    report.take([rule.at(Where("a", "t", 0), 1, 2, Silence.GROWING)])
    assert (report.findings, [(note.rule, note.reason) for note in report.notes]) == (
        [],
        [("a-rule", "the log grew while it was read")],
    )
    with pytest.raises(AssertionError, match="COMPACTED"):
        report.take([rule.at(Where("a", "t", 0), 1, 2, Silence.COMPACTED)])
