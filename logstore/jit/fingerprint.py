"""Computes a hash of the kernels' sources and finds the versions of the packages that compile them.

Every start needs both, before anything large is imported. So versions are taken from the names of the packages'
metadata directories (PEP 376).
"""

from __future__ import annotations

import os
import sys

import xxhash

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ("jit", "kernels", "layout")  # of the package; kernels use constants of the layout
COMPILERS = ("llvmlite", "numba", "numpy")


def sources_hash() -> str:
    """Return a hash of all sources of the kernels, in hexadecimal."""
    digest = xxhash.xxh3_64()
    for path in source_paths():
        digest.update(os.path.relpath(path, PACKAGE).encode())
        with open(path, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def source_paths() -> list[str]:
    """Return the paths of all sources of the kernels, sorted."""
    folders = [os.path.join(PACKAGE, folder) for folder in FOLDERS]
    rooms = [room for folder in folders for room, _, _ in os.walk(folder)]
    return sorted(os.path.join(room, name) for room in rooms for name in _names(room) if name.endswith(".py"))


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
