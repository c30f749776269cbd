"""`write` of C called from machine code, as a log calls it: from Python a call and its lock would be a fifth of it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt


def write_each(descriptor: int, data: npt.NDArray[np.uint8], sizes: npt.NDArray[np.int64], times: int) -> None:
    """So many times one write of each of the sizes, from the beginning of `data`.

    Raises:
        OSError: not all of it was written.
    """
    written = _machine_code()(descriptor, data.ctypes.data, sizes, times)
    if written != int(sizes.sum()) * times:
        raise OSError(f"{written} bytes were written instead of {int(sizes.sum()) * times}")


@cache
def _machine_code() -> Callable[..., int]:
    import numba

    write = ctypes.CDLL(None).write
    write.argtypes, write.restype = (ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t), ctypes.c_ssize_t

    def write_all(descriptor: Any, address: Any, sizes: Any, times: Any) -> Any:
        total = 0
        for _ in range(times):
            for size in sizes:
                total += write(descriptor, address, size)
        return total

    compiled: Callable[..., int] = numba.njit("i8(i8, i8, i8[::1], i8)")(write_all)
    return compiled
