"""Compiled forms of device functions that are a few LLVM instructions, by the names that `device.intrinsic` gives."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .byte_type import BYTE_POINTER


@intrinsic
def load64(typingctx: Any, data: Any, position: Any) -> Any:
    """Unaligned little-endian load of 8 bytes."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), ir.IntType(64).as_pointer())
        return builder.load(pointer, align=1)

    return types.int64(BYTE_POINTER, types.int64), codegen


@intrinsic
def store64(typingctx: Any, data: Any, position: Any, value: Any) -> Any:
    """Unaligned little-endian store of 8 bytes."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), ir.IntType(64).as_pointer())
        builder.store(arguments[2], pointer, align=1)
        return arguments[2]

    return types.int64(BYTE_POINTER, types.int64, types.int64), codegen


@intrinsic
def wrap32(typingctx: Any, value: Any) -> Any:
    """The low 32 bits, sign-extended."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.sext(builder.trunc(arguments[0], ir.IntType(32)), ir.IntType(64))

    return types.int64(types.int64), codegen


@intrinsic
def add64(typingctx: Any, left: Any, right: Any) -> Any:
    """A sum that may overflow."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.add(*arguments)

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def mul64(typingctx: Any, left: Any, right: Any) -> Any:
    """The low 64 bits of a product."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.mul(*arguments)

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def rotate64(typingctx: Any, value: Any, count: Any) -> Any:
    """Left rotation, which LLVM makes one instruction."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        value, count = arguments
        rest = builder.sub(ir.Constant(ir.IntType(64), 64), count)
        return builder.or_(builder.shl(value, count), builder.lshr(value, rest))

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def prefetch(typingctx: Any, buffer: Any, index: Any) -> Any:
    """Ask for a cache line, to be read and to stay."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte_pointer, i32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        pointer = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), byte_pointer)
        function_type = ir.FunctionType(ir.VoidType(), [byte_pointer, i32, i32, i32])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte_pointer], function_type)
        builder.call(function, [pointer, i32(0), i32(3), i32(1)])
        return ir.Constant(ir.IntType(64), 0)

    return types.int64(buffer, types.int64), codegen


@intrinsic
def bytes_at(typingctx: Any, address: Any) -> Any:
    """The bytes at an address."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.IntType(8).as_pointer())

    return BYTE_POINTER(types.int64), codegen


@intrinsic
def words_at(typingctx: Any, address: Any) -> Any:
    """The int64 words at an address."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())

    return types.CPointer(types.int64)(types.int64), codegen


@intrinsic
def call_write(typingctx: Any, address: Any, descriptor: Any, data: Any, size: Any) -> Any:
    """What the function at an address returns, which is as `write` of C."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        address, descriptor, data, size = arguments
        i64, pointer = ir.IntType(64), ir.IntType(8).as_pointer()
        function = builder.inttoptr(address, ir.FunctionType(i64, [ir.IntType(32), pointer, i64]).as_pointer())
        return builder.call(function, [builder.trunc(descriptor, ir.IntType(32)), data, size])

    return types.int64(types.int64, types.int64, BYTE_POINTER, types.int64), codegen
