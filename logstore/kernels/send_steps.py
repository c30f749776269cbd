"""`Producer.send` of a plain record in machine code, for CPython: the common call is done before Python makes a frame.

`PyObject *logstore_send(PyObject *self, PyObject *const *items, Py_ssize_t count, PyObject *names)`, see
`function_steps`: `self` is an int, the address of the producer's block, see `send_slots`.

It takes a record whose topic is a `str` and whose value is `bytes`, which has neither key, headers nor partition, and
the time of an `int` or, as `clock.now_ms` says it, of now; if the topic has a batch in the dict `quick` with room for
it. The dict has the address of the batch's block. With the GIL all of that is one step: the future is made first, for
that may begin a collection, in which anything may run; from there on nothing runs but this. So a batch is its own as
long as the dict has it, and whoever takes it out of there has it to himself.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from .function_steps import I32, NO_ERROR, VOID, ZERO, FunctionSteps
from .list_intrinsics import I64, NULL, POINTER
from .send_slots import BATCH_SLOTS, NAMES, PRODUCER_SLOTS, RECORD_OVERHEAD_SIZE

_TOPIC, _VALUE, _TIMESTAMP = 0, 1, 5


def object_code() -> bytes:
    """The function as a relocatable object file for the host processor."""
    steps = _Steps("send")
    steps.write()
    return steps.object_code()


class _Steps(FunctionSteps):
    """The function while it is written down: each method adds a step, from which `slow` is a way out."""

    slots, names, place_count = PRODUCER_SLOTS, NAMES, len(NAMES)

    def write(self) -> None:
        """All of it."""
        builder = self.builder
        self._take_arguments()
        self._leave_unless(self._is_of(self._given(_TOPIC), "str"))
        self._leave_unless(self._is_of(self._given(_VALUE), "bytes"))
        for number in range(_VALUE + 1, _TIMESTAMP):
            self._leave_unless(self._is_absent(self._given(number)))
        ms = self._ms()
        future = self._call("PyType_GenericAlloc", POINTER, self._object("future_type"), ZERO)
        self._fail_if(builder.icmp_unsigned("==", future, NULL))
        self.undone = builder.append_basic_block("undone")  # the future was made in vain
        self._require_transaction(future)
        self._append(future, ms)
        builder.ret(future)
        builder.position_at_end(self.undone)
        self._call("Py_DecRef", VOID, future)
        builder.branch(self.slow)
        self._write_slow()

    def _ms(self) -> Any:
        """The time now; 0 where one is given, for which it stays in its place."""
        builder = self.builder
        item = self._given(_TIMESTAMP)
        given, absent, done = [builder.append_basic_block(f"time{n}") for n in range(3)]
        builder.cbranch(self._is_absent(item), absent, given)
        builder.position_at_end(given)
        self._leave_unless(self._is_of(item, "int"))
        overflow = builder.bitcast(self.time, POINTER)  # -1 for what is too large: that is Python's to refuse as well
        given_ms = self._call("PyLong_AsLongLongAndOverflow", I64, item, overflow)
        self._leave_unless(builder.icmp_signed(">=", given_ms, ZERO))
        from_given = builder.block
        builder.branch(done)
        builder.position_at_end(absent)
        self._leave_unless(builder.icmp_unsigned("!=", self._slot("has_clock"), ZERO))
        builder.store(NULL, self._place(_TIMESTAMP))
        ms = self._system_ms()
        from_clock = builder.block
        builder.branch(done)
        builder.position_at_end(done)
        result = builder.phi(I64)
        result.add_incoming(ZERO, from_given)
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
        self._call("Py_DecRef", VOID, state)
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
        is_bad = builder.icmp_signed("<", self._call("PyList_Append", I32, values, value), NO_ERROR)
        self._fail_if(is_bad, future, timestamp)
        is_bad = builder.icmp_signed("<", self._call("PyList_Append", I32, timestamps, timestamp), NO_ERROR)
        with builder.if_then(is_bad, likely=False):
            end = builder.add(index, ir.Constant(I64, 1))
            self._call("PyList_SetSlice", I32, values, index, end, NULL)
        self._fail_if(is_bad, future, timestamp)
        self._call("Py_DecRef", VOID, timestamp)  # the list has it
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
            self._call("Py_IncRef", VOID, item)
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
        self._call("Py_IncRef", VOID, known)
        builder.branch(done)
        builder.position_at_end(new)
        made = self._call("PyLong_FromLongLong", POINTER, ms)
        builder.branch(done)
        builder.position_at_end(done)
        result = builder.phi(POINTER)
        result.add_incoming(known, old)
        result.add_incoming(made, new)
        return result

    def _fail_if(self, condition: Any, *references: Any) -> None:
        """Let go of the references, and return to Python with the exception that there is."""
        with self.builder.if_then(condition, likely=False):
            for reference in references:
                self._call("Py_DecRef", VOID, reference)
            self.builder.ret(NULL)
