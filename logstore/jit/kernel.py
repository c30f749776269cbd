"""What a kernel is, and the two ways it runs.

The same source runs *compiled* (by numba, into the shared library that `library` loads) and *interpreted* (plain Python
over memoryviews). The interpreted run is bounds-checked by Python, so tests use it to prove that a kernel never reads
or writes outside its buffers; it is chosen with NUMBA_DISABLE_JIT=1, as in numba itself.

To mean the same in both runs a kernel keeps to these rules:
- buffers are indexed with non-negative ints only, after a bounds check: compiled code has bare pointers;
- integers are signed and stay within 64 bits: mask before shifting left past bit 62, `& MASK` after shifting right;
- no exceptions, no allocation, no objects; the functions that kernels call are marked `device`.

Signatures name the arguments: `u8*` and `i64*` are arrays, `i64` is an int, a class of `structs` a struct; bytes that
are only read may stand for `u8*`. Every kernel returns an int64. A call by ctypes costs 0.3 µs and 2 µs for each array,
so frequent calls pass structs, or are `bound`.
"""

from __future__ import annotations

import ctypes
import operator
import os
from collections.abc import Callable
from functools import cached_property
from typing import Any

from .structs import Struct, address_of, interpreted_array, interpreted_struct

ArgumentType = str | type[Struct]

KERNELS: dict[str, Kernel] = {}

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
_INT64 = range(-(1 << 63), 1 << 63)


class Kernel:
    """A callable kernel: arrays (C-contiguous), structs and ints in, int64 out.

    A call runs without the GIL; a `bound` one keeps it, unless the kernel `waits` for the system.
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
        """Keep the arguments, for short calls that are made again and again."""
        return BoundKernel(self, arguments)

    def interpret(self, *arguments: Any) -> int:
        """Run the Python source itself, with bounds-checked buffers."""
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
    """A kernel whose first arguments are kept, so that no address is asked for again."""

    __slots__ = ("_arguments", "_kernel", "_passed")

    def __init__(self, kernel: Kernel, arguments: tuple[Any, ...]) -> None:
        self._kernel = kernel
        self._arguments = arguments  # keeps the arrays alive
        self._passed = tuple(map(_passed, kernel.argument_types, arguments))

    def run(self, *rest: int | bytes) -> int:
        """Call the kernel; `rest` are its last arguments, those that are not kept."""
        if INTERPRETED:
            return self._kernel.interpret(*self._arguments, *rest)
        return self._kernel.with_gil(*self._passed, *rest)


def _passed(kind: ArgumentType, argument: Any) -> int | bytes:
    """What the C function is given for an argument; an int for an array is the address of one."""
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
