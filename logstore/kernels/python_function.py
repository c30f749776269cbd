"""The C function by which Python calls a kernel whose arguments lie in a block, as it calls its own functions in C.

`PyObject *logstore_python_<name>(PyObject *self, PyObject *const *items, Py_ssize_t count)`, METH_FASTCALL: `self` is
an int, the address of the block, an i64 an argument. The items, ints, are taken in place of the first of
them; the block stays as it is. A number that is no int of 64 bits is an exception, before the kernel is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir

from .write_intrinsics import I64, NULL, POINTER, call_python

_MINUS_ONE = ir.Constant(I64, -1)


def add_python_function(module: ir.Module, kernel: ir.Function, argument_types: Sequence[str], name: str) -> None:
    """Add it to the module of `kernel`, the C function `i64 (arguments)`."""
    function = ir.Function(module, ir.FunctionType(POINTER, [POINTER, POINTER.as_pointer(), I64]), name)
    owner, items, count = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    block = builder.bitcast(call_python(builder, "PyLong_AsVoidPtr", POINTER, owner), I64.as_pointer())
    values = [builder.load(builder.gep(block, [ir.Constant(I64, n)])) for n in range(len(argument_types))]
    for number, kind in enumerate(argument_types):
        if kind.endswith("*"):
            break
        values[number] = _given(builder, items, count, number, values[number])
    arguments = [
        value if each.type == I64 else builder.inttoptr(value, each.type)
        for value, each in zip(values, kernel.args, strict=True)
    ]
    builder.ret(call_python(builder, "PyLong_FromLongLong", POINTER, builder.call(kernel, arguments)))


def _given(builder: Any, items: Any, count: Any, number: int, value: Any) -> Any:
    """What is given for an argument, else `value`, what the block has."""
    before = builder.block
    with builder.if_then(builder.icmp_signed(">", count, ir.Constant(I64, number))):
        item = builder.load(builder.gep(items, [ir.Constant(I64, number)]))
        given = _as_int(builder, item)
        after = builder.block
    result = builder.phi(I64)
    result.add_incoming(value, before)
    result.add_incoming(given, after)
    return result


def _as_int(builder: Any, item: Any) -> Any:
    number = call_python(builder, "PyLong_AsLongLong", I64, item)
    with builder.if_then(builder.icmp_signed("==", number, _MINUS_ONE), likely=False):
        error = call_python(builder, "PyErr_Occurred", POINTER)
        with builder.if_then(builder.icmp_unsigned("!=", error, NULL), likely=False):
            builder.ret(NULL)
    return number
