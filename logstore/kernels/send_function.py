"""The function of `send_steps` as Python has it, and whether this Python can have it."""

from __future__ import annotations

import ctypes
import sys
import threading
from typing import Any

from .kernel import INTERPRETED, _MethodDef
from .send_slots import TYPE_PLACE

_FASTCALL_KEYWORDS = 0x80 | 0x02
_defining = threading.Lock()
_definitions: list[_MethodDef] = []  # one at most; Python keeps its address


def is_usable() -> bool:
    """Whether this Python has objects as the function takes them to be, and a GIL."""
    has_gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    is_known = sys.implementation.name == "cpython" and sys.platform in ("linux", "darwin") and sys.maxsize == 2**63 - 1
    if INTERPRETED or not has_gil or not is_known:
        return False
    probes: tuple[object, ...] = (b"v", "t", 7, [], {})
    return all(_word(probe, TYPE_PLACE) == id(type(probe)) for probe in probes)


def place_of_slot(new: Any, name: str) -> int:
    """In which byte objects of a class have the slot `name`; -1 if that is not to be seen."""
    probe, content = new(), object()
    setattr(probe, name, content)
    places = range(object.__basicsize__, type(probe).__basicsize__, 8)
    found = [place for place in places if _word(probe, place) == id(content)]
    return found[0] if len(found) == 1 else -1


def new_send(block: int, text: str) -> Any:
    """The function for a producer; `block`: an int that keeps the block, and all that is in it.

    Args:
        text: what Python shows of the function, as of those it has in C: `send(…)`, its arguments, and a line of `--`.
    """
    from . import native

    with _defining:
        if not _definitions:
            address = native.function_address("send_steps", "send")
            _definitions.append(_MethodDef(b"send", address, _FASTCALL_KEYWORDS, text.encode()))
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    return new(("PyCFunction_NewEx", ctypes.pythonapi))(ctypes.addressof(_definitions[0]), block, None)


def _word(thing: object, place: int) -> int:
    return int(ctypes.c_uint64.from_address(id(thing) + place).value)
