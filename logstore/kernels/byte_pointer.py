"""The numba type of a byte buffer: a bare pointer whose items are int64.

With numba's own pointer to uint8 an item is a uint8, whose shifts become uint64 and whose sums with an int64 become
float64. Here an item is read as an int64 and written by its low eight bits, so that kernels mean in compiled code what
they mean in Python.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import lower_builtin, models, register_model


class BytePointer(types.Type):
    """Type of `u8*` arguments."""

    def __init__(self) -> None:
        super().__init__(name="byte*")


BYTE_POINTER = BytePointer()


@register_model(BytePointer)
class _BytePointerModel(models.PrimitiveModel):
    def __init__(self, manager: Any, numba_type: Any) -> None:
        super().__init__(manager, numba_type, ir.IntType(8).as_pointer())


@infer_global(operator.getitem)
class _GetItem(AbstractTemplate):
    def generic(self, arguments: Any, keywords: Any) -> Any:
        if arguments[0] == BYTE_POINTER and isinstance(arguments[1], types.Integer):
            return signature(types.int64, BYTE_POINTER, types.int64)
        return None


@infer_global(operator.setitem)
class _SetItem(AbstractTemplate):
    def generic(self, arguments: Any, keywords: Any) -> Any:
        if arguments[0] == BYTE_POINTER and isinstance(arguments[1], types.Integer):
            return signature(types.none, BYTE_POINTER, types.int64, types.int64)
        return None


@lower_builtin(operator.getitem, BytePointer, types.int64)
def _load(context: Any, builder: Any, types_: Any, arguments: Any) -> Any:
    pointer, index = arguments
    return builder.zext(builder.load(builder.gep(pointer, [index])), ir.IntType(64))


@lower_builtin(operator.setitem, BytePointer, types.int64, types.int64)
def _store(context: Any, builder: Any, types_: Any, arguments: Any) -> Any:
    pointer, index, value = arguments
    builder.store(builder.trunc(value, ir.IntType(8)), builder.gep(pointer, [index]))
    return context.get_dummy_value()
