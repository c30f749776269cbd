"""Decompression of the streams of many batches of magic 2 in one call.

A sound stream is decompressed. The first other stream ends the call; the caller gives it to `decompress`, which returns
Java's result for it. A kernel takes all streams of LZ4 or snappy in one call; gzip and zstd call their library for each
stream. All of them release the interpreter's lock while they decompress.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from logstore.codec import library_of
from logstore.codec.outcome import ByteArray
from logstore.kernels.codec.copying import SLACK_SIZE
from logstore.kernels.codec.streams import decompress_plain_streams
from logstore.model import Codec

Int64Array = npt.NDArray[np.int64]
Places = tuple[Int64Array, Int64Array]

_OF_KERNEL = frozenset((Codec.LZ4, Codec.SNAPPY))


def decompress_streams(
    codec: Codec, data: ByteArray, starts: Int64Array, ends: Int64Array, out: ByteArray, out_enough: int
) -> Places:
    """Decompress streams one behind the other, up to the first that is not sound or has no room.

    Args:
        codec: not NONE.
        data: uint8, contiguous: `data[starts[i]:ends[i]]` is a stream.
        starts, ends: int64[n], contiguous, within `data`.
        out: uint8, contiguous; its last `SLACK_SIZE` bytes are not used for streams.
        out_enough: bytes; the call ends when `out` has as many.

    Returns:
        starts, ends: int64[m] each, where in `out` the first m ≤ n streams stand.
    """
    capacity = out.size - SLACK_SIZE
    out_ends = np.empty(starts.size, np.int64)
    if capacity < 0:  # a kernel may touch all of the slack, even for a stream of nothing
        count = 0
    elif codec in _OF_KERNEL:
        streams = (int(codec), data, data.size, starts, ends, starts.size)
        count = decompress_plain_streams(*streams, out, out_enough, capacity, out_ends)
    else:
        count = _decompress_each(library_of(codec).decode_one, data, starts, ends, out[:capacity], out_enough, out_ends)
    return np.concatenate([[0], out_ends[: max(count - 1, 0)]])[:count], out_ends[:count]


def _decompress_each(
    decode: Callable[[memoryview, int], bytes | None],
    data: ByteArray,
    starts: Int64Array,
    ends: Int64Array,
    out: ByteArray,
    out_enough: int,
    out_ends: Int64Array,
) -> int:
    """Decompress streams with `decode(payload, size_max)`, one call each; return how many."""
    source, target, room, size, end = data.data, out.data, out.size, data.size, 0
    for row in range(starts.size):
        stream_start, stream_end = int(starts[row]), int(ends[row])
        if end >= out_enough or not 0 <= stream_start <= stream_end <= size:
            return row
        stream = decode(source[stream_start:stream_end], room - end)
        if stream is None:
            return row
        start, end = end, end + len(stream)
        target[start:end] = stream
        out_ends[row] = end
    return starts.size
