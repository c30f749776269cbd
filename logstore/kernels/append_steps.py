"""`PartitionLog.append_records` of common records in machine code, for CPython: done before Python makes a frame.

`PyObject *logstore_append(PyObject *self, PyObject *const *items, Py_ssize_t count, PyObject *names)`, see
`function_steps`: `self` is an int, the address of the log's block, see `append_call_slots`.

With the log's lock held it does what `QuickAppend` does: it asks the clock, calls `prepare_append`, writes, calls
`commit_append`, and lets the log know where it ends. From the end of the write to there nothing of Python's runs, no
other thread, and nothing can fail: the ints were made before. What is prepared and cannot be ended here is ended by
`finish`, in Python.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import ir

from ..layout.batch import NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP
from . import append_slots as slot
from . import scan
from .append_call_slots import NAMES, PLACE_COUNT, SLOTS
from .function_steps import I32, NO_ERROR, VOID, ZERO, FunctionSteps
from .list_intrinsics import I64, NULL, POINTER, call_write

_NUMBERS = {"producer_id": NO_PRODUCER_ID, "producer_epoch": -1, "base_sequence": NO_SEQUENCE, "leader_epoch": 0}
_SLOTS, _FILE, _OUT, _COLUMNS, _PRODUCERS, _END = 9, 10, 11, 12, 16, 26  # arguments of `prepare_append`


class _Prepared(NamedTuple):
    """A batch that is not written yet: numbers, and ints of Python's for what the log is told."""

    size: Any
    count: Any
    end_offset: Any
    end_item: Any
    size_item: Any


def object_code() -> bytes:
    """The function as a relocatable object file for the host processor."""
    steps = _Steps("append")
    steps.write()
    return steps.object_code()


