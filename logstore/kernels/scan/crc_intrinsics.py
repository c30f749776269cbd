"""Compiled forms of the intrinsics of `crc32c`: the processor's instruction for 8 bytes."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from typing import Any

from llvmlite import ir
from numba import types

from ...native.intrinsics import emitted

_I32, _I64 = ir.IntType(32), ir.IntType(64)


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


def _target_features() -> dict[str, bool]:
    """Return the features that the code may use, which `native.build` gives to numba."""
    names = os.environ["NUMBA_CPU_FEATURES"].split(",")
    return {name[1:]: name[0] == "+" for name in names if name}


def _target_instruction() -> str | None:
    return crc32c_instruction(platform.machine(), _target_features())


def emit_crc32c_word(builder: Any, instruction: str, crc: Any, word: Any) -> Any:
    """Emit the CRC-32C instruction on two i64 values; returns an i64. x86 takes the register as 64 bits, ARM as 32."""
    register = _I64 if ".x86." in instruction else _I32
    function = builder.module.declare_intrinsic(instruction, (), ir.FunctionType(register, [register, _I64]))
    if register is _I64:
        return builder.call(function, [crc, word])
    return builder.zext(builder.call(function, [builder.trunc(crc, _I32), word]), _I64)


def _emit_word(builder: Any, crc: Any, word: Any) -> Any:
    # without an instruction it never runs: `has_crc32c` is 0
    instruction = _target_instruction()
    return _I64(0) if instruction is None else emit_crc32c_word(builder, instruction, crc, word)


_i64 = types.int64
# a constant of the compiled kernels, which are built for one processor
has_crc32c = emitted(_i64(), lambda builder: _I64(int(_target_instruction() is not None)))
crc32c_word = emitted(_i64(_i64, _i64), _emit_word)
