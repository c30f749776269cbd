"""What a kernel is, and the two ways it runs.

The same source runs *compiled* (numba, ahead of time, see `compiler` and `native`) and *interpreted* (plain Python over
memoryviews). The interpreted run is bounds-checked by Python, so tests use it to prove that a kernel never reads or
writes outside its buffers; it is chosen with NUMBA_DISABLE_JIT=1, as in numba itself.

To mean the same in both runs a kernel keeps to these rules:
- buffers are indexed with non-negative ints only, after a bounds check: compiled code has bare pointers;
- integers are signed and stay within 64 bits: mask before shifting left past bit 62, `& MASK` after shifting right;
- no exceptions, no allocation, no tuples, no objects; helpers are marked `device`.

Signatures name the arguments: `u8*` and `i64*` are buffers, `i64` is an int. Every kernel
returns an int64. A call costs half a microsecond and more for each array; `bound` keeps the arguments where they are.
"""

from __future__ import annotations

import ctypes
import operator
import os
import sys
import threading
from collections.abc import Callable
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

KERNELS: dict[str, Kernel] = {}
INLINED = "inlined"
CALLED = "called"
DEVICE_FUNCTIONS: dict[Callable[..., Any], str] = {}  # how it is compiled: INLINED, CALLED, or the intrinsic's name

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")

_CTYPES = {"i64": ctypes.c_int64, "u8*": ctypes.c_void_p, "i64*": ctypes.c_void_p}


_FASTCALL = 0x80  # METH_FASTCALL
_defining = threading.Lock()


class _MethodDef(ctypes.Structure):
    """`PyMethodDef`: a function of Python that is written in C, here in machine code of ours."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("text", ctypes.c_char_p),
    )


class _Block(int):
    """The address of a block of arguments; whoever has it has the block and the buffers."""

    owner: BoundKernel


class Kernel:
    """A callable kernel: arrays (C-contiguous) and ints in, int64 out.

    It runs without the GIL, unless it `holds_gil`: then it gives it up itself where it waits.
    """

    def __init__(self, function: Callable[..., int], signature: str, *, holds_gil: bool = False) -> None:
        self.function = function
        self.holds_gil = holds_gil
        self.name = function.__name__
        self.module = function.__module__.rpartition(".")[2]
        self.argument_types = signature.replace(",", " ").split()
        self._call: Callable[..., int] | None = None
        self._definition: _MethodDef | None = None  # Python keeps its address

    def __call__(self, *arguments: Any) -> int:
        call = self._call or self._bind()
        return call(*[a if type(a) is int else address_of(a) for a in arguments])

    def bound(self, *arguments: Any) -> BoundKernel:
        """This kernel with its arguments kept, for short calls that are made again and again."""
        return BoundKernel(self, arguments)

    def definition(self) -> int:
        """Address of what Python is told of the kernel, a `PyMethodDef`."""
        if self._definition is None:
            from . import native

            address = native.function_address(self.module, f"python_{self.name}")
            with _defining:  # of two only one is kept, and whoever had the other's address would call into nowhere
                self._definition = self._definition or _MethodDef(self.name.encode(), address, _FASTCALL, None)
        return ctypes.addressof(self._definition)

    def interpret(self, *arguments: Any) -> int:
        """Run the Python source itself, with bounds-checked buffers."""
        passed = [_interpreted(kind, a) for kind, a in zip(self.argument_types, arguments, strict=True)]
        return int(self.function(*passed))

    def _bind(self) -> Callable[..., int]:
        from . import native

        new_type = ctypes.PYFUNCTYPE if self.holds_gil else ctypes.CFUNCTYPE
        prototype = new_type(ctypes.c_int64, *[_CTYPES[t] for t in self.argument_types])
        self._call = prototype(native.function_address(self.module, self.name))
        return self._call


def _interpreted(kind: str, argument: Any) -> Any:
    return argument if isinstance(argument, int) else memoryview(argument.reshape(-1))


class _InterpretedKernel(Kernel):
    def __call__(self, *arguments: Any) -> int:
        return self.interpret(*arguments)


class BoundKernel:
    """A kernel whose arguments lie ready in memory, so that a call costs 0.05 µs; it keeps the GIL.

    Attributes:
        block: c_int64 array, an item an argument: ints may be set there at any time, the addresses of buffers not.
        run: calls the kernel. Its arguments, ints, take the places of the first ones for this call.
    """

    __slots__ = ("_buffers", "_kernel", "block", "run")

    def __init__(self, kernel: Kernel, arguments: tuple[Any, ...]) -> None:
        self._kernel = kernel
        self.block = (ctypes.c_int64 * len(arguments))()
        self._buffers: dict[int, Any] = {}  # keeps them alive
        for index, argument in enumerate(arguments):
            self.set(index, argument)
        self.run: Callable[..., int] = self._interpreted if INTERPRETED else self._bind()

    def set(self, index: int, argument: Any) -> None:
        """Put another int or array (C-contiguous) in the place of an argument."""
        is_int = type(argument) is int
        self.block[index] = argument if is_int else address_of(argument)
        self._buffers[index] = argument

    def _bind(self) -> Callable[..., int]:
        block = _Block(ctypes.addressof(self.block))
        block.owner = self
        run: Callable[..., int] = _new_function()(self._kernel.definition(), block, None)
        return run

    def _interpreted(self, *first: Any) -> int:
        kinds = self._kernel.argument_types
        kept = [value if kinds[i] == "i64" else self._buffers[i] for i, value in enumerate(self.block)]
        given = [_int64(item) if kind == "i64" else item for item, kind in zip(first, kinds, strict=False)]
        return self._kernel.interpret(*given, *kept[len(first) :])


@cache
def _new_function() -> Callable[..., Any]:
    """`PyCFunction_NewEx`; ctypes makes a class whenever it is asked for the prototype."""
    prototype = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    return prototype(("PyCFunction_NewEx", ctypes.pythonapi))


def _int64(number: Any) -> int:
    """As `PyLong_AsLongLong` takes a number."""
    if operator.index(number).bit_length() > 63 and number != -(1 << 63):
        raise OverflowError("no int of 64 bits")
    return operator.index(number)


def address_of(argument: np.ndarray[Any, Any]) -> int:
    """Of an array's first item."""
    return _ADDRESS_OF[type(argument)](argument)


