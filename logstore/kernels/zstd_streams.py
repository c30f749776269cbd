"""Single frames of Zstandard, of many batches in a call, by a function of libzstd; what is odd is left to `codec.zstd`.

The library decompresses a whole frame at once and is then more lenient than a stream's reader is, so what that would
refuse is refused here: blocks that are too large, windows that are, and what reaches back behind its window.
"""

from __future__ import annotations

from typing import Any

from ..jit.device import device
from ..jit.kernel import kernel
from .c_calls import address_at, call_zstd
from .primitives import little_endian

REFUSED = -1
MAGIC = 0xFD2FB528
FRAME_SIZE_MIN = 9  # magic, descriptor, a byte more, the header of a block
BLOCK_HEADER_SIZE = 3
BLOCK_SIZE_MAX = 1 << 17
CHECKSUM_SIZE = 4
REPEATED, RESERVED = 1, 3  # kinds of blocks
ODD_FLAGS = 0b1011  # of the descriptor: a dictionary, and a bit that must be zero
WINDOW_BYTE_MAX = 17 << 3  # 128 MiB, what a reader accepts


@device
def _end_of_blocks(data: Any, position: int, end: int, block_size_max: int) -> int:
    """The position behind the last block, or REFUSED."""
    is_last = 0
    while is_last == 0:
        if end - position < BLOCK_HEADER_SIZE:
            return REFUSED
        word = little_endian(data, position, BLOCK_HEADER_SIZE)
        is_last = word & 1
        kind = word >> 1 & 3
        size = word >> 3
        if kind == RESERVED or size > block_size_max:
            return REFUSED
        position += BLOCK_HEADER_SIZE + (1 if kind == REPEATED else size)
        if position > end:
            return REFUSED
    return position


@device
def _window_of_frame(data: Any, position: int, end: int) -> int:
    """Bytes that the only frame in data[position:end] may reach back, and give; or REFUSED."""
    if end - position < FRAME_SIZE_MIN or little_endian(data, position, 4) != MAGIC:
        return REFUSED
    descriptor = data[position + 4]
    is_single_segment = descriptor >> 5 & 1
    content_size_size = 1 << (descriptor >> 6)
    if content_size_size == 1 and is_single_segment == 0:
        content_size_size = 0
    position += 5
    if descriptor & ODD_FLAGS != 0 or end - position < 1 + content_size_size:
        return REFUSED
    if is_single_segment == 1:
        if content_size_size == 8:
            return REFUSED
        window = little_endian(data, position, content_size_size)
        if content_size_size == 2:
            window += 256
    else:
        window_byte = data[position]
        if window_byte > WINDOW_BYTE_MAX:
            return REFUSED
        window = (1 << (7 + (window_byte >> 3))) * (8 + (window_byte & 7))
        position += 1
    position = _end_of_blocks(data, position + content_size_size, end, min(window, BLOCK_SIZE_MAX))
    if position + (CHECKSUM_SIZE if descriptor & 4 else 0) != end:
        return REFUSED
    return window


@kernel("i64, i64, u8*, i64*, i64*, i64, u8*, i64, i64, i64*")
def decode_zstd_streams(
    function: int,
    context: int,
    data: Any,
    starts: Any,
    ends: Any,
    count: int,
    out: Any,
    out_enough: int,
    out_capacity: int,
    out_ends: Any,
) -> int:
    """Decompress the frames of batches one behind the other, up to one that is odd or has no room.

    function: address of `ZSTD_decompressDCtx`; context: that of a `ZSTD_DCtx`; starts, ends: int64[count], within
    data: uint8; out: uint8[out_capacity + SLACK_SIZE]; no frame is begun at `out_enough` or behind it; out_ends:
    int64[count], out. Returns the number of frames.
    """
    o = 0
    for row in range(count):
        position = starts[row]
        window = _window_of_frame(data, position, ends[row])
        if o >= out_enough or window < 0:
            return row
        source = address_at(data, position)
        size = call_zstd(function, context, address_at(out, o), out_capacity - o, source, ends[row] - position)
        if size < 0 or size > window:
            return row
        o += size
        out_ends[row] = o
    return count
