"""Functions of C libraries that kernels call by their addresses: a call costs nothing but itself, and no interpreter.

Whoever gives an address answers for it that the function there is what is said here.
"""

from __future__ import annotations

import ctypes
from typing import Any

from ..jit.device import intrinsic

_SIZE, _POINTER = ctypes.c_size_t, ctypes.c_void_p


@intrinsic("address_at", "logstore.kernels.c_intrinsics")
def address_at(data: Any, position: int) -> int:
    """The address of a byte of a buffer, which has one there."""
    import numpy as np

    return int(np.frombuffer(data[position : position + 1], np.uint8).ctypes.data)


@intrinsic("call_inflate", "logstore.kernels.c_intrinsics")
def call_inflate(function: int, state: int) -> int:
    """Call a function as `isal_inflate_stateless`: the address of a state in, what went wrong back, 0 nothing."""
    return int(ctypes.CFUNCTYPE(ctypes.c_int, _POINTER)(function)(state))


@intrinsic("call_crc32", "logstore.kernels.c_intrinsics")
def call_crc32(function: int, crc: int, data: int, size: int) -> int:
    """Call a function as `crc32_gzip_refl`: the checksum so far, an address and bytes in, the checksum back."""
    prototype = ctypes.CFUNCTYPE(ctypes.c_uint32, ctypes.c_uint32, _POINTER, ctypes.c_uint64)
    return int(prototype(function)(crc, data, size))


@intrinsic("call_zstd", "logstore.kernels.c_intrinsics")
def call_zstd(function: int, context: int, out: int, room: int, data: int, size: int) -> int:
    """Call a function as `ZSTD_decompressDCtx`: a context and two buffers in, bytes of `out` back, below 0 an error."""
    prototype = ctypes.CFUNCTYPE(ctypes.c_ssize_t, _POINTER, _POINTER, _SIZE, _POINTER, _SIZE)
    return int(prototype(function)(context, out, room, data, size))
