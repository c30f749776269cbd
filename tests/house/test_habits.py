"""No error is swallowed, nothing is printed by the library, and all that is public says what it is."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.house.sources import ROOT, Module, product_modules, sample, test_modules

EVERYTHING = {"Exception", "BaseException"}
EMPTY_WORDS = {"util", "utils", "helper", "helpers", "manager", "managers", "misc", "common"}
CHANCE = {"secrets", "token_hex", "urandom"}
SEEDED = {"Random", "default_rng"}
FOLDERS = ["logstore", "tools", "spark_dumps", "tests", "benchmarks"]

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def swallowed(module: Module) -> list[str]:
    """Handlers without a type, and handlers of everything that neither raise nor use what they caught."""
    found = []
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ExceptHandler) and not _is_honest(node):
            found.append(f"{module.path}:{node.lineno}: swallows everything")
    return found


def _is_honest(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return False
    caught = {node.id for node in ast.walk(handler.type) if isinstance(node, ast.Name)}
    inside = [node for statement in handler.body for node in ast.walk(statement)]
    used = {node.id for node in inside if isinstance(node, ast.Name)}
    return not caught & EVERYTHING or handler.name in used or any(isinstance(node, ast.Raise) for node in inside)


def printed(module: Module) -> list[str]:
    return [
        f"{module.path}:{node.lineno}: prints"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def undocumented(module: Module, documented_elsewhere: frozenset[str] = frozenset()) -> list[str]:
    """The module and its public classes, functions and methods that have no docstring; an empty file needs none.

    Methods named in `documented_elsewhere` are those of a protocol, which says what they do.
    """
    tree = module.tree
    found = [f"{module.path}: no docstring"] if tree.body and not ast.get_docstring(tree) else []
    found += [
        f"{module.path}:{node.lineno}: {node.name} has no docstring"
        for node in _public(tree.body)
        if not ast.get_docstring(node) and node.name not in documented_elsewhere
    ]
    return found


def protocol_methods(modules: list[Module]) -> frozenset[str]:
    """Names of the methods of all protocols, and of what follows the pass of an audit."""
    return frozenset(
        method.name
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ClassDef) and (node.name == "Follower" or "Protocol" in map(ast.unparse, node.bases))
        for method in node.body
        if isinstance(method, ast.FunctionDef) and ast.get_docstring(method)
    )


def _public(body: list[ast.stmt]) -> Iterator[Definition]:
    for node in body:
        if isinstance(node, Definition) and not node.name.startswith("_"):
            if any(ast.unparse(one).startswith(("overload", "rule(")) for one in node.decorator_list):
                continue  # what it says is said by the one behind, or by the decorator
            yield node
            if isinstance(node, ast.ClassDef):
                yield from _public(node.body)


def empty_names(paths: list[str]) -> list[str]:
    """Files and folders whose name does not say what is in them."""
    return [path for path in paths if any(set(part.split(".")[0].split("_")) & EMPTY_WORDS for part in path.split("/"))]


def chances(module: Module) -> list[str]:
    """What is another thing each time: imports that draw it, and generators that are given no seed."""
    found = []
    for node in ast.walk(module.tree):
        names: set[str] = set()
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = {alias.name for alias in node.names} & CHANCE
        elif isinstance(node, ast.Call) and not node.args:
            names = {getattr(node.func, "attr", getattr(node.func, "id", ""))} & SEEDED
        found += [
            f"{module.path}:{node.lineno}: {name} differs each time, see tests/support/sampling" for name in names
        ]
    return found


def library() -> list[Module]:
    return [module for module in product_modules() if module.name.split(".")[0] == "logstore"]


def test_no_error_is_swallowed() -> None:
    assert [line for module in product_modules() for line in swallowed(module)] == []


def test_the_library_prints_nothing() -> None:
    assert [line for module in library() for line in printed(module)] == []


def test_all_that_is_public_has_a_docstring() -> None:
    elsewhere = protocol_methods(library())
    assert [line for module in library() for line in undocumented(module, elsewhere)] == []


def test_files_and_folders_are_named_after_what_is_in_them() -> None:
    paths = [str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    assert len(paths) > 100
    assert empty_names(paths) == []


def test_a_test_tries_the_same_each_time() -> None:
    assert [line for module in test_modules() for line in chances(module)] == []


@pytest.mark.parametrize("source", ["import secrets", "from secrets import token_hex", "Random()", "np.default_rng()"])
def test_a_draw_without_a_seed_is_caught(source: str) -> None:
    assert len(chances(sample("tests.unit.test_bad", source))) == 1
    assert chances(sample("tests.unit.test_good", "import random\nrandom.Random(7)\ndefault_rng(1)")) == []


@pytest.mark.parametrize(
    "handler",
    ["except:\n    raise", "except Exception:\n    pass", "except (ValueError, BaseException) as e:\n    x = None"],
)
def test_a_handler_that_swallows_is_caught(handler: str) -> None:
    assert swallowed(sample("logstore.disk.bad", f"try:\n    work()\n{handler}\n"))


@pytest.mark.parametrize(
    "handler",
    ["except ValueError:\n    pass", "except Exception as e:\n    keep(e)", "except BaseException:\n    raise"],
)
def test_an_honest_handler_is_let_through(handler: str) -> None:
    assert swallowed(sample("logstore.disk.good", f"try:\n    work()\n{handler}\n")) == []


def test_a_print_is_caught() -> None:
    assert printed(sample("logstore.disk.bad", "def f():\n    print('x')"))
    assert printed(sample("logstore.disk.good", "def f(out):\n    out.print('x')")) == []


@pytest.mark.parametrize(
    "source",
    [
        "x = 1",
        '"""M."""\ndef f(): 1',
        '"""M."""\nclass C: x = 1',
        '"""M."""\nclass C:\n    """C."""\n    def f(self): 1',
    ],
)
def test_a_missing_docstring_is_caught(source: str) -> None:
    assert len(undocumented(sample("logstore.disk.bad", source))) == 1


@pytest.mark.parametrize("source", ["", '"""M."""\ndef _f(): pass\nclass _C:\n    def f(self): pass'])
def test_private_names_need_no_docstring(source: str) -> None:
    assert undocumented(sample("logstore.disk.good", source)) == []


@pytest.mark.parametrize(
    "path", ["logstore/utils.py", "tools/dump/text_helpers.py", "tests/common/x.py", "a/misc_b.py"]
)
def test_an_empty_name_is_caught(path: str) -> None:
    assert empty_names([path, "logstore/disk/names.py", "tools/commons.py"]) == [path]
