"""A test that asserts nothing proves nothing, nor does one that nobody runs."""

from __future__ import annotations

import ast
import tomllib

import pytest

from tests.house.sources import ROOT, Module, product_modules, sample, test_modules

CHECKING_CALLS = {"raises", "warns", "check"}
CHECKING_PREFIXES = ("assert_", "check_")


def violations(module: Module) -> list[str]:
    """The test functions in which nothing can fail."""
    return [
        f"{module.path}:{node.lineno}: {node.name} asserts nothing"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
        if not any(map(is_check, ast.walk(node)))
    ]


def is_check(node: ast.AST) -> bool:
    """An assert of something, pytest.raises, or a helper that is named after what it does."""
    if isinstance(node, ast.Assert):
        return not isinstance(node.test, ast.Constant)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name | ast.Attribute):
        return False
    name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
    return name in CHECKING_CALLS or name.startswith(CHECKING_PREFIXES)


def test_every_test_asserts_something() -> None:
    modules = test_modules()
    assert len(modules) > 20
    assert [line for module in modules for line in violations(module)] == []


def test_examples_in_docstrings_are_run_in_every_package() -> None:
    folders = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["testpaths"]
    assert {module.path.split("/")[0] for module in product_modules() if ">>> " in module.source} <= set(folders)


@pytest.mark.parametrize(
    "body",
    ["pass", "work()", "assert True", "assert 1, 'one'", "work().check", "'assert'", "if 0:\n        work()"],
)
def test_a_test_without_an_assertion_is_caught(body: str) -> None:
    assert violations(sample("tests.unit.test_bad", f"def test_it():\n    {body}\n"))


@pytest.mark.parametrize(
    "body",
    ["assert work()", "with pytest.raises(ValueError):\n        work()", "assert_equal(1, 2)", "oracle.check_all()"],
)
def test_a_test_with_an_assertion_is_let_through(body: str) -> None:
    source = f"def help():\n    pass\n\ndef test_it():\n    {body}\n"
    assert violations(sample("tests.unit.test_good", source)) == []
