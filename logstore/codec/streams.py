"""The streams of many batches of magic 2 in a call: what going through a compressed log lives on.

Each is decompressed if it is plain in every respect. The first that is not ends the call, and is for `decompress`,
which knows what Java makes of it.
"""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt

from logstore.codec.c_libraries import inflate_functions, zstd_function
from logstore.codec.outcome import ByteArray
from logstore.errors import DecompressionError
from logstore.kernels.copying import SLACK_SIZE
from logstore.kernels.gzip_streams import inflate_gzip_streams
from logstore.kernels.lz4_streams import decode_lz4_streams
from logstore.kernels.snappy_streams import decode_snappy_streams
from logstore.kernels.zstd_streams import decode_zstd_streams
from logstore.model import Codec

Int64Array = npt.NDArray[np.int64]
Places = tuple[Int64Array, Int64Array]

_JOINED_SIZE_MAX = 256 * 1024  # compressed bytes that are given to zstd at once
_MARK_SIZE = 16
_NEAR_SIZE = 29_000  # bytes that Python searches in its quicker way


def decompress_streams(
    codec: Codec, data: ByteArray, starts: Int64Array, ends: Int64Array, out: ByteArray, out_enough: int
) -> Places:
    """Decompress some streams one behind the other, up to one that is odd or has no room.

    Args:
        codec: not NONE.
        data: uint8, contiguous: `data[starts[i]:ends[i]]` is a stream.
        starts, ends: int64[n], contiguous, within `data`.
        out: uint8, contiguous; its last `SLACK_SIZE` bytes are not used for streams.
        out_enough: bytes; no stream is begun when there are as many.

    Returns:
        Where in `out` the first m ≤ n streams start and end: int64[m] each.
    """
    out_ends = np.empty(starts.size, np.int64)
    count = _count_by_kernel(codec, data, starts, ends, out, out_enough, out_ends)
    if count is not None:
        return np.concatenate([[0], out_ends[: max(count - 1, 0)]])[:count], out_ends[:count]
    view = data.data
    count = int(np.searchsorted(np.cumsum(ends - starts), out_enough)) + 1  # more would hardly be used
    payloads = [view[start:end] for start, end in zip(starts[:count].tolist(), ends[:count].tolist(), strict=True)]
    if codec is Codec.GZIP:
        return _gzip_streams(payloads, out, out_enough)
    return _zstd_streams(payloads, out, out_enough)


def _count_by_kernel(
    codec: Codec,
    data: ByteArray,
    starts: Int64Array,
    ends: Int64Array,
    out: ByteArray,
    out_enough: int,
    out_ends: Int64Array,
) -> int | None:
    """The number of streams that a kernel decompressed; None where there is no kernel for them here."""
    streams = (starts, ends, starts.size, out, out_enough, out.size - SLACK_SIZE, out_ends)
    if codec is Codec.LZ4:
        return decode_lz4_streams(data, data.size, *streams)
    if codec is Codec.SNAPPY:
        return decode_snappy_streams(data, data.size, *streams)
    if codec is Codec.GZIP:
        inflate = inflate_functions()
        return None if inflate is None else inflate_gzip_streams(*inflate, data, *streams)
    zstd = zstd_function()
    return None if zstd is None else decode_zstd_streams(zstd.function, zstd.context.address, data, *streams)


def _gzip_streams(payloads: list[memoryview], out: ByteArray, out_enough: int) -> Places:
    from logstore.codec.gzip import inflate_one_member

    out_ends = [0]
    room = out.size - SLACK_SIZE
    for payload in payloads:
        end = out_ends[-1]
        if end >= out_enough:
            break
        try:
            stream = inflate_one_member(payload, room - end)
        except DecompressionError:
            break
        if stream is None:
            break
        out[end : end + stream.size] = stream
        out_ends.append(end + stream.size)
    return np.array(out_ends[:-1], np.int64), np.array(out_ends[1:], np.int64)


def _zstd_streams(payloads: list[memoryview], out: ByteArray, out_enough: int) -> Places:
    """Many streams are decompressed as one: to begin one costs the library more than 16 KiB of records.

    Where each ends is told by a mark behind it that nobody can have foreseen. A stream that is cut takes part of the
    mark's own frame for its rest; the mark is not there then, because no two bytes of it are neighbours in that frame.
    """
    starts: list[int] = []
    ends: list[int] = []
    number, end, count_max = 0, 0, len(payloads)
    while number < len(payloads) and end < out_enough:
        count = min(_joined_count(payloads, number), count_max)
        places = _joined(payloads[number : number + count], out[: out.size - SLACK_SIZE], end)
        if places is None:
            if count == 1:
                break
            count_max = count // 2
            continue
        starts += places[:-1]
        ends += [place - _MARK_SIZE for place in places[1:]]
        number, end = number + count, places[-1]
    return np.array(starts, np.int64), np.array(ends, np.int64)


def _joined_count(payloads: list[memoryview], number: int) -> int:
    size = count = 0
    while number + count < len(payloads) and size < _JOINED_SIZE_MAX:
        size += len(payloads[number + count])
        count += 1
    return count


def _joined(payloads: list[memoryview], out: ByteArray, start: int) -> list[int] | None:
    """Decompress payloads to `out` from `start` on, a mark behind each; where they start, and the end of all.

    None if one of them is not right, or there is no room.
    """
    from cramjam import DecompressionError as CramjamError
    from cramjam import zstd

    from logstore.codec.zstd_frame import repeated_bytes_frame

    mark = os.urandom(_MARK_SIZE)
    frame = repeated_bytes_frame(mark)
    joined = b"".join([part for payload in payloads for part in (payload, frame)])
    try:
        size = zstd.decompress_into(joined, out[start:].data)
    except CramjamError:
        return None
    content = out[start : start + size].tobytes()
    places = [0]
    for _ in payloads:
        found = content.find(mark, places[-1], places[-1] + _NEAR_SIZE)
        found = content.find(mark, places[-1]) if found < 0 else found
        if found < 0:
            return None
        places.append(found + _MARK_SIZE)
    return [start + place for place in places] if places[-1] == size else None
