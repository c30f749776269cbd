"""Files have one job and functions fit a screen."""

from __future__ import annotations

import ast

import pytest

from tests.house.sources import Module, product_modules, sample

MODULE_LINES_MAX = 400  # aim at 300
FUNCTION_LINES_MAX = 50  # the longest today has 45


def violations(module: Module) -> list[str]:
    """The module and its functions, where they are too long."""
    found = []
    line_count = len(module.source.splitlines())
    if line_count > MODULE_LINES_MAX:
        found.append(f"{module.path} has {line_count} lines")
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            size = (node.end_lineno or node.lineno) - node.lineno + 1
            if size > FUNCTION_LINES_MAX:
                found.append(f"{module.path}:{node.lineno}: {node.name} has {size} lines")
    return found


def test_no_module_and_no_function_is_too_long() -> None:
    assert [line for module in product_modules() for line in violations(module)] == []


@pytest.mark.parametrize(
    "source",
    ["x = 1\n" * (MODULE_LINES_MAX + 1), "class C:\n    def f(self):\n" + "        x = 1\n" * FUNCTION_LINES_MAX],
    ids=["module", "function"],
)
def test_too_long_files_and_functions_are_caught(source: str) -> None:
    assert len(violations(sample("logstore.layout.long", source))) == 1


def test_files_and_functions_just_short_enough_are_let_through() -> None:
    source = "def f():\n" + "    x = 1\n" * (FUNCTION_LINES_MAX - 1)
    assert (
        violations(sample("logstore.layout.long", source + "x = 1\n" * (MODULE_LINES_MAX - FUNCTION_LINES_MAX))) == []
    )
