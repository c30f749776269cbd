"""The compiled forms of `c_calls`."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from ..jit.byte_type import BYTE_POINTER

_I32, _I64 = ir.IntType(32), ir.IntType(64)


def _called(builder: Any, result: Any, argument_types: list[Any], address: Any, arguments: list[Any]) -> Any:
    """What the function at an address returns; arguments, i64s all, are cut to their types."""
    function = builder.inttoptr(address, ir.FunctionType(result, argument_types).as_pointer())
    given = [
        argument if kind is _I64 else builder.trunc(argument, kind)
        for argument, kind in zip(arguments, argument_types, strict=True)
    ]
    return builder.call(function, given)


@intrinsic
def address_at(typingctx: Any, data: Any, position: Any) -> Any:
    """See `c_calls`."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ptrtoint(builder.gep(arguments[0], [arguments[1]]), _I64)

    return types.int64(BYTE_POINTER, types.int64), codegen


@intrinsic
def call_inflate(typingctx: Any, function: Any, state: Any) -> Any:
    """See `c_calls`."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.sext(_called(builder, _I32, [_I64], arguments[0], [arguments[1]]), _I64)

    return types.int64(types.int64, types.int64), codegen


@intrinsic
def call_crc32(typingctx: Any, function: Any, crc: Any, data: Any, size: Any) -> Any:
    """See `c_calls`."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.zext(_called(builder, _I32, [_I32, _I64, _I64], arguments[0], list(arguments[1:])), _I64)

    return types.int64(*[types.int64] * 4), codegen


@intrinsic
def call_zstd(typingctx: Any, function: Any, zstd: Any, out: Any, room: Any, data: Any, size: Any) -> Any:
    """See `c_calls`."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _called(builder, _I64, [_I64] * 5, arguments[0], list(arguments[1:]))

    return types.int64(*[types.int64] * 6), codegen
