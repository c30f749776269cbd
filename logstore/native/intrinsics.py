"""Compiled forms, a few LLVM instructions each, of the device functions that `device.intrinsic` declares.

Each does what the Python function does that is declared with its name.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .byte_type import BYTE_POINTER

_I8, _I32, _I64 = ir.IntType(8), ir.IntType(32), ir.IntType(64)


def emitted(signature: Any, emit: Callable[..., Any]) -> Any:
    """Declare an intrinsic with a numba signature; `emit(builder, *arguments)` generates its instructions."""

    def declared(typingctx: Any, *argument_types: Any) -> Any:
        return signature, lambda context, builder, signature, arguments: emit(builder, *arguments)

    declared.__signature__ = inspect.signature(emit)  # type: ignore[attr-defined]  # numba counts the arguments by it
    return intrinsic(declared)


def _word_at(builder: Any, data: Any, position: Any) -> Any:
    return builder.bitcast(builder.gep(data, [position]), _I64.as_pointer())


def _store64(builder: Any, data: Any, position: Any, value: Any) -> Any:
    builder.store(value, _word_at(builder, data, position), align=1)
    return value


def _rotate64(builder: Any, value: Any, count: Any) -> Any:
    """Rotate left; LLVM makes one instruction of it."""
    return builder.or_(builder.shl(value, count), builder.lshr(value, builder.sub(_I64(64), count)))


def _call_write(builder: Any, address: Any, descriptor: Any, data: Any, size: Any) -> Any:
    function = builder.inttoptr(address, ir.FunctionType(_I64, [_I32, _I8.as_pointer(), _I64]).as_pointer())
    return builder.call(function, [builder.trunc(descriptor, _I32), data, size])


_i64 = types.int64
load64 = emitted(_i64(BYTE_POINTER, _i64), lambda builder, data, at: builder.load(_word_at(builder, data, at), align=1))
store64 = emitted(_i64(BYTE_POINTER, _i64, _i64), _store64)
wrap32 = emitted(_i64(_i64), lambda builder, value: builder.sext(builder.trunc(value, _I32), _I64))
add64 = emitted(_i64(_i64, _i64), lambda builder, left, right: builder.add(left, right))
mul64 = emitted(_i64(_i64, _i64), lambda builder, left, right: builder.mul(left, right))
rotate64 = emitted(_i64(_i64, _i64), _rotate64)
bytes_at = emitted(BYTE_POINTER(_i64), lambda builder, address: builder.inttoptr(address, _I8.as_pointer()))
words_at = emitted(types.CPointer(_i64)(_i64), lambda builder, address: builder.inttoptr(address, _I64.as_pointer()))
call_write = emitted(_i64(_i64, _i64, BYTE_POINTER, _i64), _call_write)


@intrinsic
def prefetch(typingctx: Any, buffer: Any, index: Any) -> Any:
    """Prefetch a cache line of bytes or words, for reading and into all cache levels."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte_pointer = _I8.as_pointer()
        pointer = builder.bitcast(builder.gep(arguments[0], [arguments[1]]), byte_pointer)
        function_type = ir.FunctionType(ir.VoidType(), [byte_pointer, _I32, _I32, _I32])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte_pointer], function_type)
        builder.call(function, [pointer, _I32(0), _I32(3), _I32(1)])
        return _I64(0)

    return types.int64(buffer, types.int64), codegen
