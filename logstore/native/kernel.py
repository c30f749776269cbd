"""Declares kernels, and runs them compiled or interpreted.

The same source runs *compiled* (in the shared library that `library` loads) and *interpreted* (as Python over
memoryviews). Python checks the bounds of an interpreted run, with which tests prove that a kernel never reads or writes
outside its buffers. NUMBA_DISABLE_JIT=1 chooses it, as in numba itself.

Rules for kernels, so that both runs compute the same:
- index buffers only with non-negative ints, after a bounds check: compiled code has bare pointers;
- integers are signed and stay within 64 bits: mask before shifting left past bit 62, `& MASK` after shifting right;
- no exceptions, no allocation, no objects; functions that kernels call are marked `device`.

A signature lists argument types: `u8*` and `i64*` are arrays, `i64` is an int, a class of `structs` a struct; `bytes`
may be passed for a `u8*` that is only read. Every kernel returns an int64. A call by ctypes costs 0.3 µs and 2 µs per
array, so frequent calls pass structs, or are `bound`.
"""

from __future__ import annotations

import ctypes
import operator
import os
from collections.abc import Callable
from typing import Any

from ..cached_property import cached_property
from .structs import Struct, address_of, interpreted_array, interpreted_struct

ArgumentType = str | type[Struct]

KERNELS: dict[str, Kernel] = {}

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
_INT64 = range(-(1 << 63), 1 << 63)


class Kernel:
    """Callable kernel, which takes C-contiguous arrays, structs and ints and returns an int64.

    A call releases the GIL; a `bound` one keeps it, unless the kernel `waits` for the system.
    """

    def __init__(self, function: Callable[..., int], *types: ArgumentType, waits: bool = False) -> None:
        self.function = function
        self.waits = waits
        self.name = function.__name__
        self.argument_types: list[ArgumentType] = []
        for each in types:
            self.argument_types += each.replace(",", " ").split() if isinstance(each, str) else [each]

    def __call__(self, *arguments: Any) -> int:
        if INTERPRETED:
            return self.interpret(*arguments)
        return self._without_gil(*map(_passed, self.argument_types, arguments))

    def bound(self, *arguments: Any) -> BoundKernel:
        """Keep the arguments, for frequent short calls."""
        return BoundKernel(self, arguments)

    def interpret(self, *arguments: Any) -> int:
        """Run the Python source, with bounds-checked buffers."""
        return int(self.function(*map(_interpreted, self.argument_types, arguments)))

    @cached_property
    def _without_gil(self) -> Callable[..., int]:
        return self._loaded(ctypes.CFUNCTYPE)

    @cached_property
    def with_gil(self) -> Callable[..., int]:
        """The C function, which takes addresses and ints and keeps the GIL, unless the kernel `waits`."""
        return self._without_gil if self.waits else self._loaded(ctypes.PYFUNCTYPE)

    def _loaded(self, new_type: Callable[..., Any]) -> Callable[..., int]:
        from .library import function_address

        types = [ctypes.c_int64 if kind == "i64" else ctypes.c_void_p for kind in self.argument_types]
        function: Callable[..., int] = new_type(ctypes.c_int64, *types)(function_address(self.name))
        return function


class BoundKernel:
    """Kernel with its first arguments, whose addresses are computed once."""

    __slots__ = ("_arguments", "_kernel", "_passed")

    def __init__(self, kernel: Kernel, arguments: tuple[Any, ...]) -> None:
        self._kernel = kernel
        self._arguments = arguments  # keeps the arrays alive
        self._passed = tuple(map(_passed, kernel.argument_types, arguments))

    def run(self, *rest: int | bytes) -> int:
        """Call the kernel with its remaining arguments."""
        if INTERPRETED:
            return self._kernel.interpret(*self._arguments, *rest)
        return self._kernel.with_gil(*self._passed, *rest)


def _passed(kind: ArgumentType, argument: Any) -> int | bytes:
    """Return the C function's argument; an int in place of an array is the address of one."""
    if type(argument) is int or (type(argument) is bytes and kind == "u8*"):
        return argument
    if isinstance(argument, Struct):
        return _checked_struct(kind, argument)
    return operator.index(argument) if kind == "i64" else address_of(kind, argument)


def _interpreted(kind: ArgumentType, argument: Any) -> Any:
    if isinstance(argument, Struct):
        _checked_struct(kind, argument)
        return interpreted_struct(argument)
    if kind == "i64":
        number = operator.index(argument)
        if number not in _INT64:
            raise OverflowError(f"{number} is no int of 64 bits")
        return number
    return interpreted_array(kind, argument)


def _checked_struct(kind: ArgumentType, argument: Struct) -> int:
    if type(argument) is not kind:
        raise TypeError(f"a kernel expected {kind}, not a {type(argument).__name__}")
    return ctypes.addressof(argument)


def kernel(*types: ArgumentType, waits: bool = False) -> Callable[[Callable[..., int]], Kernel]:
    """Declare a function as a kernel with its argument types; `waits`: it calls `call_write`."""

    def register(function: Callable[..., int]) -> Kernel:
        new = Kernel(function, *types, waits=waits)
        KERNELS[new.name] = new
        return new

    return register
