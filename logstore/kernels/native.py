"""The compiled kernels: one object file per machine and source, loaded through LLVM without importing numba.

Importing numba costs a quarter of a second, more than dumping a small file; its output is plain machine code that
needs only LLVM's loader. The object file is kept beside the sources, or in the user's cache when they cannot be
written, under a name made of the sources' hash, llvmlite's version and the processor, so a stale one is never loaded.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm

_engine: Any = None
_engine_lock = threading.Lock()  # a second engine would replace the first, whose code goes while threads run it

SOURCES = Path(__file__).parent
CONSTANTS = [SOURCES.parent / "layout" / "batch.py"]  # modules elsewhere whose numbers are compiled in


def function_address(name: str) -> int:
    """Address of the C function of kernel `name`, compiling all kernels first if this machine has not yet."""
    global _engine
    with _engine_lock:
        if _engine is None:
            _engine = _load(object_file())
    address: int = _engine.get_function_address(symbol(name))
    return address


def symbol(name: str) -> str:
    """Symbol of kernel `name` in the object file."""
    return f"logstore_{name}"


def object_file() -> Path:
    """Path of the object file for this machine; compiles it when missing."""
    name = f"kernels-{_fingerprint()}.o"
    for directory in _cache_directories():
        if (directory / name).exists():
            return directory / name
    from .compiler import compile_kernels

    if sys.stderr.isatty():
        sys.stderr.write("logstore: compiling its kernels for this machine, once\n")
    return _store(name, compile_kernels())


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for path in [*sorted(SOURCES.glob("*.py")), *CONSTANTS]:
        digest.update(path.read_bytes())
    digest.update(llvmlite.__version__.encode())
    digest.update(llvm.get_process_triple().encode())
    digest.update(llvm.get_host_cpu_name().encode())
    digest.update(llvm.get_host_cpu_features().flatten().encode())
    return digest.hexdigest()[:24]


def _cache_directories() -> list[Path]:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return [SOURCES / "__pycache__", Path(home) / "logstore"]


def _store(name: str, content: bytes) -> Path:
    errors = []
    for directory in _cache_directories():
        partial = directory / f"{name}.{os.getpid()}.tmp"
        try:
            directory.mkdir(parents=True, exist_ok=True)
            partial.write_bytes(content)
            partial.replace(directory / name)
        except OSError as error:
            errors.append(str(error))
            continue
        return directory / name
    raise OSError("no place to keep the compiled kernels: " + "; ".join(errors))


def _load(path: Path) -> Any:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(path.read_bytes()))
    engine.finalize_object()
    return engine
