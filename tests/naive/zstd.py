"""Frames of Zstandard, opened by another copy of the library, as a stream; and frames by the book, without entropy."""

from __future__ import annotations

import cramjam

MAGIC = b"\x28\xb5\x2f\xfd"
RAW, REPEATED, COMPRESSED, RESERVED = range(4)


def decode_frames(stream: bytes) -> bytes:
    """Their content; ValueError if they are not right."""
    try:
        return bytes(cramjam.zstd.decompress(stream))
    except cramjam.DecompressionError as error:
        raise ValueError(str(error)) from error


def block(kind: int, size: int, content: bytes, *, is_last: bool = True) -> bytes:
    """A block that claims this kind and size."""
    return (size << 3 | kind << 1 | is_last).to_bytes(3, "little") + content


def framed(blocks: bytes, *, descriptor: int = 0, window: int = 0x58, content_size: bytes = b"") -> bytes:
    """A frame of blocks; without a window where the descriptor says that there is one segment."""
    return MAGIC + bytes([descriptor]) + (b"" if descriptor & 0x20 else bytes([window])) + content_size + blocks


def single_segment(data: bytes) -> bytes:
    """A frame that says its size instead of a window."""
    size_code = 0 if len(data) < 256 else 1 if len(data) < 65536 + 256 else 2
    content_size = (len(data) - 256 * (size_code == 1)).to_bytes((1, 2, 4)[size_code], "little")
    return framed(block(RAW, len(data), data), descriptor=size_code << 6 | 0x20, content_size=content_size)
