"""Which sources the kernels of a module are made of, and a hash that changes with any of them.

A module is compiled by itself, so an edit asks for the modules anew that import what was edited, and for no other. The
imports are read from the text: the hash is needed at every start, before anything is known of numba. For the same
reason nothing is imported for it that takes long: LLVM is not asked for the processor where Linux tells.
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from importlib.machinery import PathFinder

import xxhash

SOURCES = os.path.dirname(os.path.abspath(__file__))
COMPILERS = (
    "byte_pointer",
    "compiler",
    "intrinsics",
    "kernel",
    "write_intrinsics",
    "python_function",
)  # make its machine code

_IMPORT = re.compile(r"^from (\.+)([\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)
_KERNEL = re.compile(r"^@kernel\(", re.MULTILINE)
_PROCESSOR = re.compile(  # of /proc/cpuinfo, on x86-64 and ARM64: what it is, and what it can do
    rb"^(?:vendor_id|cpu family|model|flags|CPU (?:implementer|architecture|variant|part)|Features)[ \t]*:.*",
    re.MULTILINE,
)
_CPUINFO_SIZE = 8192  # bytes; the first processor is in them, whose answer is also that of the others


def kernel_modules() -> list[str]:
    """Names of the modules that have kernels, sorted."""
    names = sorted(name for name in os.listdir(SOURCES) if name.endswith(".py"))
    return [
        name.removesuffix(".py")
        for name in names
        if _KERNEL.search(read_source(os.path.join(SOURCES, name))[0].decode())
    ]


def fingerprint(module: str) -> str:
    """A hash of the module's sources, llvmlite's version and the processor, in hexadecimal."""
    digest = xxhash.xxh3_128()
    for path in sources_of(module):
        digest.update(read_source(path)[0])
    digest.update(_machine())
    return digest.hexdigest()[:24]


def sources_of(module: str) -> list[str]:
    """Paths of the module, all that it imports of this library, directly or not, and the compiler; sorted."""
    found: set[str] = set()
    waiting = [os.path.join(SOURCES, f"{name}.py") for name in (module, *COMPILERS)]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting.extend(read_source(path)[1])
    return sorted(found)


@cache
def read_source(path: str) -> tuple[bytes, list[str]]:
    """Content of a module, and the files of this library that it imports; read once in a process."""
    content = _read(path)
    imported: list[str] = []
    for dots, name, names in _IMPORT.findall(content.decode()):
        package = path
        for _ in dots:
            package = os.path.dirname(package)
        module = os.path.join(package, *name.split(".")) if name else package
        inside = re.findall(r"\w+", names) if os.path.isdir(module) else []
        candidates = [f"{module}.py", *(os.path.join(module, f"{each}.py") for each in inside)]
        imported.extend(candidate for candidate in candidates if os.path.isfile(candidate))
    return content, imported


@cache
def _machine() -> bytes:
    """What machine code depends on besides its sources: who made it, and what it runs on."""
    system = f"{sys.platform} {os.uname().machine}".encode()
    return b"\n".join([_llvmlite_version(), system, _linux_processor() or _llvm_processor()])


def _llvmlite_version() -> bytes:
    """The text of llvmlite's version, without importing it."""
    spec = PathFinder.find_spec("llvmlite")
    for directory in (spec and spec.submodule_search_locations) or ():
        path = os.path.join(directory, "_version.py")
        if os.path.isfile(path):
            return _read(path)
    import llvmlite

    return str(llvmlite.__version__).encode()


def _linux_processor() -> bytes:
    """What Linux tells of the first processor; empty where it does not tell all that LLVM would."""
    try:
        told = _read("/proc/cpuinfo", _CPUINFO_SIZE)
    except OSError:
        return b""
    lines = list(dict.fromkeys(_PROCESSOR.findall(told.partition(b"\n\n")[0])))
    return b"\n".join(lines) if any(line.startswith((b"flags", b"Features")) for line in lines) else b""


def _llvm_processor() -> bytes:
    import llvmlite.binding as llvm

    return f"{llvm.get_process_triple()}\n{llvm.get_host_cpu_name()}\n{llvm.get_host_cpu_features().flatten()}".encode()


def _read(path: str, size: int = -1) -> bytes:
    with open(path, "rb") as file:
        return file.read(size)
