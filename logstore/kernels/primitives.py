"""Big-endian integers, unaligned words and byte copies, which the other kernels use."""

from __future__ import annotations

from typing import Any

from ..native.device import device, intrinsic

MASK32 = (1 << 32) - 1


@intrinsic("load64")
def load64(data: Any, position: int) -> int:
    """Read 8 bytes as a signed little-endian word; the caller has checked the bounds."""
    return int.from_bytes(bytes(data[position : position + 8]), "little", signed=True)


@intrinsic("store64")
def store64(data: Any, position: int, value: int) -> int:
    """Write a signed little-endian word; the caller has checked the bounds."""
    data[position : position + 8] = (int(value) & ((1 << 64) - 1)).to_bytes(8, "little")
    return value


@device
def copy16(out: Any, o: int, data: Any, position: int) -> int:
    """Copy 16 bytes; returns the position after them in `out`. The caller has checked the bounds."""
    # both loads before the stores, so that the compiler need not assume that they overlap
    first, second = load64(data, position), load64(data, position + 8)
    store64(out, o, first)
    store64(out, o + 8, second)
    return o + 16


@device
def copy32(out: Any, o: int, data: Any, position: int) -> int:
    """Copy 32 bytes as `copy16` does."""
    first, second = load64(data, position), load64(data, position + 8)
    third, fourth = load64(data, position + 16), load64(data, position + 24)
    store64(out, o, first)
    store64(out, o + 8, second)
    store64(out, o + 16, third)
    store64(out, o + 24, fourth)
    return o + 32


@device
def be16(data: Any, position: int) -> int:
    """Read a signed big-endian int16."""
    return wrap32((data[position] << 24) | (data[position + 1] << 16)) >> 16


@device
def be32_unsigned(data: Any, position: int) -> int:
    """Read an unsigned big-endian int32."""
    high = (data[position] << 24) | (data[position + 1] << 16)
    return high | (data[position + 2] << 8) | data[position + 3]


@device
def be32(data: Any, position: int) -> int:
    """Read a signed big-endian int32."""
    return wrap32(be32_unsigned(data, position))


@device
def be64(data: Any, position: int) -> int:
    """Read a signed big-endian int64."""
    return (be32(data, position) << 32) | be32_unsigned(data, position + 4)


@device
def little_endian(data: Any, position: int, size: int) -> int:
    """Read an unsigned little-endian integer of up to 7 bytes; the caller has checked the bounds."""
    value = 0
    for index in range(size):
        value |= data[position + index] << (8 * index)
    return value


@intrinsic("wrap32")
def wrap32(value: int) -> int:
    """Return the low 32 bits as a signed number: a result of Java's int arithmetic."""
    return (value + 2147483648 & 4294967295) - 2147483648


@intrinsic("add64")
def add64(left: int, right: int) -> int:
    """Return left + right modulo 2^64, signed: Java's long arithmetic."""
    return (left + right + (1 << 63) & ((1 << 64) - 1)) - (1 << 63)


@intrinsic("mul64")
def mul64(left: int, right: int) -> int:
    """Return left * right modulo 2^64, signed: Java's long arithmetic."""
    return (left * right + (1 << 63) & ((1 << 64) - 1)) - (1 << 63)


@intrinsic("rotate64")
def rotate64(value: int, count: int) -> int:
    """Rotate 64 bits left by 1 to 63."""
    bits = value & ((1 << 64) - 1)
    rotated = (bits << count | bits >> 64 - count) & ((1 << 64) - 1)
    return rotated - ((rotated >> 63) << 64)


@intrinsic("prefetch")
def prefetch(buffer: Any, index: int) -> int:
    """Prefetch the cache line of an item of bytes or words; `index` may be behind the buffer."""
    return 0
