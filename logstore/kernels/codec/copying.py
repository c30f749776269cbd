"""Copies in whole words, for decompression: both buffers have slack behind them that may be read and written."""

from __future__ import annotations

from typing import Any

from ...native.device import device
from ..primitives import copy32, load64, store64

SLACK_SIZE = 32  # bytes behind the end of either buffer that a copy may touch
REFUSED = -1  # a decoder's answer for a stream that is damaged, unusual or too large for the output


@device
def copy_words(out: Any, o: int, data: Any, position: int, size: int) -> int:
    """Copy bytes of another buffer, and up to 31 more; returns their end in `out`."""
    end = o + size
    o = copy32(out, o, data, position)
    while o < end:
        position += 32
        o = copy32(out, o, data, position)
    return end


@device
def copy_match(out: Any, o: int, distance: int, size: int) -> int:
    """Copy `size` bytes from `distance` (> 0) bytes back, and up to 15 more; returns their end."""
    end = o + size
    source = o - distance
    if distance >= 8:  # each word that is read is complete then
        store64(out, o, load64(out, source))
        store64(out, o + 8, load64(out, source + 8))
        o += 16
        source += 16
        while o < end:
            store64(out, o, load64(out, source))
            o += 8
            source += 8
        return end
    while o < end:
        out[o] = out[source]
        o += 1
        source += 1
    return end
