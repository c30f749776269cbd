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


def _compiled(signature: str, function: Callable[..., Any]) -> Callable[..., int]:
    import numba

    compiled: Callable[..., int] = numba.njit(signature)(function)
    return compiled
