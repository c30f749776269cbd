"""Declares structs of 64-bit words that Python and kernels share.

    @struct
    class Segment(Struct):
        size: int                # bytes
        size_max: int
        out: Bytes               # uint8 array
        entries: Words           # int64 array

A declared class is a `ctypes.Structure`: Python and a kernel with `Segment` in its signature read and set
`segment.size`. An array field checks once that the array is C-contiguous and has the right dtype, keeps it alive, and
holds its address; a kernel reads it by `out = bytes_at(segment.out)`, `entries = words_at(segment.entries)`.

ctypes truncates ints to 64 bits without an error, so an int from a caller must be checked before it is set.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from .device import intrinsic

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Words = npt.NDArray[np.int64]
else:
    Bytes = Words = Any

S = TypeVar("S", bound="Struct")

_KINDS = {"int": "i64", "Bytes": "u8*", "Words": "i64*"}  # of annotations
_DTYPE_NAMES = {"u8*": "uint8", "i64*": "int64"}
_FORMATS = {"u8*": "B", "i64*": "q"}  # of memoryviews
_INT64 = range(-(1 << 63), 1 << 63)


class Struct(ctypes.Structure):
    """Base of the declared structs; `struct` makes one from a class of annotations.

    Attributes:
        kinds: `i64`, `u8*` or `i64*` by field name, in order.
    """

    kinds: ClassVar[dict[str, str]] = {}
    _arrays: dict[str, Any]


class _ArrayField:
    """Field that holds the address of an array, and keeps the array alive."""

    def __init__(self, name: str, kind: str) -> None:
        self._name, self._kind = name, kind

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else instance.__dict__.get(self._name)

    def __set__(self, instance: Any, array: Any) -> None:
        address = address_of(self._kind, array)
        # before the address is set: an interrupt in between must not leave the address of a freed array
        instance.__dict__[f"next {self._name}"] = array
        setattr(instance, _address_name(self._name), address)
        instance.__dict__[self._name] = array


def struct(declared: type[S]) -> type[S]:
    """Make a ctypes structure from a class whose annotations are `int`, `Bytes` and `Words`."""
    kinds = {name: _KINDS[str(kind)] for name, kind in declared.__annotations__.items()}
    fields = [(name if kind == "i64" else _address_name(name), ctypes.c_int64) for name, kind in kinds.items()]
    content: dict[str, Any] = {"__doc__": declared.__doc__, "__module__": declared.__module__, "kinds": kinds}
    content.update({name: _ArrayField(name, kind) for name, kind in kinds.items() if kind != "i64"})
    made: type[S] = type(Struct)(declared.__name__, (Struct,), {**content, "_fields_": fields})  # type: ignore[misc]
    return made


def _address_name(name: str) -> str:
    return f"{name}_address"


def address_of(kind: Any, array: Any) -> int:
    """Return the address of an array's first item; checks that it is of `kind`, `u8*` or `i64*`.

    Also takes a writable memoryview that is not empty, for callers that do not import numpy.

    Raises:
        TypeError: the array has another dtype, or is not C-contiguous.
    """
    if isinstance(array, memoryview) and array.format == _FORMATS.get(kind):
        return ctypes.addressof(ctypes.c_char.from_buffer(array))
    check_array(kind, array)
    return int(array.ctypes.data)


def check_array(kind: Any, array: Any) -> None:
    """Raise TypeError for an array that a kernel cannot take as `kind`."""
    dtype = getattr(array, "dtype", None)
    if dtype is None or dtype != _dtype(kind) or not array.flags.c_contiguous:
        found = type(array).__name__ if dtype is None else f"{dtype}{list(array.shape)}, strides {array.strides}"
        raise TypeError(f"a kernel expected a C-contiguous array of {_DTYPE_NAMES.get(kind, kind)}, not {found}")


@cache
def _dtype(kind: Any) -> Any:
    """Return the dtype of an array kind; None for another kind. Imports numpy here, as small dumps run without it."""
    import numpy as np

    return np.dtype(_DTYPE_NAMES[kind]) if kind in _DTYPE_NAMES else None


def interpreted_array(kind: Any, array: Any) -> memoryview:
    """Return the items of an array, or of bytes, as a memoryview, whose bounds Python checks."""
    if isinstance(array, memoryview | bytes):
        return memoryview(array)
    check_array(kind, array)
    return memoryview(array.reshape(-1))


def interpreted_struct(instance: Struct) -> Any:
    """Return the struct for an interpreted kernel: with memoryviews in place of arrays, and checked ints."""
    return _Interpreted(instance)


class _Interpreted:
    """Fields of a struct for an interpreted kernel."""

    __slots__ = ("_instance",)

    def __init__(self, instance: Struct) -> None:
        object.__setattr__(self, "_instance", instance)

    def __getattr__(self, name: str) -> Any:
        kind = type(self._instance).kinds[name]
        value = getattr(self._instance, name)
        if value is None:
            return memoryview(b"")  # an array that was not set has no items
        return value if kind == "i64" else interpreted_array(kind, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if type(self._instance).kinds[name] != "i64" or value not in _INT64:
            raise OverflowError(f"a kernel set {name} to {value!r}")
        setattr(self._instance, name, int(value))


@intrinsic("bytes_at")
def bytes_at(field: Any) -> Any:
    """Return the bytes of a `Bytes` field, in a kernel."""
    return field


@intrinsic("words_at")
def words_at(field: Any) -> Any:
    """Return the words of a `Words` field, in a kernel."""
    return field


@intrinsic("call_write")
def call_write(address: int, descriptor: int, data: Any, size: int) -> int:
    """Call the C function at `address`, of the signature of `write`; returns its result, -1 for an error."""
    write = ctypes.CFUNCTYPE(ctypes.c_ssize_t, ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t)(address)
    return int(write(descriptor, bytes(data[0:size]), size))
