"""The outer structure of Zstandard data (RFC 8878, 3.1): positions of frames and blocks, and bounds of their output.

Nothing is decompressed here. The bounds are exact enough to refuse a decompression bomb before memory is allocated.

    frame      magic 0xFD2FB528 little-endian, frame header, blocks, XXH64's low 4 bytes if the header says so
    header     descriptor (bits 7-6 content size, 5 single segment, 3 reserved, 2 checksum, 1-0 dictionary id),
               window (exponent 5 bits, mantissa 3 bits) unless single segment, dictionary id, content size
    block      3 bytes little-endian: bit 0 last, bits 1-2 type (raw, repeated byte, compressed, reserved), size
    skippable  magic 0x184D2A5?, uint32 little-endian size, data
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

import zstandard

MAGIC = b"\x28\xb5\x2f\xfd"
SKIPPABLE_MAGIC = b"\x2a\x4d\x18"
BLOCK_HEADER_SIZE = 3
BLOCK_SIZE_MAX = 1 << 17
# `ZSTD_MAXWINDOWSIZE_DEFAULT`, the default limit of streaming decompression
WINDOW_SIZE_MAX = (1 << 27) + 1
CHECKSUM_SIZE = 4
RAW, REPEATED, COMPRESSED, RESERVED = range(4)


class State(Enum):
    """How a frame ends."""

    COMPLETE = "complete"
    CUT = "the payload ends within it"
    BROKEN = "the decoder refuses it"


class Block(NamedTuple):
    """A block from `start`, its header, to `end` in the payload; `size_bound`: bytes of its output at most."""

    start: int
    end: int
    size_bound: int


class Frame(NamedTuple):
    """A frame, by positions in the payload; `blocks` are the whole ones.

    `end` is behind the last byte that the decoder needs to complete or refuse the frame; a cut frame ends with the
    payload.
    """

    start: int
    end: int
    state: State
    blocks: tuple[Block, ...] = ()
    header_end: int = 0
    window_size: int = 0
    content_size: int | None = None
    is_skippable: bool = False

    @property
    def size_bound(self) -> int:
        """The bytes that the blocks decompress to at most."""
        return sum(block.size_bound for block in self.blocks)


class _Header(NamedTuple):
    end: int
    window_size: int
    content_size: int | None
    has_checksum: bool


def frames(payload: memoryview) -> Iterator[Frame]:
    """Iterate over the frames up to the first that is not complete."""
    position = 0
    while position < len(payload):
        frame = _frame(payload, position)
        yield frame
        if frame.state is not State.COMPLETE:
            return
        position = frame.end


def _frame(payload: memoryview, start: int) -> Frame:
    magic = bytes(payload[start : start + 4])
    if magic[:1] and magic[0] & 0xF0 == 0x50 and SKIPPABLE_MAGIC.startswith(magic[1:]):
        return _skippable_frame(payload, start)
    if not MAGIC.startswith(magic):
        return Frame(start, start + len(magic), State.BROKEN)
    header = _header(payload, start)
    if header is State.CUT:
        return Frame(start, len(payload), State.CUT)
    if not isinstance(header, _Header):
        return Frame(start, min(start + 18, len(payload)), State.BROKEN)
    return _frame_of_blocks(payload, start, header)


def _skippable_frame(payload: memoryview, start: int) -> Frame:
    size = int.from_bytes(payload[start + 4 : start + 8], "little")
    end = start + 8 + size
    if start + 8 > len(payload) or end > len(payload):
        return Frame(start, len(payload), State.CUT, is_skippable=True)
    return Frame(start, end, State.COMPLETE, is_skippable=True)


def _header(payload: memoryview, start: int) -> _Header | State:
    position = start + 5
    if position > len(payload):
        return State.CUT
    descriptor = payload[start + 4]
    is_single_segment = descriptor >> 5 & 1
    dictionary_id_size = (0, 1, 2, 4)[descriptor & 3]
    content_size_size = (is_single_segment, 2, 4, 8)[descriptor >> 6]
    end = position + (not is_single_segment) + dictionary_id_size + content_size_size
    if end > len(payload):
        return State.CUT
    if descriptor & 8:
        return State.BROKEN
    window_size = 0
    if not is_single_segment:
        window = payload[position]
        position += 1
        window_size = (1 << (10 + (window >> 3))) // 8 * (8 + (window & 7))
    if any(payload[position : position + dictionary_id_size]):
        return State.BROKEN
    position += dictionary_id_size
    content_size = None
    if content_size_size > 0:
        content_size = int.from_bytes(payload[position:end], "little") + 256 * (content_size_size == 2)
    if is_single_segment:
        window_size = content_size or 0
    if window_size > WINDOW_SIZE_MAX:
        return State.BROKEN
    return _Header(end, window_size, content_size, bool(descriptor & 4))


def _frame_of_blocks(payload: memoryview, start: int, header: _Header) -> Frame:
    blocks: list[Block] = []
    block_size_max = min(header.window_size, BLOCK_SIZE_MAX)
    position = header.end
    is_last = False

    def frame(end: int, state: State) -> Frame:
        return Frame(start, end, state, tuple(blocks), header.end, header.window_size, header.content_size)

    while not is_last:
        body = position + BLOCK_HEADER_SIZE
        if body > len(payload):
            return frame(len(payload), State.CUT)
        word = int.from_bytes(payload[position:body], "little")
        is_last, kind, size = bool(word & 1), word >> 1 & 3, word >> 3
        if kind == RESERVED or (kind != REPEATED and size > block_size_max):
            return frame(body, State.BROKEN)
        end = body + (1 if kind == REPEATED else size)
        if end > len(payload):
            return frame(len(payload), State.CUT)
        blocks.append(Block(position, end, BLOCK_SIZE_MAX if kind == COMPRESSED else min(size, BLOCK_SIZE_MAX)))
        position = end
    if header.has_checksum:
        position += CHECKSUM_SIZE
        if position > len(payload):
            return frame(len(payload), State.CUT)
    return frame(position, State.COMPLETE)


def size_bound_of_one(payload: memoryview) -> int | None:
    """Return the bytes that the only frame of a payload decompresses to at most; None if it is damaged or not alone.

    This checks for the one-shot library call, which ignores bytes behind the frame and, where the frame has its content
    size, less than a reader of streams checks.

    Raises:
        zstandard.ZstdError: the payload does not start with the header of a frame.
    """
    header = zstandard.get_frame_parameters(payload)
    has_size = header.content_size != zstandard.CONTENTSIZE_UNKNOWN
    if header.window_size > WINDOW_SIZE_MAX or (has_size and not 0 < header.content_size <= header.window_size):
        return None
    position, end = zstandard.frame_header_size(payload), len(payload)
    size_bound = word = 0
    while word & 1 == 0:  # the last block has this bit
        if position + BLOCK_HEADER_SIZE > end:
            return None
        word = int.from_bytes(payload[position : position + BLOCK_HEADER_SIZE], "little")
        kind, size = word >> 1 & 3, word >> 3
        position += BLOCK_HEADER_SIZE + (1 if kind == REPEATED else size)
        size_bound += BLOCK_SIZE_MAX if kind == COMPRESSED else min(size, BLOCK_SIZE_MAX)
    return size_bound if position + CHECKSUM_SIZE * header.has_checksum == end else None


def closed_frame(payload: memoryview, frame: Frame, block_count: int) -> bytes:
    """Return a frame of the first `block_count` (> 0) blocks, without content size and checksum."""
    *_, last = blocks = frame.blocks[:block_count]
    body = bytearray(payload[blocks[0].start : last.end])
    body[last.start - blocks[0].start] |= 1  # the mark of the last block
    window_log = max(10, (frame.window_size - 1).bit_length())
    return MAGIC + bytes([0, (window_log - 10) << 3]) + bytes(body)


def payload_of_raw_tail(payload: memoryview, frame: Frame) -> bytes:
    """Return the bytes of a raw block that the payload's end cuts, all of which the decoder delivers."""
    start = frame.blocks[-1].end if frame.blocks else frame.header_end
    body = start + BLOCK_HEADER_SIZE
    if frame.header_end == 0 or body > len(payload) or payload[start] >> 1 & 3 != RAW:
        return b""
    return bytes(payload[body:])
