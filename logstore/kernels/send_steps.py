"""`Producer.send` of a plain record in machine code, for CPython: the common call is done before Python makes a frame.

`PyObject *logstore_send(PyObject *self, PyObject *const *items, Py_ssize_t count, PyObject *names)`, METH_FASTCALL and
METH_KEYWORDS: `self` is an int, the address of the producer's block, see `send_slots`. What is not for it, it hands on
with the arguments as they are to the function in Python, which raises whatever there is to raise.

It takes a record whose topic is a `str` and whose value is `bytes`, which has neither key, headers nor partition, and
the time of an `int` or, as `clock.now_ms` says it, of now; if the topic has a batch in the dict `quick` with room for
it. The dict has the address of the batch's block. With the GIL all of that is one step: the future is made first, for
that may begin a collection, in which anything may run; from there on nothing runs but this. So a batch is its own as
long as the dict has it, and whoever takes it out of there has it to himself.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from .list_intrinsics import I64, NULL, POINTER, call_python
from .native import symbol
from .send_slots import BATCH_SLOTS, NAMES, PRODUCER_SLOTS, RECORD_OVERHEAD_SIZE, TYPE_PLACE

_TOPIC, _VALUE, _TIMESTAMP = 0, 1, 5
_I32, _VOID = ir.IntType(32), ir.VoidType()
_NO_ERROR = ir.Constant(_I32, 0)


def object_code() -> bytes:
    """The function as a relocatable object file for the host processor."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    module = ir.Module("send")
    kinds = [POINTER, POINTER.as_pointer(), I64, POINTER]
    _Steps(ir.Function(module, ir.FunctionType(POINTER, kinds), symbol("send"))).write()
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    return bytes(machine.emit_object(parsed))


