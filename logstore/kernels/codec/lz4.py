"""Decodes LZ4 frames as Kafka's clients write them, and leaves unusual ones to `codec.lz4`.

The checks are at least as strict as the C library's, so that it accepts whatever is decoded here.
"""

from __future__ import annotations

from typing import Any

from ...native.device import device
from ..primitives import be32_unsigned, little_endian
from .copying import REFUSED, copy_match, copy_words

FRAME_HEADER_SIZE = 7
_MAGIC_AND_FLAGS = 0x04224D18_60  # no content size, no checksums, independent blocks
_BLOCK_SIZES = 0x40_82_50_FB_60_51_70_73  # for 64 KiB to 4 MiB: the descriptor and the header's checksum with it
_STORED = 0x80000000  # set in the size of a block that is not compressed
# limits of the block format: the last bytes are literals, and no match begins close to the end
_LAST_LITERALS_SIZE = 5
_MATCH_FIND_LIMIT = 12
_SEQUENCE_SIZE_MIN = 8  # bytes behind literals that are not the last: a match's offset, a token and the last literals


@device
def _extra_length(data: Any, position: int, end: int) -> int:
    """Sum the bytes that extend a length: position after them in the high half, sum in the low; or REFUSED."""
    length = 0
    while position < end:
        byte = data[position]
        position += 1
        length += byte
        if byte != 255:
            return (position << 32) | length
    return REFUSED


@device
def _decode_block(data: Any, position: int, end: int, copy_end: int, out: Any, o: int, out_end: int) -> int:
    """Decode the raw block data[position:end] to out[o:out_end]; returns the end of its bytes there, or REFUSED.

    Whole words may be read before `copy_end`.
    """
    start = o
    while position < end:
        token = data[position]
        position += 1
        size = token >> 4
        is_long = size + 1 >> 4  # no branch: half of the lengths are long, at random, so that it would be mispredicted
        extra = data[min(position, end - 1)] & -is_long
        if extra == 255:
            packed = _extra_length(data, position, end)
            if packed < 0:
                return REFUSED
            position = packed >> 32
            size += packed & 4294967295
        else:
            position += is_long
            size += extra
        if size > end - position or size > out_end - o:
            return REFUSED
        if position + size <= copy_end:
            copy_words(out, o, data, position, size)
        else:
            for index in range(size):
                out[o + index] = data[position + index]
        position += size
        o += size
        if position == end:
            return o
        if end - position < _SEQUENCE_SIZE_MIN or out_end - o < _MATCH_FIND_LIMIT:
            return REFUSED
        distance = data[position] | (data[position + 1] << 8)
        position += 2
        size = token & 15
        if size == 15:
            packed = _extra_length(data, position, end)
            if packed < 0 or end - (packed >> 32) < _LAST_LITERALS_SIZE:
                return REFUSED
            position = packed >> 32
            size += packed & 4294967295
        size += 4
        if distance == 0 or distance > o - start or size > out_end - o - _LAST_LITERALS_SIZE:
            return REFUSED
        o = copy_match(out, o, distance, size)
    return REFUSED


@device
def _block_size_max(data: Any, position: int) -> int:
    """Return the block size of the frame whose descriptor is at `position`, or REFUSED."""
    descriptor = (data[position] << 8) | data[position + 1]
    for index in range(4):
        if descriptor == (_BLOCK_SIZES >> (48 - 16 * index)) & 65535:
            return 65536 << (2 * index)
    return REFUSED


@device
def decode_frame(data: Any, position: int, end: int, copy_end: int, out: Any, o: int, out_end: int) -> int:
    """Decode the frame data[position:end] to out[o:out_end]; returns the end of its bytes there, or REFUSED."""
    if end - position < FRAME_HEADER_SIZE:
        return REFUSED
    if (be32_unsigned(data, position) << 8) | data[position + 4] != _MAGIC_AND_FLAGS:
        return REFUSED
    block_size_max = _block_size_max(data, position + 5)
    position += FRAME_HEADER_SIZE
    while block_size_max > 0 and end - position >= 4:
        word = little_endian(data, position, 4)
        position += 4
        size = word & (_STORED - 1)
        if size == 0:
            return o
        if size > end - position or size > block_size_max:
            return REFUSED
        if word >= _STORED:
            if size > out_end - o:
                return REFUSED
            for index in range(size):
                out[o + index] = data[position + index]
            o += size
        else:
            o = _decode_block(data, position, position + size, copy_end, out, o, min(out_end, o + block_size_max))
            if o < 0:
                return REFUSED
        position += size
    return REFUSED
