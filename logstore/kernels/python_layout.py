"""How lists and bytes lie in the memory of the CPythons that are known, and whether this one is such a one."""

from __future__ import annotations

import ctypes
import sys
from functools import cache

# Bytes from the begin of an object.
TYPE_PLACE = 8  # its class, behind the count of references
SIZE_PLACE = 16  # of a list its items, of bytes theirs
ITEMS_PLACE = 24  # of a list the address of its first item, 0 without one
ROOM_PLACE = 32  # of a list, items that there is room for
DATA_PLACE = 32  # of bytes the first one
_LIST_SIZE = 40


@cache
def is_known() -> bool:
    """Whether lists and bytes are so; nothing is looked at for it that is not theirs."""
    if sys.implementation.name != "cpython" or sys.maxsize != (1 << 63) - 1:
        return False
    return has_classes_in_place() and _has_lists_in_place() and _has_bytes_in_place()


def has_classes_in_place() -> bool:
    """Whether objects have their class where it is to be."""
    probes: tuple[object, ...] = (b"v", "t", 7, [], {})
    return all(_word(probe, TYPE_PLACE) == id(type(probe)) for probe in probes)


def _has_lists_in_place() -> bool:
    grown: list[object] = []
    for number in range(1000):
        grown.append(number)
    probes: tuple[list[object], ...] = ([], [None], ["a", b"b", 3], grown)
    # when the four words beside it are right, the fifth is the address, and may be followed
    places = [0, TYPE_PLACE, SIZE_PLACE, ITEMS_PLACE, ROOM_PLACE]
    has_one_left = sorted(places) == list(range(0, _LIST_SIZE, 8)) and all(map(_has_sizes_in_place, probes))
    return has_one_left and all(map(_has_items_in_place, probes))


def _has_sizes_in_place(probe: list[object]) -> bool:
    room = (probe.__sizeof__() - _LIST_SIZE) // 8
    return (
        list.__basicsize__ == _LIST_SIZE
        and _counts_references(probe)
        and _word(probe, TYPE_PLACE) == id(list)
        and (_word(probe, SIZE_PLACE), _word(probe, ROOM_PLACE)) == (len(probe), room)
        and (_word(probe, ITEMS_PLACE) != 0) == (room > 0)
    )


def _counts_references(probe: object) -> bool:
    before = _word(probe, 0)
    more = [probe] * 7
    return _word(probe, 0) - before == len(more)


def _has_items_in_place(probe: list[object]) -> bool:
    items = (ctypes.c_uint64 * len(probe)).from_address(_word(probe, ITEMS_PLACE)) if probe else ()
    return list(items) == [id(item) for item in probe]


def _has_bytes_in_place() -> bool:
    address_of = ctypes.PYFUNCTYPE(ctypes.c_uint64, ctypes.py_object)(("PyBytes_AsString", ctypes.pythonapi))
    probes = (b"", b"v", bytes(7), bytes(range(100)), bytes(10_000))
    return all(
        _word(probe, SIZE_PLACE) == len(probe) and address_of(probe) == id(probe) + DATA_PLACE for probe in probes
    )


def _word(thing: object, place: int) -> int:
    return int(ctypes.c_uint64.from_address(id(thing) + place).value)
