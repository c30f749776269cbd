"""Plain gzip members, of many batches in a call, by the functions of ISA-L; whatever is odd is left to `codec.gzip`.

One member is all of a stream: Kafka's own header, deflate, and a trailer with CRC-32 and size that are right.
"""

from __future__ import annotations

from typing import Any

from ..jit.device import device
from ..jit.kernel import kernel
from .c_calls import address_at, call_crc32, call_inflate
from .primitives import MASK32, be32_unsigned, little_endian, load64, store64

REFUSED = -1
HEADER_SIZE, TRAILER_SIZE = 10, 8
PLAIN_START = 0x1F8B0800  # deflate, no flags; mtime, extra flags and operating system are not looked at
SIZE_MAX = (1 << 31) - 1

INFLATE, CRC32 = 0, 1  # places in `functions`
FUNCTION_COUNT = 2

# What `struct inflate_state` begins with, and where.
NEXT_OUT = 0  # uint8_t *
AVAILABLE_OUT = 8  # uint32_t, and behind it what came out
NEXT_IN = 16  # uint8_t *
READ_IN = 24  # uint64_t
AVAILABLE_IN = 32  # uint32_t, and behind it the bits of READ_IN
STATE_SIZE = 256 * 1024  # bytes, of which the library uses 90,000


@device
def _inflate_member(functions: Any, state: Any, data: Any, position: int, end: int, out: Any, o: int, room: int) -> int:
    """The stream data[position:end] to `out` from `o` on; the end of its bytes there, or REFUSED."""
    if end - position < HEADER_SIZE + TRAILER_SIZE or end - position > SIZE_MAX or room > SIZE_MAX:
        return REFUSED
    if be32_unsigned(data, position) != PLAIN_START:
        return REFUSED
    store64(state, NEXT_OUT, address_at(out, o))
    store64(state, AVAILABLE_OUT, room)
    store64(state, NEXT_IN, address_at(data, position + HEADER_SIZE))
    store64(state, READ_IN, 0)
    store64(state, AVAILABLE_IN, end - position - HEADER_SIZE)
    if call_inflate(functions[INFLATE], address_at(state, 0)) != 0:
        return REFUSED
    size = load64(state, AVAILABLE_OUT) >> 32 & MASK32
    left_size = load64(state, AVAILABLE_IN) & MASK32
    if left_size != TRAILER_SIZE or size != little_endian(data, end - 4, 4):
        return REFUSED
    if call_crc32(functions[CRC32], 0, address_at(out, o), size) != little_endian(data, end - TRAILER_SIZE, 4):
        return REFUSED
    return o + size


@kernel("i64*, u8*, u8*, i64*, i64*, i64, u8*, i64, i64, i64*")
def inflate_gzip_streams(
    functions: Any,
    state: Any,
    data: Any,
    starts: Any,
    ends: Any,
    count: int,
    out: Any,
    out_enough: int,
    out_capacity: int,
    out_ends: Any,
) -> int:
    """Decompress the streams of batches of magic 2 one behind the other, up to one that is odd or has no room.

    functions: int64[FUNCTION_COUNT], addresses of `isal_inflate_stateless` and `crc32_gzip_refl`; state:
    uint8[STATE_SIZE], as `isal_inflate_init` leaves it; starts, ends: int64[count], within data: uint8; out:
    uint8[out_capacity + SLACK_SIZE]; no stream is begun at `out_enough` or behind it; out_ends: int64[count], out.
    Returns the number of streams.
    """
    o = 0
    for row in range(count):
        if o >= out_enough:
            return row
        o = _inflate_member(functions, state, data, starts[row], ends[row], out, o, out_capacity - o)
        if o < 0:
            return row
        out_ends[row] = o
    return count
