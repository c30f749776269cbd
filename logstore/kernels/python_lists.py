"""Python lists as kernels see them: bytes are copied from where they lie, ints are read. And what is written of them.

The compiled forms call Python's C API, by functions that every CPython 3 has with these signatures (the limited API),
so kernels with a list argument keep the GIL. An item of another type is told by a code, and no exception stays behind.
Where lists and bytes are known to lie as `python_layout` has it, they are read without calls, by who says `is_known`.
"""

from __future__ import annotations

import ctypes
import operator
from typing import Any

from .kernel import intrinsic

IS_NONE = -1
IS_OTHER = -2
NOT_AN_INT = -(1 << 63)


@intrinsic("list_size")
def list_size(items: Any) -> int:
    """Items of a list; IS_NONE for None, IS_OTHER for what is no list."""
    if items is None:
        return IS_NONE
    return len(items) if isinstance(items, list) else IS_OTHER


@intrinsic("item_at")
def item_at(items: Any, index: int, is_known: int) -> Any:
    """Item `index` of a list; nothing, which is no bytes, where the list ends before it. To be used at once."""
    return items[index] if index < len(items) else NotImplemented


@intrinsic("bytes_size")
def bytes_size(item: Any, is_known: int) -> int:
    """Bytes of an item; IS_NONE for None, IS_OTHER for what is no bytes."""
    if item is None:
        return IS_NONE
    return len(item) if isinstance(item, bytes) else IS_OTHER


@intrinsic("bytes_data")
def bytes_data(item: Any, is_known: int) -> Any:
    """The content of an item that is bytes by `bytes_size`, to be read up to that size; of other items it has none."""
    return item


@intrinsic("copy_bytes")
def copy_bytes(data: Any, size: int, out: Any, position: int) -> int:
    """Copy what `bytes_data` gave to `position`; returns the position after it."""
    out[position : position + size] = data
    return position + size


@intrinsic("item_int")
def item_int(items: Any, index: int) -> int:
    """Item `index`; NOT_AN_INT for what is no int of 64 bits, and where the list ends before it."""
    if index >= len(items):
        return NOT_AN_INT
    try:
        value = operator.index(items[index])
    except TypeError:
        return NOT_AN_INT
    return value if NOT_AN_INT <= value < 1 << 63 else NOT_AN_INT


@intrinsic("call_write")
def call_write(address: int, descriptor: int, data: Any, size: int) -> int:
    """Call the function at `address`, which is as `write` of C, without the GIL; what it returns, -1 for an error."""
    write = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)(address)
    return int(write(descriptor, bytes(data[0:size]), size))