class _Steps:
    """The function while it is written down: each method adds a step, from which `slow` is a way out."""

    def __init__(self, function: ir.Function) -> None:
        self.owner, self.items, self.count, self.names = function.args
        self.builder = ir.IRBuilder(function.append_basic_block("entry"))
        self.slow = function.append_basic_block("slow")
        self.given = self.builder.alloca(ir.ArrayType(POINTER, len(NAMES)))
        self.time = self.builder.alloca(ir.ArrayType(I64, 2))
        address = self._call("PyLong_AsVoidPtr", POINTER, self.owner)
        self.block = self.builder.bitcast(address, I64.as_pointer())

    def write(self) -> None:
        """All of it."""
        builder = self.builder
        self._take_items()
        self._take_names()
        self._leave_unless(self._is_of(self._given(_TOPIC), "str"))
        self._leave_unless(self._is_of(self._given(_VALUE), "bytes"))
        for number in range(_VALUE + 1, _TIMESTAMP):
            self._leave_unless(self._is_absent(self._given(number)))
        ms = self._ms()
        future = self._call("PyType_GenericAlloc", POINTER, self._object("future_type"), ir.Constant(I64, 0))
        self._fail_if(builder.icmp_unsigned("==", future, NULL))
        self.undone = builder.append_basic_block("undone")  # the future was made in vain
        self._require_transaction(future)
        self._append(future, ms)
        builder.ret(future)
        builder.position_at_end(self.undone)
        self._call("Py_DecRef", _VOID, future)
        builder.branch(self.slow)
        builder.position_at_end(self.slow)
        builder.ret(
            self._call("PyObject_Vectorcall", POINTER, self._object("call_python"), self.items, self.count, self.names)
        )

    def _take_items(self) -> None:
        """The arguments without names into their places."""
        builder = self.builder
        self._leave_unless(builder.icmp_signed("<=", self.count, ir.Constant(I64, len(NAMES))))
        for number in range(len(NAMES)):
            builder.store(NULL, self._place(number))
        done = builder.append_basic_block("items_taken")
        for number in range(len(NAMES)):
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
        builder.cbranch(builder.icmp_unsigned("==", self.names, NULL), done, before)
        builder.position_at_end(before)
        name_count = self._call("PyTuple_Size", I64, self.names)
        builder.cbranch(builder.icmp_signed(">", name_count, ir.Constant(I64, 0)), loop, done)
        builder.position_at_end(loop)
        row = builder.phi(I64)
        row.add_incoming(ir.Constant(I64, 0), before)
        name = builder.ptrtoint(self._call("PyTuple_GetItem", POINTER, self.names, row), I64)
        item = builder.load(builder.gep(self.items, [builder.add(self.count, row)]))
        for number, each in enumerate(NAMES):
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

    def _ms(self) -> Any:
        """The time now; 0 where one is given, for which it stays in its place."""
        builder = self.builder
        item = self._given(_TIMESTAMP)
        given, absent, done = [builder.append_basic_block(f"time{n}") for n in range(3)]
        builder.cbranch(self._is_absent(item), absent, given)
        builder.position_at_end(given)
        self._leave_unless(self._is_of(item, "int"))
        from_given = builder.block
        builder.branch(done)
        builder.position_at_end(absent)
        self._leave_unless(builder.icmp_unsigned("!=", self._slot("has_clock"), ir.Constant(I64, 0)))
        builder.store(NULL, self._place(_TIMESTAMP))
        time = builder.bitcast(self.time, POINTER)
        self._call("clock_gettime", _I32, ir.Constant(_I32, 0), time)
        seconds, nanoseconds = (self._item(builder.bitcast(time, I64.as_pointer()), n) for n in range(2))
        ms = builder.add(
            builder.mul(seconds, ir.Constant(I64, 1000)), builder.udiv(nanoseconds, ir.Constant(I64, 1_000_000))
        )
        from_clock = builder.block
        builder.branch(done)
        builder.position_at_end(done)
        result = builder.phi(I64)
        result.add_incoming(ir.Constant(I64, 0), from_given)
        result.add_incoming(ms, from_clock)
        return result

    def _require_transaction(self, future: Any) -> None:
        """In a transaction, where there have to be some."""
        builder = self.builder
        ask, done = builder.append_basic_block("ask"), builder.append_basic_block("asked")
        transactions = self._object("transactions")
        builder.cbranch(builder.icmp_unsigned("==", transactions, NULL), done, ask)
        builder.position_at_end(ask)
        state = self._call("PyObject_GetAttr", POINTER, transactions, self._object("state_name"))
        self._fail_if(builder.icmp_unsigned("==", state, NULL), future)
        self._call("Py_DecRef", _VOID, state)
        is_in = builder.icmp_unsigned("==", builder.ptrtoint(state, I64), self._slot("in_transaction"))
        builder.cbranch(is_in, done, self.undone)
        builder.position_at_end(done)

    def _append(self, future: Any, ms: Any) -> None:
        """The record into its batch, and what the future has to know into the future."""
        builder = self.builder
        value = self._given(_VALUE)
        entry = self._call("PyDict_GetItemWithError", POINTER, self._object("quick"), self._given(_TOPIC))
        self._leave_unless(builder.icmp_unsigned("!=", entry, NULL), self.undone)
        batch = builder.bitcast(self._call("PyLong_AsVoidPtr", POINTER, entry), I64.as_pointer())
        value_size = self._call("PyBytes_Size", I64, value)
        size = builder.add(self._item(batch, BATCH_SLOTS.index("size")), value_size)
        size = builder.add(size, ir.Constant(I64, RECORD_OVERHEAD_SIZE))
        self._leave_unless(builder.icmp_signed("<=", size, self._slot("batch_size")), self.undone)
        values, timestamps = (self._pointer(batch, BATCH_SLOTS.index(name)) for name in ("values", "timestamps"))
        index = self._call("PyList_Size", I64, values)
        self._fill(future, batch, index, value_size)
        timestamp = self._timestamp(batch, ms)
        self._fail_if(builder.icmp_unsigned("==", timestamp, NULL), future)
        is_bad = builder.icmp_signed("<", self._call("PyList_Append", _I32, values, value), _NO_ERROR)
        self._fail_if(is_bad, future, timestamp)
        is_bad = builder.icmp_signed("<", self._call("PyList_Append", _I32, timestamps, timestamp), _NO_ERROR)
        with builder.if_then(is_bad, likely=False):
            end = builder.add(index, ir.Constant(I64, 1))
            self._call("PyList_SetSlice", _I32, values, index, end, NULL)
        self._fail_if(is_bad, future, timestamp)
        self._call("Py_DecRef", _VOID, timestamp)  # the list has it
        builder.store(size, self._at(batch, BATCH_SLOTS.index("size")))
        is_given = builder.icmp_unsigned("!=", self._given(_TIMESTAMP), NULL)
        last = (("last_ms", ms), ("last_timestamp", builder.ptrtoint(timestamp, I64)))
        for name, new in last:
            slot = self._at(batch, BATCH_SLOTS.index(name))
            builder.store(builder.select(is_given, builder.load(slot), new), slot)

    def _fill(self, future: Any, batch: Any, index: Any, value_size: Any) -> None:
        """What the future has to know."""
        builder = self.builder
        owner, minus_one = self._pointer(batch, BATCH_SLOTS.index("batch")), self._object("minus_one")
        for item in (owner, minus_one):
            self._call("Py_IncRef", _VOID, item)
        number = self._call("PyLong_FromLongLong", POINTER, index)
        size = self._call("PyLong_FromLongLong", POINTER, value_size)
        for name, item in (("batch", owner), ("index", number), ("key", minus_one), ("value", size)):
            place = builder.gep(future, [self._slot(f"{name}_place")])
            builder.store(item, builder.bitcast(place, POINTER.as_pointer()))
        for item in (number, size):
            self._fail_if(builder.icmp_unsigned("==", item, NULL), future)

    def _timestamp(self, batch: Any, ms: Any) -> Any:
        """A reference to the time as an int: the one given, the one of the record before, or a new one; NULL if none.

        Thousands of records have the same time, and need one int.
        """
        builder = self.builder
        given = self._given(_TIMESTAMP)
        last = self._pointer(batch, BATCH_SLOTS.index("last_timestamp"))
        is_given = builder.icmp_unsigned("!=", given, NULL)
        is_last = builder.icmp_signed("==", ms, self._item(batch, BATCH_SLOTS.index("last_ms")))
        known = builder.select(is_given, given, builder.select(is_last, last, NULL))
        old, new, done = [builder.append_basic_block(f"timestamp{n}") for n in range(3)]
        builder.cbranch(builder.icmp_unsigned("==", known, NULL), new, old)
        builder.position_at_end(old)
        self._call("Py_IncRef", _VOID, known)
        builder.branch(done)
        builder.position_at_end(new)
        made = self._call("PyLong_FromLongLong", POINTER, ms)
        builder.branch(done)
        builder.position_at_end(done)
        result = builder.phi(POINTER)
        result.add_incoming(known, old)
        result.add_incoming(made, new)
        return result

    def _leave_unless(self, condition: Any, way_out: Any = None) -> None:
        following = self.builder.append_basic_block()
        self.builder.cbranch(condition, following, way_out or self.slow)
        self.builder.position_at_end(following)

    def _fail_if(self, condition: Any, *references: Any) -> None:
        """Let go of the references, and return to Python with the exception that there is."""
        with self.builder.if_then(condition, likely=False):
            for reference in references:
                self._call("Py_DecRef", _VOID, reference)
            self.builder.ret(NULL)

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
        builder = self.builder
        is_none = builder.icmp_unsigned("==", builder.ptrtoint(item, I64), self._slot("none"))
        return builder.or_(builder.icmp_unsigned("==", item, NULL), is_none)

    def _place(self, number: int) -> Any:
        zero = ir.Constant(_I32, 0)
        return self.builder.gep(self.given, [zero, ir.Constant(_I32, number)])

    def _given(self, number: int) -> Any:
        """An argument, NULL if it is not given."""
        return self.builder.load(self._place(number))

    def _slot(self, name: str) -> Any:
        return self._item(self.block, PRODUCER_SLOTS.index(name))

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
