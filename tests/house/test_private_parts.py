"""Kernels see arrays only: nothing of the product relies on the private parts of CPython, numba or a wheel."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.house.sources import Module, product_modules, sample

# What numba documents for extensions, and what of it the byte type and the intrinsics use.
NUMBA = {"numba", "numba.extending", "numba.types"}
NATIVE_ONLY = {"from_address"}  # addresses of memory are the business of native/
FORBIDDEN = {
    "pythonapi": "calls the C API of Python",
    "getrefcount": "counts references, which only CPython has",
    "in_dll": "takes a symbol that a library happens to export",
    "_getframe": "looks into frames",
}


def found(module: Module) -> Iterator[str]:
    """Each use of a private part."""
    is_jit = module.name.startswith("logstore.native")
    for node in ast.walk(module.tree):
        line = f"{module.path}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [each.name for each in node.names]
            yield from (
                f"{line}: {name} is private to numba"
                for name in names
                if name.split(".")[0] == "numba" and name not in NUMBA
            )
        elif isinstance(node, ast.Attribute) and node.attr in FORBIDDEN:
            yield f"{line}: {node.attr} {FORBIDDEN[node.attr]}"
        elif isinstance(node, ast.Attribute) and node.attr in NATIVE_ONLY and not is_jit:
            yield f"{line}: {node.attr} outside of native/"
        elif isinstance(node, ast.BinOp) and any(map(_is_identity, ast.walk(node))):
            yield f"{line}: id() as an address"


def _is_identity(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "id"


def test_nothing_relies_on_private_parts() -> None:
    assert [line for module in product_modules() for line in found(module)] == []


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("logstore.native.compiling", "from numba.core import compiler"),
        ("logstore.native.compiling", "import numba.core.registry"),
        ("logstore.native.compiling", "from numba.core.registry import cpu_target"),
        ("logstore.log.append", "import ctypes\nctypes.pythonapi.PyList_New(0)"),
        ("logstore.columns.pool", "import sys\nsys.getrefcount(3)"),
        ("logstore.columns.pool", "address = id(array) + 16"),
        ("logstore.columns.pool", "import ctypes\nctypes.c_int64.from_address(3)"),
        ("logstore.codec.gzip", "import ctypes\nctypes.c_char.in_dll(library, 'isal_inflate')"),
    ],
)
def test_a_private_part_is_caught(name: str, source: str) -> None:
    assert len(list(found(sample(name, source)))) == 1


@pytest.mark.parametrize(
    "source",
    ["from numba.extending import intrinsic", "from numba import cfunc, njit, types", "known = id(thing) in seen"],
)
def test_documented_parts_are_let_through(source: str) -> None:
    assert list(found(sample("logstore.native.compiling", source))) == []