class _Steps(FunctionSteps):
    """The function while it is written down; once the lock is held, the ways out are those of `_begin`."""

    slots, names, place_count = SLOTS, NAMES, PLACE_COUNT

    def write(self) -> None:
        """All of it."""
        builder = self.builder
        self._take_arguments()
        self._leave_unless(builder.icmp_unsigned("!=", self._named("values"), NULL))
        self._leave_unless(self._is_absent(self._named("guard")))
        is_transactional = self._named("is_transactional")
        is_not_given = builder.icmp_unsigned("==", is_transactional, NULL)
        self._leave_unless(builder.or_(is_not_given, self._is(is_transactional, "false")))
        numbers = {name: self._number(name, default) for name, default in _NUMBERS.items()}
        self._begin()
        ms = self._ms()
        self._require("change_count", "known_change_count")
        self._require("first_unstable_offset", "none")
        self._require("is_only_replica", "true")
        arguments = builder.bitcast(self._object("arguments"), I64.as_pointer())
        self.batch_slots, self.file, self.columns = (
            builder.bitcast(self._pointer(arguments, number), I64.as_pointer()) for number in (_SLOTS, _FILE, _COLUMNS)
        )
        has_function = builder.icmp_unsigned("!=", self._item(self.file, slot.WRITE_ADDRESS), ZERO)
        self._leave_unless(has_function, self.unlock)
        prepared = self._prepare(arguments, ms, numbers)
        self._write_batch(arguments, prepared)
        self._commit(arguments, prepared)
        self._answer(prepared, ms)
        self._write_ways_out()

    def _begin(self) -> None:
        """Take the log's lock. With it held there are other ways out.

        `unlock` is to the function in Python; `finish` to the one that ends what is prepared; `failed` is there with an
        exception.
        """
        builder = self.builder
        acquired = self._call("PyObject_CallNoArgs", POINTER, self._object("acquire"))
        with builder.if_then(builder.icmp_unsigned("==", acquired, NULL), likely=False):
            builder.ret(NULL)
        self._call("Py_DecRef", VOID, acquired)
        self.unlock, self.finish, self.failed = (builder.append_basic_block(n) for n in ("unlock", "finish", "failed"))

    def _write_ways_out(self) -> None:
        builder = self.builder
        builder.position_at_end(self.unlock)
        self._call("PyErr_Clear", VOID)
        self._release()
        builder.branch(self.slow)
        builder.position_at_end(self.finish)
        self._call("PyErr_Clear", VOID)
        finished = self._call("PyObject_CallNoArgs", POINTER, self._object("finish"))
        self._leave_unless(builder.icmp_unsigned("!=", finished, NULL), self.failed)
        self._release()
        builder.ret(finished)
        builder.position_at_end(self.failed)
        error = [self._place(number) for number in range(3)]  # whose arguments are done with
        self._call("PyErr_Fetch", VOID, *error)
        self._release()
        self._call("PyErr_Restore", VOID, *[builder.load(each) for each in error])
        builder.ret(NULL)
        self._write_slow()

    def _release(self) -> None:
        released = self._call("PyObject_CallNoArgs", POINTER, self._object("release"))
        self._call("Py_DecRef", VOID, released)

    def _number(self, name: str, default: int) -> Any:
        """An argument that is an int, as an i64."""
        builder = self.builder
        item = self._named(name)
        given, done = builder.append_basic_block(), builder.append_basic_block()
        before = builder.block
        builder.cbranch(builder.icmp_unsigned("==", item, NULL), done, given)
        builder.position_at_end(given)
        self._leave_unless(self._is_of(item, "int"))
        number = self._call("PyLong_AsLongLong", I64, item)
        with builder.if_then(builder.icmp_signed("==", number, ir.Constant(I64, -1)), likely=False):
            is_right = builder.icmp_unsigned("==", self._call("PyErr_Occurred", POINTER), NULL)
            self._call("PyErr_Clear", VOID)
            self._leave_unless(is_right)
        after = builder.block
        builder.branch(done)
        builder.position_at_end(done)
        result = builder.phi(I64)
        result.add_incoming(ir.Constant(I64, default), before)
        result.add_incoming(number, after)
        return result

    def _ms(self) -> Any:
        """The time by the log's clock, which may be a function in Python."""
        builder = self.builder
        clock = self._attribute("now_ms")
        self._leave_unless(builder.not_(self._is_null(clock)), self.unlock)
        system, other, done = [builder.append_basic_block(f"clock{n}") for n in range(3)]
        builder.cbranch(self._is(clock, "system_clock"), system, other)
        builder.position_at_end(system)
        system_ms = self._system_ms()
        from_system = builder.block
        builder.branch(done)
        builder.position_at_end(other)
        item = self._call("PyObject_CallNoArgs", POINTER, clock)
        self._leave_unless(builder.icmp_unsigned("!=", item, NULL), self.failed)
        other_ms = self._call("PyLong_AsLongLong", I64, item)
        self._call("Py_DecRef", VOID, item)
        self._leave_unless(builder.icmp_unsigned("==", self._call("PyErr_Occurred", POINTER), NULL), self.unlock)
        from_other = builder.block
        builder.branch(done)
        builder.position_at_end(done)
        result = builder.phi(I64)
        result.add_incoming(system_ms, from_system)
        result.add_incoming(other_ms, from_other)
        return result

    def _require(self, name: str, expected: str) -> None:
        """The log has this object, of a slot, as its attribute."""
        self._leave_unless(self._is(self._attribute(name), expected), self.unlock)

    def _prepare(self, arguments: Any, ms: Any, numbers: dict[str, Any]) -> _Prepared:
        """The batch, and the ints that the log is told when it is written."""
        builder = self.builder
        given = [builder.ptrtoint(self._or_none(self._named(name)), I64) for name in NAMES[:PLACE_COUNT]]
        given += [ms, numbers["producer_id"], numbers["producer_epoch"], numbers["base_sequence"], ZERO]
        given += [numbers["leader_epoch"], self._item(arguments, _SLOTS)]
        given += [builder.ptrtoint(self._at(self.block, SLOTS.index("no_file")), I64)]
        given += [self._item(arguments, number) for number in range(_OUT, _END)]
        size = self._call_kernel("prepare_append", given)
        self._leave_unless(builder.icmp_signed(">", size, ZERO), self.unlock)
        count = self._item(self.batch_slots, slot.RECORD_COUNT)
        end_offset = builder.add(self._item(self.batch_slots, slot.LOG_END_OFFSET), count)
        self._leave_unless(builder.icmp_signed("<", end_offset, self._slot("flush_offset")), self.finish)
        segment_size = builder.add(self._item(self.batch_slots, slot.SEGMENT_SIZE), size)
        end_item, size_item = (self._call("PyLong_FromLongLong", POINTER, n) for n in (end_offset, segment_size))
        is_missing = builder.or_(self._is_null(end_item), self._is_null(size_item))
        prepared = _Prepared(size, count, end_offset, end_item, size_item)
        with builder.if_then(is_missing, likely=False):
            self._leave_to_finish(prepared)
        return prepared

    def _write_batch(self, arguments: Any, prepared: _Prepared) -> None:
        """Write it, or what the system takes of it."""
        builder = self.builder
        address, descriptor = (self._item(self.file, number) for number in (slot.WRITE_ADDRESS, slot.DESCRIPTOR))
        written = call_write(builder, address, descriptor, self._pointer(arguments, _OUT), prepared.size)
        with builder.if_then(builder.icmp_signed("!=", written, prepared.size), likely=False):
            is_error = builder.icmp_signed("<", written, ZERO)
            builder.store(builder.select(is_error, ZERO, written), self._at(self.batch_slots, slot.WRITTEN_SIZE))
            self._leave_to_finish(prepared)

    def _leave_to_finish(self, prepared: _Prepared) -> None:
        for item in (prepared.end_item, prepared.size_item):
            self._call("Py_DecRef", VOID, item)
        self.builder.branch(self.finish)

    def _commit(self, arguments: Any, prepared: _Prepared) -> None:
        """Let the batch count."""
        numbers = (_SLOTS, _COLUMNS, *range(_PRODUCERS, _END))
        self._call_kernel("commit_append", [self._item(arguments, number) for number in numbers])
        for owner, name, item in (
            ("segment", "size", prepared.size_item),
            ("log", "log_end_offset", prepared.end_item),
            ("log", "high_watermark", prepared.end_item),
        ):
            status = self._call("PyDict_SetItem", I32, self._object(owner), self._object(f"{name}_name"), item)
            self._leave_unless(self.builder.icmp_signed("==", status, NO_ERROR), self.failed)
        for item in (prepared.end_item, prepared.size_item):
            self._call("Py_DecRef", VOID, item)

    def _answer(self, prepared: _Prepared, ms: Any) -> None:
        """Return the `AppendInfo`; to make it may begin a collection, in which anything may run."""
        builder = self.builder
        last_offset = builder.sub(prepared.end_offset, ir.Constant(I64, 1))
        first_offset = builder.sub(prepared.end_offset, prepared.count)
        max_timestamp = self._item(self.columns, scan.MAX_TIMESTAMP)
        has_append_time = builder.icmp_signed("!=", self._item(self.batch_slots, slot.IS_LOG_APPEND_TIME), ZERO)
        append_time = builder.select(has_append_time, ms, ir.Constant(I64, NO_TIMESTAMP))
        log_start_offset = self._attribute("log_start_offset")
        self._call("Py_IncRef", VOID, log_start_offset)
        numbers = [first_offset, last_offset, max_timestamp, append_time, None, prepared.count]
        size = ir.Constant(I64, len(numbers) + 1)
        info = self._call("PyType_GenericAlloc", POINTER, self._object("info_type"), size)
        with builder.if_then(self._is_null(info), likely=False):
            self._call("Py_DecRef", VOID, log_start_offset)
            builder.branch(self.failed)
        undone = builder.append_basic_block("undone")
        for index, number in enumerate(numbers):
            item = log_start_offset if number is None else self._call("PyLong_FromLongLong", POINTER, number)
            self._put(info, index, item)
            self._leave_unless(builder.not_(self._is_null(item)), undone)
        self._call("Py_IncRef", VOID, self._object("false"))
        self._put(info, len(numbers), self._object("false"))
        self._release()
        builder.ret(info)
        builder.position_at_end(undone)
        self._call("Py_DecRef", VOID, info)
        builder.branch(self.failed)

    def _put(self, info: Any, index: int, item: Any) -> None:
        self._call("PyTuple_SetItem", I32, info, ir.Constant(I64, index), item)

    def _call_kernel(self, name: str, numbers: list[Any]) -> Any:
        """Numbers and addresses, all as i64."""
        kind = ir.FunctionType(I64, [I64] * len(numbers)).as_pointer()
        return self.builder.call(self.builder.inttoptr(self._slot(name), kind), numbers)

    def _attribute(self, name: str) -> Any:
        """An attribute of the log, which has it; NULL if it has none of its own."""
        return self._call("PyDict_GetItemWithError", POINTER, self._object("log"), self._object(f"{name}_name"))

    def _or_none(self, item: Any) -> Any:
        return self.builder.select(self._is_null(item), self._object("none"), item)

    def _named(self, name: str) -> Any:
        return self._given(NAMES.index(name))

    def _is_null(self, item: Any) -> Any:
        return self.builder.icmp_unsigned("==", item, NULL)
