"""The compiled forms of `python_lists`: calls of Python's C API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.cgutils import alloca_once  # not within a loop, which would take stack in each round
from numba.extending import intrinsic

from .byte_copy import emit_copy
from .byte_pointer import BYTE_POINTER
from .python_layout import DATA_PLACE, ITEMS_PLACE, SIZE_PLACE, TYPE_PLACE
from .python_lists import IS_NONE, IS_OTHER, NOT_AN_INT

I64, POINTER = ir.IntType(64), ir.IntType(8).as_pointer()
NULL = ir.Constant(POINTER, None)


def _function(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """A function of the C API, declared once a module."""
    known = builder.module.globals.get(name)
    return known or ir.Function(builder.module, ir.FunctionType(result, arguments), name)


def call_python(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """The result of a call of the C API."""
    return builder.call(_function(builder, name, result, *[each.type for each in arguments]), arguments)


def _clear_error(builder: Any) -> None:
    call_python(builder, "PyErr_Clear", ir.VoidType())


def _item(builder: Any, items: Any, index: Any) -> Any:
    """A borrowed reference; NULL, and an exception, behind the end."""
    return call_python(builder, "PyList_GetItem", POINTER, items, index)


def _object(builder: Any, name: str) -> Any:
    known = builder.module.globals.get(name)
    return known or ir.GlobalVariable(builder.module, ir.IntType(8), name)


def _is_none(builder: Any, item: Any) -> Any:
    return builder.icmp_unsigned("==", item, _object(builder, "_Py_NoneStruct"))


def _size(builder: Any, function: str, item: Any) -> Any:
    """IS_NONE for None; else what the function of the C API says, IS_OTHER for an error."""
    result = alloca_once(builder, I64)
    builder.store(ir.Constant(I64, IS_NONE), result)
    with builder.if_then(builder.not_(_is_none(builder, item)), likely=True):
        size = call_python(builder, function, I64, item)
        builder.store(size, result)
        with builder.if_then(builder.icmp_signed("<", size, ir.Constant(I64, 0)), likely=False):
            _clear_error(builder)
            builder.store(ir.Constant(I64, IS_OTHER), result)
    return builder.load(result)


@intrinsic
def _list_size(typingctx: Any, items: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return _size(builder, "PyList_Size", *arguments)

    return types.int64(BYTE_POINTER), codegen


def _word(builder: Any, thing: Any, place: int) -> Any:
    """The i64 of an object from a byte on."""
    return builder.load(builder.bitcast(builder.gep(thing, [ir.Constant(I64, place)]), I64.as_pointer()))


def _known_or_called(builder: Any, is_known: Any, known: Callable[[], Any], called: Callable[[], Any]) -> Any:
    """What one of the two makes, which are values of one type."""
    results = []
    with builder.if_else(builder.icmp_signed("!=", is_known, ir.Constant(I64, 0)), likely=True) as branches:
        for branch, make in zip(branches, (known, called), strict=True):
            with branch:
                results.append((make(), builder.block))
    result = builder.phi(results[0][0].type)
    for value, block in results:
        result.add_incoming(value, block)
    return result


@intrinsic
def _item_at(typingctx: Any, items: Any, index: Any, is_known: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        items, index, is_known = arguments

        def known() -> Any:
            result = alloca_once(builder, POINTER)
            builder.store(NULL, result)
            with builder.if_then(builder.icmp_signed("<", index, _word(builder, items, SIZE_PLACE)), likely=True):
                first = builder.inttoptr(_word(builder, items, ITEMS_PLACE), POINTER.as_pointer())
                builder.store(builder.load(builder.gep(first, [index])), result)
            return builder.load(result)

        def called() -> Any:
            item = _item(builder, items, index)
            with builder.if_then(builder.icmp_unsigned("==", item, NULL), likely=False):
                _clear_error(builder)
            return item

        return _known_or_called(builder, is_known, known, called)

    return BYTE_POINTER(BYTE_POINTER, types.int64, types.int64), codegen


@intrinsic
def _bytes_size(typingctx: Any, item: Any, is_known: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        item, is_known = arguments
        result = alloca_once(builder, I64)
        builder.store(ir.Constant(I64, IS_OTHER), result)
        with builder.if_then(builder.icmp_unsigned("!=", item, NULL), likely=True):
            is_bytes = builder.icmp_signed(
                "==", _word(builder, item, TYPE_PLACE), builder.ptrtoint(_object(builder, "PyBytes_Type"), I64)
            )
            is_known = builder.zext(builder.and_(is_bytes, builder.trunc(is_known, ir.IntType(1))), I64)
            size = _known_or_called(
                builder,
                is_known,
                lambda: _word(builder, item, SIZE_PLACE),
                lambda: _size(builder, "PyBytes_Size", item),
            )
            builder.store(size, result)
        return builder.load(result)

    return types.int64(BYTE_POINTER, types.int64), codegen


@intrinsic
def _bytes_data(typingctx: Any, item: Any, is_known: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        item, is_known = arguments
        return _known_or_called(
            builder,
            is_known,
            lambda: builder.gep(item, [ir.Constant(I64, DATA_PLACE)]),
            lambda: call_python(builder, "PyBytes_AsString", POINTER, item),
        )

    return BYTE_POINTER(BYTE_POINTER, types.int64), codegen


@intrinsic
def _copy_bytes(typingctx: Any, data: Any, size: Any, out: Any, position: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data, size, out, position = arguments
        emit_copy(builder, data, builder.gep(out, [position]), size)
        return builder.add(position, size)

    return types.int64(BYTE_POINTER, types.int64, BYTE_POINTER, types.int64), codegen


@intrinsic
def _item_int(typingctx: Any, items: Any, index: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        result = alloca_once(builder, I64)
        builder.store(ir.Constant(I64, NOT_AN_INT), result)
        item = _item(builder, *arguments)
        with builder.if_else(builder.icmp_unsigned("==", item, NULL)) as (is_missing, is_there):
            with is_missing:
                _clear_error(builder)
            with is_there:
                value = call_python(builder, "PyLong_AsLongLong", I64, item)
                error = call_python(builder, "PyErr_Occurred", POINTER)
                with builder.if_else(builder.icmp_unsigned("==", error, NULL)) as (is_int, is_other):
                    with is_int:
                        builder.store(value, result)
                    with is_other:
                        _clear_error(builder)
        return builder.load(result)

    return types.int64(BYTE_POINTER, types.int64), codegen


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


LIST_INTRINSICS = {
    "list_size": _list_size,
    "item_at": _item_at,
    "bytes_size": _bytes_size,
    "bytes_data": _bytes_data,
    "copy_bytes": _copy_bytes,
    "item_int": _item_int,
    "call_write": _call_write,
}
