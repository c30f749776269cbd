"""The position at which LZ4's C decoder gives up a broken block; Kafka's error text has it.

A block is sequences of token (literal length 4 bits, match length 4 bits), literal length's extra bytes, literals,
match offset (uint16 little-endian), match length's extra bytes. The last sequence ends with its literals.
"""

from __future__ import annotations

LENGTH_MASK = 15
MATCH_SIZE_MIN = 4
LAST_LITERALS_SIZE = 5
MATCH_FIND_LIMIT = 12
# far enough from both ends, the decoder copies a short sequence without checking how a block has to end
SHORTCUT_INPUT_SIZE = 16
SHORTCUT_OUTPUT_SIZE = 32
SHORTCUT_OFFSET_MIN = 8


class _Refused(Exception):
    """Carries the position."""


def refused_position(block: memoryview, capacity: int) -> int:
    """Return how many bytes of a broken `block` the decoder reads before it fails, with room for `capacity` bytes."""
    try:
        _walk(block, capacity)
    except _Refused as refused:
        position: int = refused.args[0]
        return position
    return len(block)


def _walk(block: memoryview, capacity: int) -> None:
    end = len(block)
    position = output_size = 0
    if end == 0:
        raise _Refused(0)
    while True:
        token = block[position]
        position += 1
        literal_size = token >> 4
        is_shortcut = (
            literal_size < LENGTH_MASK
            and position < end - SHORTCUT_INPUT_SIZE
            and output_size <= capacity - SHORTCUT_OUTPUT_SIZE
        )
        if literal_size == LENGTH_MASK:
            if position >= end - LENGTH_MASK:
                raise _Refused(position)
            extra, position = _extra_length(block, position, end - LENGTH_MASK)
            literal_size += extra
        output_size += literal_size
        is_last = position + literal_size > end - (2 + 1 + LAST_LITERALS_SIZE)
        if not is_shortcut and (output_size > capacity - MATCH_FIND_LIMIT or is_last):
            if position + literal_size != end or output_size > capacity:
                raise _Refused(position)
            return
        position += literal_size
        offset = block[position] | block[position + 1] << 8
        position += 2
        match_size = token & LENGTH_MASK
        if match_size == LENGTH_MASK:
            extra, position = _extra_length(block, position, end - LAST_LITERALS_SIZE + 1)
            match_size += extra
            is_shortcut = False
        match_size += MATCH_SIZE_MIN
        if offset > output_size:
            raise _Refused(position)
        is_shortcut = is_shortcut and offset >= SHORTCUT_OFFSET_MIN
        if not is_shortcut and output_size + match_size > capacity - LAST_LITERALS_SIZE:
            raise _Refused(position)
        output_size += match_size


def _extra_length(block: memoryview, position: int, limit: int) -> tuple[int, int]:
    """Return the sum of the bytes up to the first that is not 255, and the position behind that."""
    length = 0
    while True:
        byte = block[position]
        position += 1
        length += byte
        if position > limit:
            raise _Refused(position)
        if byte != 255:
            return length, position
