"""A test file can be moved, split or run by itself: what several need is in no test file."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.house.sources import ROOT, Module, is_test_file, proof_modules, sample


def violations(module: Module) -> Iterator[str]:
    """Imports from a test file, those of functions included."""
    for node in ast.walk(module.tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}", *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            if is_test_file(name) and (ROOT / f"{name.replace('.', '/')}.py").exists():
                yield f"{module.path}:{node.lineno}: imports from {name}; put what both need into tests/support"


def test_nothing_imports_from_a_test_file() -> None:
    modules = [module for module in proof_modules() if module.path.startswith("tests/")]
    assert len(modules) > 100
    assert [line for module in modules for line in violations(module)] == []


@pytest.mark.parametrize(
    "source",
    [
        "from tests.house.test_sizes import ROOT",
        "from tests.house import sources, test_sizes",
        "def late():\n    import tests.house.test_sizes",
    ],
)
def test_an_import_from_a_test_file_is_caught(source: str) -> None:
    assert len(list(violations(sample("tests.unit.test_bad", source)))) == 1


@pytest.mark.parametrize("source", ["from tests.house.sources import test_modules", "import pytest", "from . import x"])
def test_an_import_from_elsewhere_is_let_through(source: str) -> None:
    assert list(violations(sample("tests.unit.test_good", source))) == []
