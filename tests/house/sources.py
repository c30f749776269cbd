"""The modules that the rules of the house are about, parsed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
INSTALLED_AS = {  # folder to package
    "logstore": "logstore",
    "tools": "logstore_tools",
    "pyspark_kafka_segments": "pyspark_kafka_segments",
    "spark_dumps": "spark_dumps",
}
PROOFS = ("tests", "benchmarks")


class Module(NamedTuple):
    """A module by its installed name; `package` is what its relative imports start from."""

    name: str
    package: str
    path: str
    source: str

    @property
    def tree(self) -> ast.Module:
        return _parsed(self.source)


@cache
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


def forget() -> None:
    _parsed.cache_clear()


def sample(name: str, source: str) -> Module:
    """A module that is not there, to try a rule on."""
    return Module(name, name.rpartition(".")[0], name.replace(".", "/") + ".py", source)


@cache
def product_modules() -> tuple[Module, ...]:
    return tuple(
        _module(path, folder) for folder in INSTALLED_AS for path in sorted((ROOT / folder).rglob("*.py"))
    )  # fmt: skip


@cache
def proof_modules() -> tuple[Module, ...]:
    """All modules of tests and benchmarks."""
    return tuple(_module(path, folder) for folder in PROOFS for path in sorted((ROOT / folder).rglob("*.py")))


@cache
def test_modules() -> tuple[Module, ...]:
    """All modules whose functions pytest runs."""
    return tuple(module for module in proof_modules() if is_test_file(module.name))


def is_test_file(name: str) -> bool:
    """Whether pytest runs the functions of a module of this name."""
    return name.rpartition(".")[2].startswith(("test_", "bench_"))


test_modules.__test__ = False  # type: ignore[attr-defined]


def _module(path: Path, folder: str) -> Module:
    inside = path.relative_to(ROOT / folder).with_suffix("").parts
    parts = [INSTALLED_AS.get(folder, folder), *inside]
    is_package = parts[-1] == "__init__"
    name = ".".join(parts[:-1] if is_package else parts)
    return Module(name, ".".join(parts[:-1]), str(path.relative_to(ROOT)), path.read_text())


def imported(module: Module) -> Iterator[tuple[int, str, str]]:
    """Line, absolute module, and the name in it or "", of every import, those of functions included."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = module.package.split(".")
            base = parts[: len(parts) - node.level + 1] if node.level else []
            name = ".".join([*base, *([node.module] if node.module else [])])
            yield from ((node.lineno, name, alias.name) for alias in node.names)
