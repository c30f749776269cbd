"""What a kernel is, and the two ways it runs.

The same source runs *compiled* (numba, ahead of time, see `compiler` and `native`) and *interpreted* (plain Python over
memoryviews). The interpreted run is bounds-checked by Python, so tests use it to prove that a kernel never reads or
writes outside its buffers; it is chosen with NUMBA_DISABLE_JIT=1, as in numba itself.

To mean the same in both runs a kernel keeps to these rules:
- buffers are indexed with non-negative ints only, after a bounds check: compiled code has bare pointers;
- integers are signed and stay within 64 bits: mask before shifting left past bit 62, `& MASK` after shifting right;
- no exceptions, no allocation, no tuples, no objects; helpers are marked `device`.

Signatures name the arguments: `u8*` and `i64*` are buffers, `i64` is an int. Every kernel returns an int64.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])

KERNELS: dict[str, Kernel] = {}
INLINED = "inlined"
CALLED = "called"
DEVICE_FUNCTIONS: dict[Callable[..., Any], str] = {}  # how it is compiled: INLINED, CALLED, or the intrinsic's name

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")

_CTYPES = {"i64": ctypes.c_int64, "u8*": ctypes.c_void_p, "i64*": ctypes.c_void_p}


class Kernel:
    """A callable kernel: numpy arrays (C-contiguous) and ints in, int64 out; the GIL is released while it runs."""

    def __init__(self, function: Callable[..., int], signature: str) -> None:
        self.function = function
        self.name = function.__name__
        self.argument_types = signature.replace(",", " ").split()
        self._call: Callable[..., int] | None = None

    def __call__(self, *arguments: Any) -> int:
        call = self._call or self._bind()
        return call(*[a if type(a) is int else _address(a) for a in arguments])

    def interpret(self, *arguments: Any) -> int:
        """Run the Python source itself, with bounds-checked buffers."""
        return int(self.function(*[a if isinstance(a, int) else memoryview(a.reshape(-1)) for a in arguments]))

    def _bind(self) -> Callable[..., int]:
        from . import native

        prototype = ctypes.CFUNCTYPE(ctypes.c_int64, *[_CTYPES[t] for t in self.argument_types])
        self._call = prototype(native.function_address(self.name))
        return self._call


class _InterpretedKernel(Kernel):
    def __call__(self, *arguments: Any) -> int:
        return self.interpret(*arguments)


def _address(array: np.ndarray[Any, Any]) -> int:
    return array.ctypes.data


def kernel(signature: str) -> Callable[[Callable[..., int]], Kernel]:
    """Register a function as a kernel with its argument types."""

    def register(function: Callable[..., int]) -> Kernel:
        new = _InterpretedKernel(function, signature) if INTERPRETED else Kernel(function, signature)
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
