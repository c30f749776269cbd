"""The compiled kernels: an object file per module, loaded through LLVM without importing numba.

Importing numba costs a quarter of a second, more than dumping a small file; its output is plain machine code that
needs only LLVM's loader. The object files are kept beside the sources, or in the user's cache when they cannot be
written, under names with the `fingerprint` of their sources, so a stale one is never loaded.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm

from .fingerprint import SOURCES, fingerprint, kernel_modules

_engines: dict[str, Any] = {}  # by module, never let go: threads run their code
_engines_lock = threading.Lock()


def function_address(module: str, name: str) -> int:
    """Address of the C function of kernel `name`, compiling its module first if this machine has not yet."""
    with _engines_lock:
        if module not in _engines:
            _engines[module] = _load(object_file(module))
        address: int = _engines[module].get_function_address(symbol(name))
    if address == 0:
        path = object_file(module)
        raise RuntimeError(f"{path} has no kernel {name}; its source was edited while it was compiled: delete it")
    return address


def symbol(name: str) -> str:
    """Symbol of kernel `name` in its object file."""
    return f"logstore_{name}"


def object_file(module: str) -> Path:
    """Path of the module's object file for this machine; compiles it when missing."""
    found = _find(module)
    if found is not None:
        return found
    if sys.stderr.isatty():
        sys.stderr.write(f"logstore: compiling its kernels ({module}) for this machine, once\n")
    return _compile(module)


def object_files() -> list[Path]:
    """Paths of all object files; compiles those that are missing, as many at a time as there are processors."""
    missing = missing_modules()
    if len(missing) > 1:
        workers = min(len(missing), os.cpu_count() or 1)
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            list(pool.map(_compile, missing))
    return [object_file(module) for module in kernel_modules()]


def missing_modules() -> list[str]:
    """Names of the modules that are not compiled for this machine yet."""
    return [module for module in kernel_modules() if _find(module) is None]


def processor() -> tuple[str, bool]:
    """The processor's name as LLVM knows it, and whether it has an instruction for CRC-32C."""
    features = llvm.get_host_cpu_features()
    return llvm.get_host_cpu_name(), bool(features.get("sse4.2") or features.get("crc"))


def _file_name(module: str) -> str:
    return f"{module}-{fingerprint(module)}.o"


def _find(module: str) -> Path | None:
    name = _file_name(module)
    places = (directory / name for directory in _cache_directories())
    return next((path for path in places if path.exists()), None)


def _compile(module: str) -> Path:
    written = getattr(importlib.import_module(f"{__package__}.{module}"), "object_code", None)
    if written is not None:
        return _store(_file_name(module), written())
    from .compiler import compile_module

    return _store(_file_name(module), compile_module(module))


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
