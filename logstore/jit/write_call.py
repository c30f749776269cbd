"""The system's `write`, called from a kernel."""

from __future__ import annotations

import ctypes
from typing import Any

from ..jit.device import intrinsic


@intrinsic("call_write")
def call_write(address: int, descriptor: int, data: Any, size: int) -> int:
    """Call the function at `address`, which is as `write` of C, without the GIL; what it returns, -1 for an error."""
    write = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)(address)
    return int(write(descriptor, bytes(data[0:size]), size))
