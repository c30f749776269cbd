"""Builds the kernels' library for one level of processor, in a separate process.

    python -m logstore.native.build LEVEL local|release DIRECTORY ...

writes the library, and the manifest that `library` checks, into the first writable directory, and prints its path.
`library` sets the environment: numba reads the level from it, and the decorators of `device` compile. Without a linker
the object file is kept, which LLVM can load too.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
import tempfile

import xxhash

from .. import kernels
from ..errors import KernelBuildError
from . import cpu
from .fingerprint import compiler_versions, sources_hash
from .kernel import KERNELS
from .library import LIBRARY_SUFFIX, MANIFEST_SUFFIX, OBJECT_SUFFIX, Manifest

_LINKER = {"darwin": ["cc", "-dynamiclib", "-undefined", "dynamic_lookup"]}.get(
    sys.platform, ["cc", "-shared", "-nostdlib"]
)


def build(level: cpu.Level, directories: list[str], *, is_release: bool = False) -> str:
    """Build the library of a level, and return its path.

    Raises:
        KernelBuildError: none of the directories can be written.
        RuntimeError: a kernel breaks the rules, see `compiling.compile_kernels`.
    """
    sources = sources_hash()
    content, suffix = _linked(_object_file(level))
    manifest = Manifest(
        level.name,
        sources,
        compiler_versions(),
        xxhash.xxh3_64(content).hexdigest(),
        "yes" if is_release else "no",
    )
    name = f"{level.name}-{sources}{suffix}"
    errors = []
    for directory in directories:
        try:
            return _store(directory, name, content, manifest)
        except OSError as error:
            errors.append(str(error))
    raise KernelBuildError(f"no folder to keep the compiled kernels in can be written: {'; '.join(errors)}")


def _object_file(level: cpu.Level) -> bytes:
    import llvmlite.binding as llvm

    from .compiling import compile_kernels

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=level.cpu, features=level.features, opt=3, reloc="pic", codemodel="default"
    )
    for module in pkgutil.walk_packages(kernels.__path__, f"{kernels.__name__}."):
        importlib.import_module(module.name)
    return compile_kernels(KERNELS.values(), machine)


def _linked(content: bytes) -> tuple[bytes, str]:
    """Link an object file; returns the library and its suffix, or the object file if there is no linker."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = os.path.join(folder, "kernels.o"), os.path.join(folder, "kernels.so")
        with open(source, "wb") as file:
            file.write(content)
        try:
            subprocess.run([*_LINKER, "-o", target, source], check=True, capture_output=True)
        except (FileNotFoundError, subprocess.CalledProcessError):
            return content, OBJECT_SUFFIX
        with open(target, "rb") as file:
            return file.read(), LIBRARY_SUFFIX


def _store(directory: str, name: str, content: bytes, manifest: Manifest) -> str:
    """Write the library and then its manifest, each by a rename, as other processes may build too."""
    os.makedirs(directory, mode=0o755, exist_ok=True)
    path = os.path.join(directory, name)
    for target, data in ((path, content), (path + MANIFEST_SUFFIX, "\n".join(manifest).encode() + b"\n")):
        partial = f"{target}.{os.getpid()}"
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(partial, target)
    return path


def main(arguments: list[str]) -> None:
    """Build for the level, for this machine or for a wheel, into the directories of the arguments."""
    level, kind, *directories = arguments
    try:
        sys.stdout.write(build(cpu.level_named(level), directories, is_release=kind == "release") + "\n")
    except KernelBuildError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
