"""An object file brought into memory without LLVM, whose library alone takes longer to load than a small dump lasts.

Only what LLVM makes of the kernels on Linux on x86-64 is known: ELF, code and constants, addresses of 64 bits in full
or relative. `load_object` says None to all else, and then LLVM loads the file itself (`native`).
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from typing import NamedTuple

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_RELOCATION = struct.Struct("<QQq")
_ADDRESS = struct.Struct("<Q")
_MASK = (1 << 64) - 1

_ELF_64_LITTLE = b"\x7fELF\x02\x01\x01"
_RELOCATABLE, _X86_64 = 1, 62
_PROGBITS, _SYMTAB, _RELA = 1, 2, 4  # kinds of sections
_WRITE, _ALLOC, _THREAD_LOCAL = 1, 2, 0x400  # flags of sections
_ABSOLUTE, _RELATIVE = 1, 24  # R_X86_64_64, R_X86_64_PC64
_DEFINED_MAX = 0xFF00  # sections from here on are none, but mean something
_GLOBAL = 1

_READ_WRITE, _READ_EXECUTE = 3, 5  # PROT_…
_PRIVATE_ANONYMOUS = 0x22  # MAP_… of Linux


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    start: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int

    @property
    def is_loaded(self) -> bool:
        """Whether it is code or constants; what unwinders want is neither."""
        return self.kind == _PROGBITS and bool(self.flags & _ALLOC) and self.size > 0


class _UnknownError(Exception):
    """The file has something that only LLVM knows how to load."""


def load_object(content: bytes) -> dict[str, int] | None:
    """Addresses of the global functions of an object file, in memory that is never let go; None: let LLVM load it."""
    if not sys.platform.startswith("linux") or os.uname().machine != "x86_64" or ctypes.sizeof(ctypes.c_void_p) != 8:
        return None
    try:
        return _load(content)
    except (_UnknownError, struct.error, ValueError, AttributeError, OSError):
        return None


def _load(content: bytes) -> dict[str, int]:
    sections = _sections(content)
    places, size = _places(sections)
    base = _new_memory(size)
    image = bytearray(size)
    for index, place in places.items():
        section = sections[index]
        image[place : place + section.size] = content[section.start : section.start + section.size]
    table = next((section for section in sections if section.kind == _SYMTAB), None)
    if table is None:
        raise _UnknownError
    symbols = _Symbols(content, table, sections[table.link], {index: base + place for index, place in places.items()})
    for section in sections:
        if section.kind == _RELA and section.info in places:
            _relocate(image, content[section.start : section.start + section.size], places[section.info], base, symbols)
    ctypes.memmove(base, bytes(image), size)
    if _libc().mprotect(ctypes.c_void_p(base), ctypes.c_size_t(size), _READ_EXECUTE) != 0:
        raise OSError("mprotect")
    return symbols.functions()


def _sections(content: bytes) -> list[_Section]:
    magic, kind, machine, *_, first, _, _, _, _, entry_size, count, _ = _HEADER.unpack_from(content)
    if not magic.startswith(_ELF_64_LITTLE) or (kind, machine, entry_size) != (_RELOCATABLE, _X86_64, _SECTION.size):
        raise _UnknownError
    return [_Section(*_SECTION.unpack_from(content, first + index * entry_size)) for index in range(count)]


def _places(sections: list[_Section]) -> tuple[dict[int, int], int]:
    """Where each section that is loaded comes to lie, by its index; and the bytes of all."""
    places = {}
    end = 0
    for index, section in enumerate(sections):
        if section.flags & _ALLOC and section.flags & (_WRITE | _THREAD_LOCAL):
            raise _UnknownError
        if section.is_loaded:
            start = -(-end // max(section.alignment, 1)) * max(section.alignment, 1)
            places[index] = start
            end = start + section.size
    return places, end


class _Symbols:
    """The symbols of the file, and the addresses that they have."""

    def __init__(self, content: bytes, table: _Section, names: _Section, addresses: dict[int, int]) -> None:
        self._names = content[names.start : names.start + names.size]
        self._entries = list(_SYMBOL.iter_unpack(content[table.start : table.start + table.size]))
        self._addresses = addresses  # of the sections
        self._found: dict[int, int] = {}

    def address(self, index: int) -> int:
        """Of a symbol of the file, or of Python or the C library."""
        if index not in self._found:
            name, _, _, section, value, _ = self._entries[index]
            if section in self._addresses:
                self._found[index] = self._addresses[section] + value
            elif section == 0:
                symbol = ctypes.c_char.in_dll(ctypes.pythonapi, self._name(name))
                self._found[index] = ctypes.addressof(symbol)
            else:
                raise _UnknownError
        return self._found[index]

    def functions(self) -> dict[str, int]:
        """The global ones that the file has itself."""
        return {
            self._name(name): self._addresses[section] + value
            for name, info, _, section, value, _ in self._entries
            if info >> 4 == _GLOBAL and section in self._addresses and section < _DEFINED_MAX
        }

    def _name(self, start: int) -> str:
        return self._names[start : self._names.index(0, start)].decode()


def _relocate(image: bytearray, relocations: bytes, place: int, base: int, symbols: _Symbols) -> None:
    """Fill in the addresses of one section, which lies at `place` of the image, and that at `base` in memory."""
    for offset, info, addend in _RELOCATION.iter_unpack(relocations):
        kind = info & 0xFFFFFFFF
        target = symbols.address(info >> 32) + addend
        if kind == _RELATIVE:
            target -= base + place + offset
        elif kind != _ABSOLUTE:
            raise _UnknownError
        _ADDRESS.pack_into(image, place + offset, target & _MASK)


def _new_memory(size: int) -> int:
    mmap = _libc().mmap
    mmap.restype = ctypes.c_void_p
    no_file = ctypes.c_int(-1)
    base = mmap(None, ctypes.c_size_t(size), _READ_WRITE, _PRIVATE_ANONYMOUS, no_file, ctypes.c_int64(0))
    if base is None or base == ctypes.c_void_p(-1).value:
        raise OSError("mmap")
    return int(base)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)
