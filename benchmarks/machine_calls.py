"""Functions of C called from machine code, as kernels call them: from Python a call and its lock would add to it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

_SIZE, _POINTER = ctypes.c_size_t, ctypes.c_void_p


def write_each(descriptor: int, data: npt.NDArray[np.uint8], sizes: npt.NDArray[np.int64], times: int) -> None:
    """So many times one `write` of each of the sizes, from the beginning of `data`.

    Raises:
        OSError: not all of it was written.
    """
    written = _writing()(descriptor, data.ctypes.data, sizes, times)
    if written != int(sizes.sum()) * times:
        raise OSError(f"{written} bytes were written instead of {int(sizes.sum()) * times}")


@cache
def _writing() -> Callable[..., int]:
    write = ctypes.CDLL(None).write
    write.argtypes, write.restype = (ctypes.c_int, _POINTER, _SIZE), ctypes.c_ssize_t

    def write_all(descriptor: Any, address: Any, sizes: Any, times: Any) -> Any:
        total = 0
        for _ in range(times):
            for size in sizes:
                total += write(descriptor, address, size)
        return total

    return _compiled("i8(i8, i8, i8[::1], i8)", write_all)


@cache
def inflate_each(inflate_address: int, checksum_address: int) -> Callable[..., int]:
    """`(state as int64s, its address, int64[n, 5] that a state begins with)`: members taken, and their checksums."""
    inflate = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER)(inflate_address)
    checksum = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32, _POINTER, ctypes.c_uint64)(checksum_address)

    def inflate_all(state: Any, address: Any, heads: Any) -> Any:
        for number in range(len(heads)):
            for place in range(5):
                state[place] = heads[number, place]
            if inflate(address) != 0:
                return number
            checksum(0, heads[number, 0], heads[number, 1])
        return len(heads)

    return _compiled("i8(i8[::1], i8, i8[:, ::1])", inflate_all)


@cache
def decompress_each(function_address: int) -> Callable[..., int]:
    """`(context, address and size of what there is room in, int64[n, 2] of streams)`: frames taken."""
    prototype = ctypes.CFUNCTYPE(ctypes.c_ssize_t, _POINTER, _POINTER, _SIZE, _POINTER, _SIZE)
    decompress = prototype(function_address)

    def decompress_all(context: Any, out: Any, room: Any, places: Any) -> Any:
        for number in range(len(places)):
            if decompress(context, out, room, places[number, 0], places[number, 1]) < 0:
                return number
        return len(places)

    return _compiled("i8(i8, i8, i8, i8[:, ::1])", decompress_all)


def _compiled(signature: str, function: Callable[..., Any]) -> Callable[..., int]:
    import numba

    compiled: Callable[..., int] = numba.njit(signature)(function)
    return compiled
