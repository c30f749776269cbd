"""Varints by their definition: seven bits a byte, low bits first, zigzag; integers as large as Python likes."""

from __future__ import annotations

VARINT_BITS, VARLONG_BITS = 32, 64


class EndOfBytesError(Exception):
    """The bytes end inside a number."""


class TooLongError(Exception):
    """A number has more bytes than its type allows."""

    def __init__(self, so_far: int) -> None:
        super().__init__(so_far)
        self.so_far = so_far


def read_varint(data: bytes, position: int) -> tuple[int, int]:
    """A signed number of 32 bits, and the position after it.

    >>> read_varint(b"\\x03\\x80\\x01", 0), read_varint(b"\\x03\\x80\\x01", 1)
    ((-2, 1), (64, 3))
    """
    return _read(data, position, VARINT_BITS, 5)


def read_varlong(data: bytes, position: int) -> tuple[int, int]:
    """A signed number of 64 bits, and the position after it."""
    return _read(data, position, VARLONG_BITS, 10)


def _read(data: bytes, position: int, bits: int, size_max: int) -> tuple[int, int]:
    number = 0
    for index in range(size_max):
        if position + index >= len(data):
            raise EndOfBytesError
        byte = data[position + index]
        number += (byte % 128) * 128**index
        if byte < 128:
            return _without_zigzag(number % 2**bits), position + index + 1
    raise TooLongError(number % 2**bits)


def _without_zigzag(number: int) -> int:
    """0, 1, 2, 3, 4 … stand for 0, -1, 1, -2, 2 …"""
    return -(number + 1) // 2 if number % 2 else number // 2
