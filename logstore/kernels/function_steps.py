"""What functions of Python's that are written for LLVM have in common: arguments, blocks, ways out, calls of the C API.

`PyObject *(PyObject *self, PyObject *const *items, Py_ssize_t count, PyObject *names)`, METH_FASTCALL and
METH_KEYWORDS: `self` is an int, the address of a block of i64s. What is not for the function, it hands on with the
arguments as they are to `call_python`, a function in Python, which raises whatever there is to raise.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from .list_intrinsics import I64, NULL, POINTER, call_python
from .native import symbol
from .python_layout import TYPE_PLACE

I32, VOID = ir.IntType(32), ir.VoidType()
ZERO, NO_ERROR = ir.Constant(I64, 0), ir.Constant(I32, 0)


class FunctionSteps:
    """The function while it is written down: each method adds a step, from which `slow` is a way out.

    Attributes:
        slots: names of the items of its block; among them `call_python`, `none`, and `names`.
        names: of its arguments, in their order.
        place_count: how many of them may be given without their names.
    """

    slots: tuple[str, ...]
    names: tuple[str, ...]
    place_count: int

    def __init__(self, name: str) -> None:
        self.module = ir.Module(name)
        kinds = [POINTER, POINTER.as_pointer(), I64, POINTER]
        function = ir.Function(self.module, ir.FunctionType(POINTER, kinds), symbol(name))
        self.owner, self.items, self.count, self.given_names = function.args
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))
        self.slow = function.append_basic_block("slow")
        self.given = self.builder.alloca(ir.ArrayType(POINTER, len(self.names)))
        self.time = self.builder.alloca(ir.ArrayType(I64, 2))
        address = self._call("PyLong_AsVoidPtr", POINTER, self.owner)
        self.block = self.builder.bitcast(address, I64.as_pointer())

    def object_code(self) -> bytes:
        """The function, all steps of which are written, as a relocatable object file for the host processor."""
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
        parsed = llvm.parse_assembly(str(self.module))
        parsed.verify()
        return bytes(machine.emit_object(parsed))

    def _take_arguments(self) -> None:
        self._take_items()
        self._take_names()

    def _take_items(self) -> None:
        """The arguments without names into their places."""
        builder = self.builder
        self._leave_unless(builder.icmp_signed("<=", self.count, ir.Constant(I64, self.place_count)))
        for number in range(len(self.names)):
            builder.store(NULL, self._place(number))
        done = builder.append_basic_block("items_taken")
        for number in range(self.place_count):
            more = builder.append_basic_block()
            builder.cbranch(builder.icmp_signed(">", self.count, ir.Constant(I64, number)), more, done)
            builder.position_at_end(more)
            builder.store(builder.load(builder.gep(self.items, [ir.Constant(I64, number)])), self._place(number))
        builder.branch(done)
        builder.position_at_end(done)

    def _take_names(self) -> None:
        """Those with names; Python has each name of an argument once, so that its address tells which it is."""
        builder = self.builder
        before, loop, next_name, done = [builder.append_basic_block(f"names{n}") for n in range(4)]
        builder.cbranch(builder.icmp_unsigned("==", self.given_names, NULL), done, before)
        builder.position_at_end(before)
        name_count = self._call("PyTuple_Size", I64, self.given_names)
        builder.cbranch(builder.icmp_signed(">", name_count, ZERO), loop, done)
        builder.position_at_end(loop)
        row = builder.phi(I64)
        row.add_incoming(ZERO, before)
        name = builder.ptrtoint(self._call("PyTuple_GetItem", POINTER, self.given_names, row), I64)
        item = builder.load(builder.gep(self.items, [builder.add(self.count, row)]))
        for number, each in enumerate(self.names):
            is_it, is_not = builder.append_basic_block(), builder.append_basic_block()
            builder.cbranch(builder.icmp_unsigned("==", name, self._slot(each)), is_it, is_not)
            builder.position_at_end(is_it)
            is_free = builder.icmp_unsigned("==", self._given(number), NULL)
            builder.store(item, self._place(number))
            builder.cbranch(is_free, next_name, self.slow)
            builder.position_at_end(is_not)
        builder.branch(self.slow)
        builder.position_at_end(next_name)
        following = builder.add(row, ir.Constant(I64, 1))
        row.add_incoming(following, next_name)
        builder.cbranch(builder.icmp_signed("<", following, name_count), loop, done)
        builder.position_at_end(done)

    def _system_ms(self) -> Any:
        """The system's time, as `clock.now_ms` says it."""
        builder = self.builder
        self._call("clock_gettime", I32, NO_ERROR, builder.bitcast(self.time, POINTER))
        seconds, nanoseconds = (self._item(builder.bitcast(self.time, I64.as_pointer()), n) for n in range(2))
        return builder.add(
            builder.mul(seconds, ir.Constant(I64, 1000)), builder.udiv(nanoseconds, ir.Constant(I64, 1_000_000))
        )

    def _write_slow(self) -> None:
        """The way out."""
        self.builder.position_at_end(self.slow)
        handed_on = (self._object("call_python"), self.items, self.count, self.given_names)
        self.builder.ret(self._call("PyObject_Vectorcall", POINTER, *handed_on))

    def _leave_unless(self, condition: Any, way_out: Any = None) -> None:
        following = self.builder.append_basic_block()
        self.builder.cbranch(condition, following, way_out or self.slow)
        self.builder.position_at_end(following)

    def _is_of(self, item: Any, kind: str) -> Any:
        """Whether an item is there, and of this very class."""
        builder = self.builder
        is_there, done = builder.append_basic_block(), builder.append_basic_block()
        before = builder.block
        builder.cbranch(builder.icmp_unsigned("!=", item, NULL), is_there, done)
        builder.position_at_end(is_there)
        place = builder.gep(item, [ir.Constant(I64, TYPE_PLACE)])
        its = builder.load(builder.bitcast(place, I64.as_pointer()))
        is_it = builder.icmp_unsigned("==", its, self._slot(kind))
        builder.branch(done)
        builder.position_at_end(done)
        result = builder.phi(ir.IntType(1))
        result.add_incoming(ir.Constant(ir.IntType(1), 0), before)
        result.add_incoming(is_it, is_there)
        return result

    def _is_absent(self, item: Any) -> Any:
        """Whether an argument is not given, or None."""
        return self.builder.or_(self.builder.icmp_unsigned("==", item, NULL), self._is(item, "none"))

    def _is(self, item: Any, name: str) -> Any:
        """Whether it is the object of a slot."""
        return self.builder.icmp_unsigned("==", self.builder.ptrtoint(item, I64), self._slot(name))

    def _place(self, number: int) -> Any:
        return self.builder.gep(self.given, [NO_ERROR, ir.Constant(I32, number)])

    def _given(self, number: int) -> Any:
        """An argument, NULL if it is not given."""
        return self.builder.load(self._place(number))

    def _slot(self, name: str) -> Any:
        return self._item(self.block, self.slots.index(name))

    def _object(self, name: str) -> Any:
        return self.builder.inttoptr(self._slot(name), POINTER)

    def _pointer(self, block: Any, number: int) -> Any:
        return self.builder.inttoptr(self._item(block, number), POINTER)

    def _item(self, block: Any, number: int) -> Any:
        return self.builder.load(self._at(block, number))

    def _at(self, block: Any, number: int) -> Any:
        return self.builder.gep(block, [ir.Constant(I64, number)])

    def _call(self, name: str, result: Any, *arguments: Any) -> Any:
        return call_python(self.builder, name, result, *arguments)
