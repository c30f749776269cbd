"""Device functions that are single instructions: their compiled form, by the name that the decorator gives them."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .byte_pointer import BYTE_POINTER


@intrinsic
def _load64(typingctx: Any, data: Any, position: Any) -> Any:
    """Unaligned little-endian load of 8 bytes."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), ir.IntType(64).as_pointer())
        return builder.load(pointer, align=1)

    return types.int64(BYTE_POINTER, types.int64), codegen


@intrinsic
def _store64(typingctx: Any, data: Any, position: Any, value: Any) -> Any:
    """Unaligned little-endian store of 8 bytes."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), ir.IntType(64).as_pointer())
        builder.store(arguments[2], pointer, align=1)
        return arguments[2]

    return types.int64(BYTE_POINTER, types.int64, types.int64), codegen


@intrinsic
def _wrap32(typingctx: Any, value: Any) -> Any:
    """The low 32 bits, sign-extended."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.sext(builder.trunc(arguments[0], ir.IntType(32)), ir.IntType(64))

    return types.int64(types.int64), codegen


@intrinsic
def _add64(typingctx: Any, left: Any, right: Any) -> Any:
    """A sum that may overflow."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.add(*arguments)

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def _mul64(typingctx: Any, left: Any, right: Any) -> Any:
    """The low 64 bits of a product."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.mul(*arguments)

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def _rotate64(typingctx: Any, value: Any, count: Any) -> Any:
    """Left rotation, which LLVM makes one instruction."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value, count = arguments
        rest = builder.sub(ir.Constant(ir.IntType(64), 64), count)
        return builder.or_(builder.shl(value, count), builder.lshr(value, rest))

    return types.int64(types.int64, types.int64), codegen


def _emit_prefetch(builder: Any, arguments: Any, is_for_writing: int) -> Any:
    byte_pointer, i32 = ir.IntType(8).as_pointer(), ir.IntType(32)
    pointer = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), byte_pointer)
    function_type = ir.FunctionType(ir.VoidType(), [byte_pointer, i32, i32, i32])
    function = builder.module.declare_intrinsic("llvm.prefetch", [byte_pointer], function_type)
    builder.call(function, [pointer, i32(is_for_writing), i32(3), i32(1)])  # to stay, data
    return ir.Constant(ir.IntType(64), 0)


@intrinsic
def _prefetch(typingctx: Any, words: Any, index: Any) -> Any:
    """Ask for a cache line that will be written soon."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _emit_prefetch(builder, arguments, 1)

    return types.int64(types.CPointer(types.int64), types.int64), codegen


@intrinsic
def _prefetch_bytes(typingctx: Any, data: Any, position: Any) -> Any:
    """Ask for a cache line that will be read soon."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _emit_prefetch(builder, arguments, 0)

    return types.int64(BYTE_POINTER, types.int64), codegen


def crc32c_instruction(machine: str, features: Mapping[str, bool]) -> str | None:
    """LLVM's name for the processor's CRC-32C of 8 bytes; None where it has none.

    Args:
        machine: as `platform.machine()` says it.
        features: LLVM's names of what the processor can do; Apple's processors do not tell and all have it.
    """
    if machine in ("x86_64", "AMD64"):
        has_it = features.get("crc32", False) and features.get("sse4.2", False)
        return "llvm.x86.sse42.crc32.64.64" if has_it else None
    if machine in ("aarch64", "arm64"):
        return "llvm.aarch64.crc32cx" if features.get("crc", machine == "arm64") else None
    return None


def emit_crc32c_word(builder: Any, instruction: str, crc: Any, word: Any) -> Any:
    """The instruction on two i64 values, as an i64: x86 takes the register as 64 bits, ARM as 32."""
    i32, i64 = ir.IntType(32), ir.IntType(64)
    register = i64 if ".x86." in instruction else i32
    function = builder.module.declare_intrinsic(instruction, (), ir.FunctionType(register, [register, i64]))
    if register is i64:
        return builder.call(function, [crc, word])
    return builder.zext(builder.call(function, [builder.trunc(crc, i32), word]), i64)


def _host_crc32c_instruction() -> str | None:
    return crc32c_instruction(platform.machine(), llvm.get_host_cpu_features())


@intrinsic
def _crc32c_word(typingctx: Any, crc: Any, word: Any) -> Any:
    """CRC-32C of 8 more bytes by the processor's own instruction; only reached where `has_crc32c` is 1."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        instruction = _host_crc32c_instruction()
        if instruction is None:
            return ir.Constant(ir.IntType(64), 0)
        return emit_crc32c_word(builder, instruction, *arguments)

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def _has_crc32c(typingctx: Any) -> Any:
    """1 where the processor computes CRC-32C itself, decided when the kernels are compiled for it."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return ir.Constant(ir.IntType(64), int(_host_crc32c_instruction() is not None))

    return types.int64(), codegen


INTRINSICS = {
    "load64": _load64,
    "store64": _store64,
    "wrap32": _wrap32,
    "add64": _add64,
    "mul64": _mul64,
    "rotate64": _rotate64,
    "prefetch": _prefetch,
    "prefetch_bytes": _prefetch_bytes,
    "has_crc32c": _has_crc32c,
    "crc32c_word": _crc32c_word,
}
