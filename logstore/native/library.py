"""Finds, checks and loads the shared library of the compiled kernels, and has it built if there is none.

It is built once per level of processor (`build`), into the package's folder `native/lib` if that is writable, else into
the user's cache. A file beside it, the manifest, has the hashes of its sources and of the library itself. It is loaded
only if these are right, both files belong to this user or to root, and nobody else can write them; otherwise it is
built again, which needs the extra `[compile]`: numba and llvmlite. A library of a wheel may be built by other versions
of them, and is loaded whoever owns it if it has the hash that the wheel's RECORD gives: then it is as good as the
Python code beside it, as in a container that runs under another user id than its files. So is a library beside the
sources in a zip, such as Spark's `--py-files`: it is loaded from a temporary file.
"""

from __future__ import annotations

import base64
import ctypes
import glob
import hashlib
import importlib.util
import os
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import NamedTuple
from zipimport import zipimporter

import xxhash

from ..calls import SHORT, alone
from ..errors import KernelBuildError
from . import cpu
from .device import BUILDING_VARIABLE
from .fingerprint import COMPILERS, PACKAGE, compiler_versions, sources_hash

LIBRARY_SUFFIX, OBJECT_SUFFIX, MANIFEST_SUFFIX = ".so", ".o", ".manifest"
SYMBOL_PREFIX = "logstore_"
DISTRIBUTION = "logstore_kafka"  # the name of the wheel, as its files have it

Addresses = Callable[[str], int]  # address of a symbol's function; 0 if there is none

_loading = [threading.Lock()]
_loaded: list[tuple[str, Addresses]] = []  # path and addresses once loaded; never unloaded, as threads run its code
# another thread of the parent may hold the old lock for ever: a first load may build the library
os.register_at_fork(after_in_child=lambda: _loading.__setitem__(0, threading.Lock()))


class Manifest(NamedTuple):
    """Content of a manifest: what a library was built from.

    Attributes:
        library_hash: xxh3 of the file, in hexadecimal.
        is_release: built for other machines, whose compilers may have other versions.
    """

    level: str
    sources: str
    versions: str
    library_hash: str
    is_release: str = "no"


def function_address(name: str) -> int:
    """Return the address of the C function of kernel `name`; first builds the library if none can be trusted.

    Raises:
        KernelBuildError: there is no library to be trusted, and none can be built.
        RuntimeError: the library has no such kernel.
    """
    path, addresses = _library()
    address = addresses(f"{SYMBOL_PREFIX}{name}")
    if address == 0:
        raise RuntimeError(f"{path} has no kernel {name}; its source was edited while it was built: delete it")
    return address


def library_path() -> str:
    """Return the path of the library; builds it if none can be trusted."""
    return find() or _build()


def find() -> str | None:
    """Return the path of a library for this processor and these sources that can be trusted; None if there is none."""
    return next((path for path in _candidates() if distrust(path) is None), None)


def distrusted() -> list[str]:
    """Return why existing libraries for this processor and these sources are not loaded."""
    return [reason for path in _candidates() if (reason := distrust(path)) is not None]


def _candidates() -> list[str]:
    name = f"{cpu.level().name}-{sources_hash()}"
    paths = [
        os.path.join(directory, name + suffix)
        for directory in directories()
        for suffix in (LIBRARY_SUFFIX, OBJECT_SUFFIX)
    ]
    return [path for path in paths if os.path.exists(path)]


def distrust(path: str) -> str | None:
    """Return why the library at `path` is not loaded; None if it can be trusted."""
    if _is_recorded(path):
        return None
    manifest_path = path + MANIFEST_SUFFIX
    for each in (os.path.dirname(path), path, manifest_path):
        if not os.path.exists(each):
            return f"{each} is missing"
        status = os.stat(each)
        if status.st_uid not in (0, os.geteuid()):
            return f"{each} belongs to user {status.st_uid}, not to this one or root"
        if status.st_mode & (stat.S_IWOTH | (stat.S_IWGRP if each != os.path.dirname(path) else 0)):
            return f"{each} can be written by others: mode {stat.S_IMODE(status.st_mode):o}"
    with open(manifest_path, encoding="utf-8", errors="replace") as file:
        lines = file.read().splitlines()
    if len(lines) != len(Manifest._fields):
        return f"{manifest_path} has {len(lines)} lines, not {len(Manifest._fields)}"
    manifest = Manifest(*lines)
    with open(path, "rb") as library:
        found_hash = xxhash.xxh3_64(library.read()).hexdigest()
    if found_hash != manifest.library_hash:
        return f"{path} is damaged: its hash is {found_hash}, not {manifest.library_hash}"
    if manifest.is_release != "yes" and manifest.versions != compiler_versions():
        return f"{path} was built by {manifest.versions}"
    return None


