"""The compiled kernels: an object file per module, loaded without importing numba, and where it can be without LLVM.

Importing numba costs a quarter of a second, more than dumping a small file; its output is plain machine code that
needs only a loader: `object_loader`, or LLVM's for what that does not know. The object files are kept beside the
sources, or in the user's cache when they cannot be written, under names with the `fingerprint` of their sources, so a
stale one is never loaded.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from .fingerprint import SOURCES, fingerprint, kernel_modules
from .object_loader import load_object

if TYPE_CHECKING:
    from pathlib import Path

Addresses = Callable[[str], int]  # of the function of a name; 0: there is none

_loaded: dict[str, Addresses] = {}  # by module, never let go: threads run their code
_loading = threading.Lock()


def function_address(module: str, name: str) -> int:
    """Address of the C function of kernel `name`, compiling its module first if this machine has not yet."""
    with _loading:
        if module not in _loaded:
            _loaded[module] = _load(_find(module) or _compile(module))
        address = _loaded[module](symbol(name))
    if address == 0:
        path = _find(module)
        raise RuntimeError(f"{path} has no kernel {name}; its source was edited while it was compiled: delete it")
    return address


def symbol(name: str) -> str:
    """Symbol of kernel `name` in its object file."""
    return f"logstore_{name}"


def object_file(module: str) -> Path:
    """Path of the module's object file for this machine; compiles it when missing."""
    from pathlib import Path

    return Path(_find(module) or _compile(module))


def object_files() -> list[Path]:
    """Paths of all object files; compiles those that are missing, as many at a time as there are processors."""
    missing = missing_modules()
    if len(missing) > 1:
        from concurrent.futures import ProcessPoolExecutor
        from multiprocessing import get_context

        workers = min(len(missing), os.cpu_count() or 1)
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            list(pool.map(_compile_quietly, missing))
    return [object_file(module) for module in kernel_modules()]


def missing_modules() -> list[str]:
    """Names of the modules that are not compiled for this machine yet."""
    return [module for module in kernel_modules() if _find(module) is None]


def processor() -> tuple[str, bool]:
    """The processor's name as LLVM knows it, and whether it has an instruction for CRC-32C."""
    import llvmlite.binding as llvm

    features = llvm.get_host_cpu_features()
    return llvm.get_host_cpu_name(), bool(features.get("sse4.2") or features.get("crc"))


def _file_name(module: str) -> str:
    return f"{module}-{fingerprint(module)}.o"


def _find(module: str) -> str | None:
    name = _file_name(module)
    places = (os.path.join(directory, name) for directory in _cache_directories())
    return next((path for path in places if os.path.exists(path)), None)


def _compile(module: str) -> str:
    if sys.stderr.isatty():
        sys.stderr.write(f"logstore: compiling its kernels ({module}) for this machine, once\n")
    return _compile_quietly(module)


def _compile_quietly(module: str) -> str:
    from .compiler import compile_module

    return _store(_file_name(module), compile_module(module))


def _cache_directories() -> list[str]:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return [os.path.join(SOURCES, "__pycache__"), os.path.join(home, "logstore")]


def _store(name: str, content: bytes) -> str:
    from pathlib import Path

    errors = []
    for directory in map(Path, _cache_directories()):
        partial = directory / f"{name}.{os.getpid()}.tmp"
        try:
            directory.mkdir(parents=True, exist_ok=True)
            partial.write_bytes(content)
            partial.replace(directory / name)
        except OSError as error:
            errors.append(str(error))
            continue
        return str(directory / name)
    raise OSError("no place to keep the compiled kernels: " + "; ".join(errors))


def _load(path: str) -> Addresses:
    with open(path, "rb") as file:
        content = file.read()
    addresses = load_object(content)
    if addresses is None:
        return _load_by_llvm(content)
    return lambda name: addresses.get(name, 0)


def _load_by_llvm(content: bytes) -> Addresses:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(content))
    engine.finalize_object()
    address: Addresses = engine.get_function_address  # which keeps the engine
    return address
