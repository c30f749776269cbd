"""LZ4 by the book: raw blocks byte by byte, frames around them."""

from __future__ import annotations

import struct

import xxhash

MAGIC = b"\x04\x22\x4d\x18"


def framed(
    blocks: list[tuple[bytes, bool]],
    *,
    size_code: int = 4,
    content_size: int | None = None,
    block_checksums: bool = False,
    content_checksum: bytes = b"",
) -> bytes:
    """A frame of (data, whether it is compressed)."""
    flags = 0x60 | bool(content_checksum) << 2 | (content_size is not None) << 3 | block_checksums << 4
    descriptor = bytes([flags, size_code << 4])
    if content_size is not None:
        descriptor += struct.pack("<Q", content_size)
    frame = MAGIC + descriptor + bytes([header_checksum(descriptor)])
    for block, is_compressed in blocks:
        frame += struct.pack("<I", len(block) | (0 if is_compressed else 1 << 31)) + block
        if block_checksums:
            frame += struct.pack("<I", xxhash.xxh32_intdigest(block))
    return frame + bytes(4) + content_checksum


def header_checksum(descriptor: bytes) -> int:
    """Second byte of the hash of what stands between magic and checksum."""
    return xxhash.xxh32_intdigest(descriptor) >> 8 & 255


def stored(data: bytes) -> bytes:
    """A raw block of one sequence: literals to its end."""
    if len(data) < 15:
        return bytes([len(data) << 4]) + data
    rest = len(data) - 15
    return b"\xf0" + b"\xff" * (rest // 255) + bytes([rest % 255]) + data


def decode_block(block: bytes) -> bytes:
    """Raw LZ4; ValueError or IndexError if it is not."""
    data = bytearray()
    position = 0
    while True:
        token = block[position]
        literal_size, position = _length(block, position + 1, token >> 4)
        if position + literal_size > len(block):
            raise ValueError("literals beyond the block")
        data += block[position : position + literal_size]
        position += literal_size
        if position == len(block):
            return bytes(data)
        offset = block[position] | block[position + 1] << 8
        match_size, position = _length(block, position + 2, token & 15)
        if not 0 < offset <= len(data):
            raise ValueError("match from nowhere")
        for _ in range(match_size + 4):
            data.append(data[-offset])


def _length(block: bytes, position: int, length: int) -> tuple[int, int]:
    if length == 15:
        while True:
            byte = block[position]
            position += 1
            length += byte
            if byte != 255:
                break
    return length, position


def decode_frame(frame: bytes) -> bytes:
    """A frame without options; ValueError or IndexError if it is not."""
    descriptor = frame[4:6]
    if frame[:4] != MAGIC or descriptor[0] != 0x60 or frame[6] != header_checksum(descriptor):
        raise ValueError("not a plain frame")
    position, data = 7, b""
    while True:
        (word,) = struct.unpack_from("<I", frame.ljust(position + 4, b"\xff"), position)
        size = word & 0x7FFFFFFF
        position += 4 + size
        if size == 0:
            return data
        if position > len(frame):
            raise ValueError("block beyond the frame")
        block = frame[position - size : position]
        data += block if word >> 31 else decode_block(block)
