"""Each rule of the audit has directories that break it, and is asked in an audit of clean ones, which finds nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from logstore.audit import rules
from logstore.audit.directory_audit import audit_directory
from logstore.audit.finding import Breach, Rule, Where
from tests.support import audit_faults, audit_story_faults

CLEAN = ("transactions",)  # golden directories, beside the clean story
UNREADABLE = "log-unreadable"  # `test_a_segment_that_cannot_be_read_is_found`
BROKEN = [audit_faults.FAULTS, audit_faults.PLAIN_FAULTS, audit_story_faults.FAULTS]  # each fault is a case of a test
OF_WHAT_IS_WRONG = ((), (rules.log.BadBytes,))  # facts that clean directories do not have


@pytest.fixture(scope="module")
def asked(golden: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> set[type]:
    """Types of the facts that rules are asked of in audits of clean directories, in which nothing is found."""
    story = audit_story_faults.clean()
    roots = [story.write(tmp_path_factory.mktemp("story")), *map(golden, CLEAN)]
    ask, types = rules.ask, set[type]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "ask", lambda facts: [types.add(type(facts)), *ask(facts)][1:])
        for root in roots:
            assert audit_directory(str(root), story.now_ms + 1000 if root == roots[0] else 0).findings == ()
    return types


@pytest.mark.parametrize("rule", rules.RULES, ids=[rule.name for rule in rules.RULES])
def test_a_rule_has_faults_and_is_asked_where_there_is_none(rule: Rule, asked: set[type]) -> None:
    assert any(faults.get(rule.name) for faults in BROKEN) != (rule.name == UNREADABLE)
    name = rule.name.replace("-", "_")
    assert any(vars(module).get(name) is rule for module in vars(rules).values() if isinstance(module, ModuleType))
    assert rule.needs in OF_WHAT_IS_WRONG or any(issubclass(one, rule.needs) for one in asked)


def test_unreadable_files_are_asked_only_the_rule_that_they_name() -> None:
    bad = Breach("snapshot-format", (Where("a.snapshot"), "a snapshot", "nothing"))
    (finding,) = rules.ask(bad)
    assert (finding.rule, finding.where.path, finding.found) == ("snapshot-format", "a.snapshot", "nothing")
    with pytest.raises(KeyError, match="snapshot-fromat"):
        rules.ask(bad._replace(rule="snapshot-fromat"))
