"""Decompresses the streams of many batches in one call."""

from __future__ import annotations

from typing import Any

from ...native.kernel import kernel
from .copying import SLACK_SIZE
from .lz4 import decode_frame
from .snappy import decode_stream

SNAPPY = 2  # of `Codec`; any other is LZ4


@kernel("i64, u8*, i64, i64*, i64*, i64, u8*, i64, i64, i64*")
def decompress_plain_streams(
    codec: int,
    data: Any,
    data_size: int,
    starts: Any,
    ends: Any,
    count: int,
    out: Any,
    out_enough: int,
    out_capacity: int,
    out_ends: Any,
) -> int:
    """Decompress streams of LZ4 or snappy without gaps, up to one that is unusual or too large for the output.

    data: uint8[data_size]; starts, ends: int64[count], within it; out: uint8[out_capacity + SLACK_SIZE]; out_enough: no
    stream begins at or behind it; out_ends: int64[count], out. Returns the number of streams.
    """
    o = 0
    for row in range(count):
        if o >= out_enough or starts[row] < 0 or ends[row] > data_size:
            return row
        copy_end = data_size - SLACK_SIZE
        if codec == SNAPPY:
            o = decode_stream(data, starts[row], ends[row], copy_end, out, o, out_capacity)
        else:
            o = decode_frame(data, starts[row], ends[row], copy_end, out, o, out_capacity)
        if o < 0:
            return row
        out_ends[row] = o
    return count