def _asked_address(argument: Any) -> int:
    return int(argument.ctypes.data)


def _address_in_head(argument: Any) -> int:
    return int(ctypes.c_int64.from_address(id(argument) + _HEAD_SIZE).value)


class _AddressOf(dict[type, Callable[[Any], int]]):
    """How the address of an argument is found, by its type; numpy, which a small dump does without, comes last."""

    def __missing__(self, kind: type) -> Callable[[Any], int]:
        import numpy as np

        self[np.ndarray] = _address_in_head if _is_address_in_head(np) else _asked_address
        return self.get(kind, _asked_address)


def _is_address_in_head(np: Any) -> bool:
    """Whether an array has its address right behind what all objects begin with: to ask numpy takes 7 times as long."""
    if sys.implementation.name != "cpython":
        return False
    probes = [np.zeros(size, np.int64)[skipped:] for size, skipped in ((1, 0), (9, 4), (4096, 1))]
    return all(_address_in_head(probe) == probe.ctypes.data for probe in probes)


_HEAD_SIZE = object.__basicsize__
_ADDRESS_OF = _AddressOf()


class Constants:
    """Numbers that kernels index, made when they are first asked for: by the compiler or an interpreted kernel."""

    def __init__(self, make: Callable[[], np.ndarray[Any, Any]]) -> None:
        self._make = make

    @cached_property
    def array(self) -> np.ndarray[Any, Any]:
        """int64 or uint32, 1-D: what the compiler puts in the place of this."""
        return self._make()

    def __getitem__(self, index: int) -> int:
        return int(self.array[index])


def kernel(signature: str, *, holds_gil: bool = False) -> Callable[[Callable[..., int]], Kernel]:
    """Register a function as a kernel with its argument types; `holds_gil`: it calls `call_write`."""

    def register(function: Callable[..., int]) -> Kernel:
        new_type = _InterpretedKernel if INTERPRETED else Kernel
        new = new_type(function, signature, holds_gil=holds_gil)
        KERNELS[new.name] = new
        return new

    return register


def device(function: F) -> F:
    """Mark a function that kernels call; it is compiled into each place that calls it."""
    DEVICE_FUNCTIONS[function] = INLINED
    return function


def called(function: F) -> F:
    """Mark a function that kernels call seldom, or from many places; it is compiled once and called."""
    DEVICE_FUNCTIONS[function] = CALLED
    return function


def intrinsic(name: str) -> Callable[[Any], Any]:
    """Mark a device function whose compiled form is the LLVM intrinsic `name` of `compiler`; its body is the twin."""

    def register(function: Any) -> Any:
        DEVICE_FUNCTIONS[function] = name
        return function

    return register
