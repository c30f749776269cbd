"""The compiled form of `write_call`, and calls of Python's C API."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .byte_pointer import BYTE_POINTER

I64, POINTER = ir.IntType(64), ir.IntType(8).as_pointer()
NULL = ir.Constant(POINTER, None)


def _function(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """A function of the C API, declared once a module."""
    known = builder.module.globals.get(name)
    return known or ir.Function(builder.module, ir.FunctionType(result, arguments), name)


def call_python(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """The result of a call of the C API."""
    return builder.call(_function(builder, name, result, *[each.type for each in arguments]), arguments)


def call_write(builder: Any, address: Any, descriptor: Any, data: Any, size: Any) -> Any:
    """What the function at `address`, an i64, returns, which is as `write` of C; other threads run meanwhile."""
    function = builder.inttoptr(address, ir.FunctionType(I64, [ir.IntType(32), POINTER, I64]).as_pointer())
    state = call_python(builder, "PyEval_SaveThread", POINTER)
    written = builder.call(function, [builder.trunc(descriptor, ir.IntType(32)), data, size])
    call_python(builder, "PyEval_RestoreThread", ir.VoidType(), state)
    return written


@intrinsic
def _call_write(typingctx: Any, address: Any, descriptor: Any, data: Any, size: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return call_write(builder, *arguments)

    return types.int64(types.int64, types.int64, BYTE_POINTER, types.int64), codegen


WRITE_INTRINSICS = {"call_write": _call_write}
