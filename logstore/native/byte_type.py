"""Numba type of a byte buffer: a bare pointer whose items are int64.

The items of numba's own pointer to uint8 are uint8, whose shifts become uint64 and whose sums with an int64 become
float64. Here an item is read as an int64, and its low eight bits are written, so that compiled kernels compute what
they compute in Python.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import lower_builtin, models, register_model, type_callable

_I8, _I64 = ir.IntType(8), ir.IntType(64)


class BytePointer(types.Type):
    """Type of `u8*` arguments."""

    def __init__(self) -> None:
        super().__init__(name="byte*")


BYTE_POINTER = BytePointer()


@register_model(BytePointer)
class _BytePointerModel(models.PrimitiveModel):
    def __init__(self, manager: Any, numba_type: Any) -> None:
        super().__init__(manager, numba_type, _I8.as_pointer())


@type_callable(operator.getitem)
def _type_getitem(context: Any) -> Any:
    def typer(data: Any, index: Any) -> Any:
        is_ours = isinstance(data, BytePointer) and isinstance(index, types.Integer)
        return types.int64(data, types.int64) if is_ours else None

    return typer


@type_callable(operator.setitem)
def _type_setitem(context: Any) -> Any:
    def typer(data: Any, index: Any, value: Any) -> Any:
        is_ours = isinstance(data, BytePointer) and isinstance(index, types.Integer)
        return types.none(data, types.int64, types.int64) if is_ours else None

    return typer


@lower_builtin(operator.getitem, BytePointer, types.int64)
def _load(context: Any, builder: Any, types_: Any, arguments: Any) -> Any:
    pointer, index = arguments
    return builder.zext(builder.load(builder.gep(pointer, [index])), _I64)


@lower_builtin(operator.setitem, BytePointer, types.int64, types.int64)
def _store(context: Any, builder: Any, types_: Any, arguments: Any) -> Any:
    pointer, index, value = arguments
    builder.store(builder.trunc(value, _I8), builder.gep(pointer, [index]))
    return context.get_dummy_value()
