"""Each rule of the audit has directories that break it, and is asked of a clean one, in which it finds nothing.

A rule is asked where a function runs that names it, or that names what names it (a function that is called only where
the rule is broken, or a table of rules).
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import FrameType

import pytest

from logstore.audit import rules
from logstore.audit.directory_audit import audit_directory
from logstore.audit.finding import Rule
from tests.house.sources import Module, product_modules, sample
from tests.unit import audit_faults, audit_story_faults

AUDIT = "logstore.audit."
CLEAN = ("transactions",)  # golden directories, beside the clean story
UNREADABLE = rules.LOG_UNREADABLE.name  # `test_a_segment_that_cannot_be_read_is_found`
BROKEN = [audit_faults.FAULTS, audit_faults.PLAIN_FAULTS, audit_story_faults.FAULTS]  # each fault is a case of a test
Function = tuple[str, str]  # of a module, by its path, and its name


def named_in(node: ast.AST) -> set[str]:
    """Names and attributes."""
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return names | {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}


def definitions(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Functions, methods and constants of a module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((target.id, node) for target in targets if isinstance(target, ast.Name))


@cache
def contents(module: Module) -> list[tuple[str, set[str]]]:
    """Of each definition its name, and what it names."""
    return [(name, named_in(node)) for name, node in definitions(module.tree)]


def asking(module: Module, constant: str) -> set[Function]:
    """What of a module asks the rule."""
    found = {name for name, named in contents(module) if constant in named}
    found |= {name for name, named in contents(module) if found & named}
    return {(module.path, name) for name in found}


def called_in(work: Callable[[], None], below: str) -> set[Function]:
    """Which functions of modules below a directory run while `work` does."""
    root = str(Path(__file__).parents[2]) + "/"
    found = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(root + below):
            found.add((path.removeprefix(root), frame.f_code.co_name))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return found


@pytest.fixture(scope="module")
def asked(golden: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> set[Function]:
    """What runs in audits of clean directories, in which nothing is found."""
    story = audit_story_faults.clean()
    roots = [story.write(tmp_path_factory.mktemp("story")), *map(golden, CLEAN)]
    found: list[object] = []

    def audit() -> None:
        for root in roots:
            found.extend(audit_directory(str(root), story.now_ms + 1000 if root == roots[0] else 0).findings)

    called = called_in(audit, "logstore/audit/")
    assert found == []
    return called


@pytest.mark.parametrize("rule", rules.RULES, ids=[rule.name for rule in rules.RULES])
def test_a_rule_has_faults_and_is_asked_where_there_is_none(rule: Rule, asked: set[Function]) -> None:
    assert any(faults.get(rule.name) for faults in BROKEN) != (rule.name == UNREADABLE)
    constant = rule.name.replace("-", "_").upper()
    assert getattr(rules, constant) is rule
    modules = [module for module in product_modules() if module.name.startswith(AUDIT)]
    assert asked & {place for module in modules for place in asking(module, constant)}


def test_a_rule_that_nobody_asks_is_noticed() -> None:
    module = sample("logstore.audit.one", "def a():\n    say(rules.ONE)\ndef b():\n    a()\ndef c():\n    b()\n")
    assert asking(module, "ONE") == {(module.path, "a"), (module.path, "b")}
    assert asking(module, "TWO") == set()
    assert called_in(lambda: None, "logstore/") == set()
