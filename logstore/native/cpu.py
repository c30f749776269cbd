"""Levels of processors: the kernels are built once per level, and the best one that the processor can run is loaded.

A level is an LLVM name with additional instructions that kernels use (`kernels.scan.crc32c`). The system tells
the processor's features: Linux in /proc/cpuinfo, macOS by sysctl.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from typing import NamedTuple


class Level(NamedTuple):
    """Processor for which a library is built.

    Attributes:
        cpu: LLVM's name of a processor.
        features: LLVM's names of additional features, each with a `+`, joined by commas.
        needs: features that the processor must have, by their names in Linux's /proc/cpuinfo.
    """

    name: str
    cpu: str
    features: str
    needs: frozenset[str]


_V2 = "cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3"
_V3 = f"{_V2} avx avx2 bmi1 bmi2 f16c fma abm movbe xsave"


def _level(name: str, cpu: str, features: str = "", needs: str = "") -> Level:
    return Level(name, cpu, features, frozenset(needs.split()))


# The best first.
LEVELS = {
    "x86_64": [
        _level("x86-64-v3", "x86-64-v3", "+crc32,+sse4.2,+avx2", _V3),
        _level("x86-64-v2", "x86-64-v2", "+crc32,+sse4.2", _V2),
        _level("x86-64", "x86-64"),
    ],
    "aarch64": [_level("aarch64-crc", "generic", "+crc", "crc32"), _level("aarch64", "generic")],
}
_ARCHITECTURES = {"AMD64": "x86_64", "arm64": "aarch64"}
_CPUINFO = "/proc/cpuinfo"
_CPUINFO_SIZE = 8192  # bytes, which hold the first processor; the others have the same features
_SYSCTL_NAMES = ("machdep.cpu.features", "machdep.cpu.leaf7_features", "machdep.cpu.extfeatures")
_SYSCTL_SIZE = 4096  # bytes
_MACOS_NAMES = {  # of features for which macOS has another name than Linux's in capitals
    "sse4_1": "SSE4.1",
    "sse4_2": "SSE4.2",
    "pni": "SSE3",
    "abm": "LZCNT",
    "lahf_lm": "LAHF",
    "avx": "AVX1.0",
}


def level() -> Level:
    """Return the best level that this processor can run; raises as `levels`."""
    has = _features()
    return next(each for each in levels() if each.needs <= has)


def levels() -> list[Level]:
    """Return the levels of this processor's architecture, the best first; raise RuntimeError if there are none."""
    architecture = _architecture()
    if architecture not in LEVELS:
        raise RuntimeError(f"kernels run on x86-64 and ARM64, not on {architecture}; try NUMBA_DISABLE_JIT=1")
    return LEVELS[architecture]


def level_named(name: str) -> Level:
    """Return the level of a name; raises KeyError if there is none."""
    return {each.name: each for levels in LEVELS.values() for each in levels}[name]


def _architecture() -> str:
    machine = platform.machine()
    return _ARCHITECTURES.get(machine, machine)


def _features() -> set[str]:
    """Return the processor's features, by Linux's names; none where the system does not tell."""
    return _macos_features() if sys.platform == "darwin" else _linux_features()


def _linux_features() -> set[str]:
    if not os.path.exists(_CPUINFO):
        return set()
    with open(_CPUINFO, "rb") as file:
        text = file.read(_CPUINFO_SIZE).decode("ascii", "replace")
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            return set(value.split())
    return set()


def _macos_features() -> set[str]:
    """Return the features that macOS tells by `sysctl`; an Apple processor tells none, and has CRC."""
    if _architecture() == "aarch64":
        return {"crc32"}
    told = {word for name in _SYSCTL_NAMES for word in _sysctl(name).split()}
    names = {feature for levels in LEVELS.values() for level in levels for feature in level.needs}
    return {name for name in names if _MACOS_NAMES.get(name, name.upper()) in told}


def _sysctl(name: str) -> str:
    """Return a text of the macOS kernel; empty if it has none of that name."""
    ask = ctypes.CDLL(None).sysctlbyname
    size = ctypes.c_size_t(_SYSCTL_SIZE)
    text = ctypes.create_string_buffer(_SYSCTL_SIZE)
    return text.value.decode("ascii", "replace") if ask(name.encode(), text, ctypes.byref(size), None, 0) == 0 else ""
