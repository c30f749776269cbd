"""Compiled forms of the intrinsics of `crc32c`: an instruction for 8 bytes, and folding of many."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from typing import Any

from llvmlite import ir
from numba import types

from ...native.byte_type import BYTE_POINTER
from ...native.intrinsics import emitted
from .crc_folding import emit_crc32c_word, emit_folding

_I64 = ir.IntType(64)


def crc32c_instruction(machine: str, features: Mapping[str, bool]) -> str | None:
    """Return LLVM's name of the processor's CRC-32C instruction for 8 bytes; None if it has none.

    Args:
        machine: of `platform.machine()`.
        features: whether the processor has a feature, by LLVM's name; Apple's do not list `crc`, and all have it.
    """
    if machine in ("x86_64", "AMD64"):
        has_it = features.get("crc32", False) and features.get("sse4.2", False)
        return "llvm.x86.sse42.crc32.64.64" if has_it else None
    if machine in ("aarch64", "arm64"):
        return "llvm.aarch64.crc32cx" if features.get("crc", machine == "arm64") else None
    return None


def folding_size(features: Mapping[str, bool]) -> int:
    """Return how many bytes one instruction folds; 0 if folding is not faster than `crc32c_instruction`."""
    if not all(features.get(name, False) for name in ("crc32", "sse4.2", "pclmul", "vpclmulqdq", "avx2")):
        return 0
    return 64 if features.get("avx512f", False) else 32


def _target_features() -> dict[str, bool]:
    """Return the features that the code may use, which `native.build` gives to numba."""
    names = os.environ["NUMBA_CPU_FEATURES"].split(",")
    return {name[1:]: name[0] == "+" for name in names if name}


def _target_instruction() -> str | None:
    return crc32c_instruction(platform.machine(), _target_features())


def _emit_word(builder: Any, crc: Any, word: Any) -> Any:
    """Emit the processor's instruction for 8 bytes; it runs only if `has_crc32c` is 1."""
    instruction = _target_instruction()
    return _I64(0) if instruction is None else emit_crc32c_word(builder, instruction, crc, word)


def _emit_folded(builder: Any, crc: Any, data: Any, start: Any, end: Any) -> Any:
    """Emit the folding of whole steps; it runs only if `has_folding` is 1."""
    size = folding_size(_target_features())
    if size == 0:
        return _I64(0)
    return emit_folding(builder, size, crc, builder.gep(data, [start]), builder.gep(data, [end]))


_i64 = types.int64
# constants of the compiled kernels, which are built for one processor
has_crc32c = emitted(_i64(), lambda builder: _I64(int(_target_instruction() is not None)))
has_folding = emitted(_i64(), lambda builder: _I64(int(folding_size(_target_features()) > 0)))
crc32c_word = emitted(_i64(_i64, _i64), _emit_word)
crc32c_folded = emitted(_i64(_i64, BYTE_POINTER, _i64, _i64), _emit_folded)