def _is_recorded(path: str) -> bool:
    """Tell whether a wheel brought the library, with just these bytes: its RECORD is beside the package (PEP 376)."""
    root = os.path.dirname(PACKAGE)
    name = os.path.relpath(path, root).replace(os.sep, "/")
    for record in glob.glob(os.path.join(glob.escape(root), f"{DISTRIBUTION}-*.dist-info", "RECORD")):
        with open(record, encoding="utf-8", errors="replace") as file:
            recorded = next((line for line in file if line.startswith(f"{name},sha256=")), None)
        if recorded is not None:
            with open(path, "rb") as library:
                digest = hashlib.sha256(library.read()).digest()
            found = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            return recorded.split(",")[1] == f"sha256={found}"
    return False


def directories() -> list[str]:
    """Return the places of libraries: the package's folder, and the user's cache if there is a home directory."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(cache):
        cache = os.path.join(os.path.expanduser("~"), ".cache")
    found = [os.path.join(PACKAGE, "native", "lib")]
    return [*found, os.path.join(cache, "logstore")] if os.path.isabs(cache) else found


def _library() -> tuple[str, Addresses]:
    with alone(SHORT), _loading[0]:
        if not _loaded:
            _loaded.append(_load_from_zip() or _load(library_path()))
        return _loaded[0]


def _load_from_zip() -> tuple[str, Addresses] | None:
    """Load the library that lies beside these sources in a zip; return None where there is none."""
    loader: object = getattr(cpu.__spec__, "loader", None)
    if not isinstance(loader, zipimporter):
        return None
    path = os.path.join(PACKAGE, "native", "lib", f"{cpu.level().name}-{sources_hash()}{LIBRARY_SUFFIX}")
    try:
        content = loader.get_data(path)
    except OSError:
        return None
    with tempfile.NamedTemporaryFile(suffix=LIBRARY_SUFFIX) as file:
        file.write(content)
        file.flush()
        return path, _load(file.name)[1]


def build_release(directory: str) -> list[str]:
    """Build the libraries of a wheel into a directory, one per level of this architecture; return their paths."""
    levels = [level for level in cpu.levels() if level.needs]
    return [_built(level, [directory], is_release=True) for level in levels]


def _build() -> str:
    level = cpu.level()
    missing = [name for name in COMPILERS if importlib.util.find_spec(name) is None]
    if missing:
        reasons = "; ".join(distrusted()) or f"none in {' or '.join(directories())}"
        raise KernelBuildError(
            f"no library of compiled kernels for {level.name} can be loaded ({reasons}), and none can be built without "
            f"{' and '.join(missing)}: install a wheel, or pip install 'logstore-kafka[compile]'"
        )
    if sys.stderr is not None and sys.stderr.isatty():  # None in a process without standard error
        sys.stderr.write(f"logstore: building its kernels for {level.name}, once (half a minute)\n")
    return _built(level, directories())


def _built(level: cpu.Level, places: list[str], *, is_release: bool = False) -> str:
    """Build the library in a separate process, so that this one does not import numba; return its path."""
    environment = {
        **os.environ,
        BUILDING_VARIABLE: "1",
        "PYTHONHASHSEED": "0",  # else names of symbols differ from build to build
        "NUMBA_DISABLE_JIT": "0",
        "NUMBA_CPU_NAME": level.cpu,
        "NUMBA_CPU_FEATURES": level.features,
        "NUMBA_OPT": "0",  # the linked module is optimized once, as a whole
        "PYTHONPATH": os.pathsep.join([os.path.dirname(PACKAGE), *sys.path]),
    }
    kind = "release" if is_release else "local"
    command = [sys.executable, "-m", "logstore.native.build", level.name, kind, *places]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = done.stderr.strip().rpartition("\n")[2]
        raise KernelBuildError(f"the kernels cannot be built for {level.name}: {last} ({' '.join(command)} says more)")
    return done.stdout.strip()


def _load(path: str) -> tuple[str, Addresses]:
    if path.endswith(OBJECT_SUFFIX):
        return path, _load_object(path)
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise KernelBuildError(
            "The library of compiled kernels cannot be loaded",
            path=path,
            found=str(error),
            advice="where its file system is mounted noexec, install elsewhere; of a zip, set TMPDIR",
        ) from error

    def address(name: str) -> int:
        return ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 if hasattr(library, name) else 0

    return path, address


def _load_object(path: str) -> Addresses:
    """Load an object file by LLVM, if there was no linker."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_path(path))
    engine.finalize_object()
    address: Addresses = engine.get_function_address  # a bound method, which keeps the engine alive
    return address
