"""Writes fields of records and batches: numbers, and bytes with their size before them."""

from __future__ import annotations

from typing import Any

from ...native.device import device, inlined
from ..primitives import copy16, copy32, load64, store64

SLACK_SIZE = 16  # bytes behind the output that may be written, as a length is written before its room is checked


@inlined
def put_varint(out: Any, o: int, value: int) -> int:
    """Write a signed number of up to 64 bits; returns the position after it."""
    sign = value >> 63
    magnitude = value ^ sign
    if magnitude < 64:
        out[o] = (magnitude << 1) | (sign & 1)
        return o + 1
    if magnitude < 8192:
        out[o] = ((magnitude & 63) << 1) | (sign & 1) | 128
        out[o + 1] = magnitude >> 6
        return o + 2
    return _put_long_varint(out, o, magnitude, sign)


@device
def _put_long_varint(out: Any, o: int, magnitude: int, sign: int) -> int:
    out[o] = ((magnitude & 63) << 1) | (sign & 1) | 128
    rest = magnitude >> 6
    o += 1
    while rest > 127:
        out[o] = (rest & 127) | 128
        rest = rest >> 7
        o += 1
    out[o] = rest
    return o + 1


@inlined
def put_bytes(out: Any, o: int, data: Any, start: int, size: int) -> int:
    """Copy bytes and write no others; returns the position after them."""
    if size >= 32:
        at = 0
        while at < size - 32:
            copy32(out, o + at, data, start + at)
            at += 32
        copy32(out, o + size - 32, data, start + size - 32)  # overlaps the copy before, here and below
        return o + size
    if size >= 16:
        copy16(out, o, data, start)
        copy16(out, o + size - 16, data, start + size - 16)
        return o + size
    if size >= 8:
        store64(out, o, load64(data, start))
        store64(out, o + size - 8, load64(data, start + size - 8))
        return o + size
    at = 0
    while at < size:
        out[o + at] = data[start + at]
        at += 1
    return o + size


@device
def put_be32(out: Any, o: int, value: int) -> int:
    """Write the low 32 bits, big-endian."""
    out[o] = (value >> 24) & 255
    out[o + 1] = (value >> 16) & 255
    out[o + 2] = (value >> 8) & 255
    out[o + 3] = value & 255
    return o + 4


@device
def put_be64(out: Any, o: int, value: int) -> int:
    """Write 64 bits, big-endian."""
    return put_be32(out, put_be32(out, o, value >> 32), value)


@inlined
def put_field(out: Any, o: int, data: Any, start: int, size: int) -> int:
    """Write bytes with their size before them; -1 is null."""
    o = put_varint(out, o, size)
    return o if size < 1 else put_bytes(out, o, data, start, size)


@inlined
def put_headers(out: Any, o: int, data: Any, start: int, size: int) -> int:
    """Write encoded headers; without any a count of 0."""
    if size < 1:
        out[o] = 0
        return o + 1
    return put_bytes(out, o, data, start, size)
