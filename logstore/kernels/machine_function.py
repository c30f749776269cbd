"""Functions of Python's in machine code of ours, see `function_steps`: whether this Python can have them, and they."""

from __future__ import annotations

import ctypes
import sys
import threading
from functools import cache
from typing import Any, TypeVar

from .kernel import INTERPRETED, _MethodDef
from .python_layout import has_classes_in_place

_FASTCALL_KEYWORDS = 0x80 | 0x02
_defining = threading.Lock()
_definitions: dict[str, _MethodDef] = {}  # Python keeps their addresses


class Place(int):
    """The address of a block; whoever has it has the block.

    Attributes:
        block: an i64 a slot.
        objects: all that the block has the addresses of.
    """

    block: Any
    objects: tuple[object, ...]


P = TypeVar("P", bound=Place)


def new_place(kind: type[P], slots: tuple[str, ...]) -> P:
    """A new block, of zeros."""
    block = (ctypes.c_int64 * len(slots))()
    place = kind(ctypes.addressof(block))
    place.block = block
    return place


def is_usable() -> bool:
    """Whether this Python has objects as the functions take them to be, and a GIL."""
    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    is_known = sys.implementation.name == "cpython" and sys.platform in ("linux", "darwin") and sys.maxsize == 2**63 - 1
    return not INTERPRETED and has_gil and is_known and has_classes_in_place()


def new_function(module: str, name: str, place: Place, text: str) -> Any:
    """The function `name` of a module of the kernels, for what the block is of.

    Args:
        text: what Python shows of the function, as of those it has in C: its name and arguments, and a line of `--`.
    """
    from . import native

    with _defining:
        if module not in _definitions:
            address = native.function_address(module, name)
            shown = text.partition("(")[0].encode()
            _definitions[module] = _MethodDef(shown, address, _FASTCALL_KEYWORDS, text.encode())
    return _maker()(ctypes.addressof(_definitions[module]), place, None)


@cache
def _maker() -> Any:
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    return new(("PyCFunction_NewEx", ctypes.pythonapi))


def place_of_slot(new: Any, name: str) -> int:
    """In which byte objects of a class have the slot `name`; -1 if that is not to be seen."""
    probe, content = new(), object()
    setattr(probe, name, content)
    places = range(object.__basicsize__, type(probe).__basicsize__, 8)
    found = [place for place in places if _word(probe, place) == id(content)]
    return found[0] if len(found) == 1 else -1


def _word(thing: object, place: int) -> int:
    return int(ctypes.c_uint64.from_address(id(thing) + place).value)
