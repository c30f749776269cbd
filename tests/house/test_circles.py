"""No circle of imports: those in functions and under TYPE_CHECKING count, as they too are knowledge of each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tests.house.sources import Module, imported, product_modules, sample

Imports = dict[str, set[str]]


def imports_of(modules: Iterable[Module]) -> Imports:
    """The modules that each of `modules` imports, among these."""
    known = {module.name: module for module in modules}
    return {name: set(_imported(module, known)) for name, module in known.items()}


def _imported(module: Module, known: dict[str, Module]) -> Iterator[str]:
    for _, name, member in imported(module):
        if (found := f"{name}.{member}") in known or (found := name) in known:
            yield found


def circles(imports: Imports) -> list[list[str]]:
    """The groups of modules that reach each other, each sorted (Tarjan's strongly connected components)."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    path: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        numbers[module] = lowest[module] = len(numbers)
        path.append(module)
        for other in imports[module]:
            if other not in numbers:
                visit(other)
            if other in path:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == numbers[module]:
            group = path[path.index(module) :]
            del path[path.index(module) :]
            if len(group) > 1 or module in imports[module]:
                found.append(sorted(group))

    for module in imports:
        if module not in numbers:
            visit(module)
    return found


def test_no_modules_import_each_other() -> None:
    found = circles(imports_of(product_modules()))
    assert found == []


def test_a_circle_is_caught() -> None:
    planted = [
        sample("logstore.disk.a", "from .b import B"),
        sample("logstore.disk.b", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import c"),
        sample("logstore.disk.c", "def f():\n    import logstore.disk.a"),
        sample("logstore.disk.d", "from .a import A\nfrom ..layout.e import E"),
        sample("logstore.layout.e", "from . import e"),
    ]
    assert circles(imports_of(planted)) == [
        ["logstore.disk.a", "logstore.disk.b", "logstore.disk.c"],
        ["logstore.layout.e"],
    ]
    assert circles(imports_of(planted[:2] + planted[3:4])) == []
