"""Decodes streams as snappy-java writes them, and leaves unusual ones to `codec.snappy`.

A block starts with its size as a varint. The elements follow; the low two bits of a tag tell literals from copies whose
distance has 11 bits, two bytes or four.
"""

from __future__ import annotations

from typing import Any

from ...native.device import device
from ..primitives import be32, be32_unsigned, little_endian
from .copying import REFUSED, copy_match, copy_words

STREAM_HEADER_SIZE = 16
_MAGIC_HIGH, _MAGIC_LOW = 0x82534E41, 0x50505900  # "\x82SNAPPY\0"


@device
def _block_size(data: Any, position: int, end: int) -> int:
    """Read the varint at a block's start: position after it in the high half, value in the low; or REFUSED."""
    value = 0
    for index in range(4):
        if position + index >= end:
            return REFUSED
        byte = data[position + index]
        value |= (byte & 127) << (7 * index)
        if byte < 128:
            return (position + index + 1 << 32) | value
    return REFUSED


@device
def _put_literal(data: Any, position: int, size: int, copy_end: int, out: Any, o: int) -> int:
    if position + size <= copy_end:
        return copy_words(out, o, data, position, size)
    for index in range(size):
        out[o + index] = data[position + index]
    return o + size


@device
def _decode_block(data: Any, position: int, end: int, copy_end: int, out: Any, o: int, out_end: int) -> int:
    """Decode the raw block data[position:end] to `out` from `o` on; returns the end of its bytes there, or REFUSED.

    Whole words may be read before `copy_end`.
    """
    start = o
    packed = _block_size(data, position, end)
    if packed < 0 or packed & 4294967295 > out_end - o:
        return REFUSED
    position = packed >> 32
    out_end = o + (packed & 4294967295)
    while position < end:
        tag = data[position]
        position += 1
        kind = tag & 3
        if kind == 0:
            size = (tag >> 2) + 1
            if size > 60:
                extra = size - 60  # 61 to 64 stand for a size in the next one to four bytes
                if extra > end - position:
                    return REFUSED
                size = little_endian(data, position, extra) + 1
                position += extra
            if size > end - position or size > out_end - o:
                return REFUSED
            o = _put_literal(data, position, size, copy_end, out, o)
            position += size
            continue
        size = (tag >> 2) + 1
        extra = kind if kind < 3 else 4
        if extra > end - position:
            return REFUSED
        if kind == 1:
            size = (tag >> 2 & 7) + 4
            distance = (tag >> 5 << 8) | data[position]
        elif kind == 2:
            distance = data[position] | (data[position + 1] << 8)
        else:
            distance = little_endian(data, position, 4)
        position += extra
        if distance == 0 or distance > o - start or size > out_end - o:
            return REFUSED
        o = copy_match(out, o, distance, size)
    return o if o == out_end else REFUSED


@device
def decode_stream(data: Any, position: int, end: int, copy_end: int, out: Any, o: int, out_end: int) -> int:
    """Decode the stream data[position:end] to out[o:out_end]; returns the end of its bytes there, or REFUSED."""
    if end - position < STREAM_HEADER_SIZE:
        return REFUSED
    if be32_unsigned(data, position) != _MAGIC_HIGH or be32_unsigned(data, position + 4) != _MAGIC_LOW:
        return REFUSED
    position += STREAM_HEADER_SIZE
    while position < end:
        if end - position < 4:
            return REFUSED
        size = be32(data, position)
        position += 4
        if size <= 0 or size > end - position:
            return REFUSED
        o = _decode_block(data, position, position + size, copy_end, out, o, out_end)
        if o < 0:
            return REFUSED
        position += size
    return o
