"""Computes a hash of the kernels' sources and finds the versions of the packages that compile them.

Every start needs both, before anything large is imported. So versions are taken from the names of the packages'
metadata directories (PEP 376).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import xxhash

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ("native", "kernels", "layout")  # of the package; kernels use constants of the layout
COMPILERS = ("llvmlite", "numba", "numpy")


def sources_hash() -> str:
    """Return a hash of all sources of the kernels, in hexadecimal; raise RuntimeError if there are none."""
    digest, count = xxhash.xxh3_64(), 0
    for name, content in _sources():
        digest.update(name.encode())
        digest.update(content)
        count += 1
    if not count:
        raise RuntimeError(f"the kernels' sources are not in {PACKAGE}: install a wheel of logstore there")
    return digest.hexdigest()


def source_paths() -> list[str]:
    """Return the paths of all sources of the kernels, sorted; none from a zip."""
    folders = [os.path.join(PACKAGE, folder) for folder in FOLDERS]
    rooms = [room for folder in folders for room, _, _ in os.walk(folder)]
    return sorted(os.path.join(room, name) for room in rooms for name in _names(room) if name.endswith(".py"))


def _sources() -> Iterator[tuple[str, bytes]]:
    """Yield the path in the package and the content of each source, sorted, also from a zip (`--py-files`)."""
    if not os.path.isdir(PACKAGE):
        yield from _zipped_sources()
        return
    for path in source_paths():
        with open(path, "rb") as file:
            yield os.path.relpath(path, PACKAGE), file.read()


def _zipped_sources() -> Iterator[tuple[str, bytes]]:
    archive = PACKAGE
    while not os.path.isfile(archive):
        archive, below = os.path.dirname(archive), archive
        if archive == below:
            return
    prefix = os.path.relpath(PACKAGE, archive) + "/"
    folders = tuple(f"{prefix}{folder}/" for folder in FOLDERS)
    import zipfile

    with zipfile.ZipFile(archive) as package:
        for name in sorted(package.namelist()):
            if name.startswith(folders) and name.endswith(".py"):
                yield name.removeprefix(prefix), package.read(name)


def compiler_versions() -> str:
    """Return the versions of the compilers, as `llvmlite 0.50.0, numba 0.68.1, numpy 2.4.0`."""
    found: dict[str, str] = {}
    for directory in sys.path:
        for name in _names(directory):
            package, _, version = name.removesuffix(".dist-info").partition("-")
            if name.endswith(".dist-info") and package in COMPILERS:
                found.setdefault(package, version)
    return ", ".join(f"{name} {found.get(name, 'unknown')}" for name in COMPILERS)


def _names(directory: str) -> list[str]:
    return os.listdir(directory or ".") if os.path.isdir(directory or ".") else []
