"""Snappy by the book: raw blocks byte by byte, snappy-java's stream around them."""

from __future__ import annotations

import struct

MAGIC = b"\x82SNAPPY\x00"


def header(version: int = 1) -> bytes:
    """What a stream starts with."""
    return MAGIC + struct.pack(">ii", version, 1)


def framed(blocks: list[bytes]) -> bytes:
    """A stream of compressed blocks."""
    return header() + b"".join(struct.pack(">i", len(block)) + block for block in blocks)


def stored(data: bytes) -> bytes:
    """A raw block of literals of at most 60 bytes."""
    block = varint(len(data))
    for start in range(0, len(data), 60):
        literal = data[start : start + 60]
        block += bytes([(len(literal) - 1) << 2]) + literal
    return block


def varint(number: int) -> bytes:
    """Base 128, low bits first."""
    encoded = bytearray()
    while number >= 128:
        encoded.append(number & 127 | 128)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def decode_block(block: bytes) -> bytes:
    """Raw snappy; ValueError or IndexError if it is not."""
    size = shift = position = 0
    while True:
        byte = block[position]
        position += 1
        size |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            break
    data = bytearray()
    while position < len(block):
        tag = block[position]
        position += 1
        if tag & 3 == 0:
            length = (tag >> 2) + 1
            if length > 60:
                extra = length - 60
                length = int.from_bytes(block[position : position + extra], "little") + 1
                position += extra
            if position + length > len(block):
                raise ValueError("literal beyond the block")
            data += block[position : position + length]
            position += length
            continue
        extra = (0, 1, 2, 4)[tag & 3]
        offset = int.from_bytes(block[position : position + extra], "little")
        if position + extra > len(block):
            raise ValueError("copy beyond the block")
        position += extra
        length = (tag >> 2) + 1
        if tag & 3 == 1:
            length = (tag >> 2 & 7) + 4
            offset |= tag >> 5 << 8
        if not 0 < offset <= len(data):
            raise ValueError("copy from nowhere")
        for _ in range(length):
            data.append(data[-offset])
    if len(data) != size:
        raise ValueError("not the size that was declared")
    return bytes(data)


def decode_stream(stream: bytes) -> bytes:
    """A framed stream of one header."""
    data = b""
    position = len(header())
    while position < len(stream):
        size = int.from_bytes(stream[position : position + 4], "big", signed=True)
        position += 4 + size
        if not 0 < size <= len(stream) - position + size:
            raise ValueError("a block beyond the stream")
        data += decode_block(stream[position - size : position])
    return data
