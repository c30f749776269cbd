"""Zstandard as zstd-jni's `ZstdInputStreamNoFinalizer` reads it.

Frames and skippable frames may follow one another. A frame that is cut is an error, unless another frame ended within
the same 128 KiB of input: then the stream ends without one.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np
import zstandard
from cramjam import DecompressionError as CramjamError
from cramjam import zstd

from logstore.codec.outcome import EMPTY, ByteArray, over_cap
from logstore.codec.zstd_frame import (
    BLOCK_SIZE_MAX,
    Frame,
    State,
    closed_frame,
    frames,
    payload_of_raw_tail,
    size_bound_of_one,
)
from logstore.errors import DecompressionError

CHUNK_SIZE = 16384
# `ZSTD_DStreamInSize()`: the Java stream reads so many bytes of its source at once
SOURCE_SIZE = BLOCK_SIZE_MAX + 3


class _OfThread(threading.local):
    """A decompression context for each thread; making one takes longer than decompressing a small batch."""

    def __init__(self) -> None:
        self.context = zstandard.ZstdDecompressor()


_of_thread = _OfThread()


def decode_one(payload: memoryview, size_max: int, magic: int = 2) -> bytes | None:
    """Decompress a payload that is one frame, as all clients write it.

    Returns None for any other payload (several frames, damage, more than `size_max` (>= 0) bytes), which is then read
    by the model of the Java stream.
    """
    try:
        size_bound = size_bound_of_one(payload)
        if size_bound is None:
            return None
        room = min(size_max, size_bound)
        # -1: unknown; else the library allocates as much, whatever `max_output_size` is
        if zstandard.frame_content_size(payload) > room:
            return None
        data = _of_thread.context.decompress(payload, max_output_size=max(room, 1))  # 0 would be no bound
    except zstandard.ZstdError:
        return None
    return data if len(data) <= size_max else None


def compress(payload: memoryview, level: int) -> bytes:
    """Return one frame without content size, flushed before its end, as `ZstdOutputStreamNoFinalizer` writes it."""
    stream = zstd.Compressor(level=level)
    stream.compress(bytes(payload))
    return bytes(stream.flush()) + bytes(stream.finish())


def _decompress(frame: memoryview | bytes, size_bound: int, size_max: int) -> ByteArray:
    """Decompress whole frames; allocate `size_max` bytes only if they may need more than that."""
    if size_bound <= size_max:
        return np.frombuffer(memoryview(zstd.decompress(frame)), np.uint8)
    data = np.empty(size_max, np.uint8)
    return data[: zstd.decompress_into(frame, data.data)]


class _Output(NamedTuple):
    """The output of a frame: `data`, then `state`; `start` and `end` are the input of the unit that fails."""

    data: memoryview
    state: State
    start: int
    end: int


class ZstdInput:
    """Model of `ZstdInputStreamNoFinalizer` over the payload."""

    def __init__(self, payload: memoryview, size_max: int) -> None:
        self.outputs = [_output(payload, frame, size_max) for frame in frames(payload)]
        self.outputs.reverse()
        self.position = 0
        last_source = (len(payload) - 1) // SOURCE_SIZE * SOURCE_SIZE
        self.cut_is_end = any(output.state is State.COMPLETE and output.end > last_source for output in self.outputs)

    def read(self, size: int) -> bytes | None:
        while self.outputs:
            data, state, start, end = self.outputs[-1]
            left = len(data) - self.position
            if state is State.BROKEN and (left < size or (left == size and _is_loaded(start, end))):
                raise _error("Data corruption detected")
            if left == 0 and state is State.CUT:
                if self.cut_is_end:
                    return None
                raise _error("Truncated source")
            piece = bytes(data[self.position : self.position + size])
            self.position += len(piece)
            if state is State.COMPLETE and self.position == len(data):
                self.outputs.pop()
                self.position = 0
            if piece:
                return piece
        return None

    def available(self) -> int:
        return len(self.outputs)


def _error(message: str) -> DecompressionError:
    return DecompressionError(message, java_class="com.github.luben.zstd.ZstdIOException")


def _is_loaded(start: int, end: int) -> bool:
    """Return whether the source read that had the input before `start` had it up to `end` too."""
    return end <= (max(start, 1) + SOURCE_SIZE - 1) // SOURCE_SIZE * SOURCE_SIZE


def _output(payload: memoryview, frame: Frame, size_max: int) -> _Output:
    if frame.is_skippable or (frame.state is State.BROKEN and not frame.blocks):
        return _Output(EMPTY.data, frame.state, frame.start, frame.end)
    if frame.state is State.COMPLETE:
        try:
            data = _decompress(payload[frame.start : frame.end], frame.size_bound, size_max)
        except CramjamError as error:
            _refuse_if_full(error, size_max)
        else:
            return _Output(data.data, State.COMPLETE, frame.start, frame.end)
    return _partial_output(payload, frame, size_max)


def _refuse_if_full(error: Exception, size_max: int) -> None:
    if "write whole buffer" in str(error):
        raise over_cap(size_max) from None


def _partial_output(payload: memoryview, frame: Frame, size_max: int) -> _Output:
    """Decode as many blocks as possible: a bisection that tries the frame closed after some block."""
    good_count, bad_count = 0, len(frame.blocks) + 1
    good = EMPTY
    count = len(frame.blocks)
    while bad_count - good_count > 1:
        data = _closed_output(payload, frame, count, size_max)
        if data is None:
            bad_count = count
        else:
            good_count, good = count, data
        count = (good_count + bad_count) // 2
    if good_count < len(frame.blocks):
        block = frame.blocks[good_count]
        return _Output(good.data, State.BROKEN, block.start, block.end)
    if frame.state is State.CUT:
        tail = payload_of_raw_tail(payload, frame)
        return _Output(memoryview(good.tobytes() + tail), State.CUT, frame.end, frame.end)
    if frame.state is State.BROKEN:
        return _Output(good.data, State.BROKEN, frame.blocks[-1].end, frame.end)
    return _wrong_frame(payload, frame, good, size_max)


def _wrong_frame(payload: memoryview, frame: Frame, good: ByteArray, size_max: int) -> _Output:
    """Return the output of a frame with sound blocks: a wrong content size fails the last one, else the checksum is."""
    last = frame.blocks[-1]
    if frame.content_size is not None and frame.content_size != len(good):
        count = len(frame.blocks) - 1
        data = _closed_output(payload, frame, count, size_max) if count > 0 else None
        return _Output((EMPTY if data is None else data).data, State.BROKEN, last.start, last.end)
    return _Output(good.data, State.BROKEN, last.end, frame.end)


def _closed_output(payload: memoryview, frame: Frame, block_count: int, size_max: int) -> ByteArray | None:
    try:
        return _decompress(closed_frame(payload, frame, block_count), frame.size_bound, size_max)
    except CramjamError as error:
        _refuse_if_full(error, size_max)
        return None
