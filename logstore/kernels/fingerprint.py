"""Which sources the kernels of a module are made of, and a hash that changes with any of them.

A module is compiled by itself, so an edit asks for the modules anew that import what was edited, and for no other. The
imports are read from the text: the hash is needed at every start, before anything is known of numba.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

SOURCES = Path(__file__).parent
COMPILERS = (
    "byte_pointer",
    "compiler",
    "intrinsics",
    "kernel",
    "list_intrinsics",
    "python_function",
)  # make its machine code

_IMPORT = re.compile(r"^from (\.+)([\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)
_KERNEL = re.compile(r"^@kernel\(|^def object_code\(", re.MULTILINE)  # the latter are written for LLVM itself


def kernel_modules() -> list[str]:
    """Names of the modules that have kernels, sorted."""
    paths = sorted(SOURCES.glob("*.py"))
    return [path.stem for path in paths if _KERNEL.search(read_source(path)[0].decode())]


def fingerprint(module: str) -> str:
    """A hash of the module's sources, llvmlite's version and the processor, in hexadecimal."""
    digest = hashlib.sha256()
    for path in sources_of(module):
        digest.update(read_source(path)[0])
    digest.update(llvmlite.__version__.encode())
    digest.update(llvm.get_process_triple().encode())
    digest.update(llvm.get_host_cpu_name().encode())
    digest.update(llvm.get_host_cpu_features().flatten().encode())
    return digest.hexdigest()[:24]


def sources_of(module: str) -> list[Path]:
    """The module, all that it imports of this library, directly or not, and the compiler; sorted."""
    found: set[Path] = set()
    waiting = [SOURCES / f"{name}.py" for name in (module, *COMPILERS)]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting.extend(read_source(path)[1])
    return sorted(found)


@cache
def read_source(path: Path) -> tuple[bytes, list[Path]]:
    """Content of a module, and the files of this library that it imports; read once in a process."""
    content = path.read_bytes()
    imported: list[Path] = []
    for dots, name, names in _IMPORT.findall(content.decode()):
        package = path.parents[len(dots) - 1]
        module = package.joinpath(*name.split(".")) if name else package
        inside = re.findall(r"\w+", names) if module.is_dir() else []
        candidates = [module.with_suffix(".py"), *(module / f"{each}.py" for each in inside)]
        imported.extend(candidate for candidate in candidates if candidate.is_file())
    return content, imported
