"""Computes the size of a record (`DefaultRecord`), and finds its fields in the columns."""

from __future__ import annotations

from typing import Any

from ...native.device import device, inlined

INT_MAX = 2147483647
NULL = -1  # in place of a size
OUTSIDE = -2  # in place of a size: not within the data
NOT_KNOWN = -2  # size of a row before the first one was measured


@inlined
def varint_size(value: int) -> int:
    """Return the bytes of a signed number as a varint or varlong."""
    magnitude = value ^ (value >> 63)
    if magnitude < 1 << 20:
        return 1 + (magnitude >= 64) + (magnitude >= 8192)  # no branches, which mixed sizes would mispredict
    return _long_varint_size(magnitude)


@device
def _long_varint_size(magnitude: int) -> int:
    size = 3
    rest = magnitude >> 20
    while rest > 0:
        size += 1
        rest = rest >> 7
    return size


@inlined
def field_of(starts: Any, ends: Any, row: int, data_size: int, width: int) -> tuple[int, int]:
    """Return where the field of a row begins, and its size, NULL, or OUTSIDE if it is not within `data_size`.

    Reads each range once, as another thread may change it after the check. Fields of a fixed width are always inside.
    """
    if width >= 0:
        return row * width, width
    if data_size < 0:
        return 0, NULL
    start, end = starts[row], ends[row]
    if end < start:
        return 0, NULL
    if start < 0 or end > data_size:
        return 0, OUTSIDE
    return start, end - start


@inlined
def sized(size: int) -> int:
    """Return the bytes of a field with its size before it, from its size or NULL."""
    return 1 if size < 0 else varint_size(size) + size


@device
def _is_uniform(data_size: int, width: int) -> bool:
    return data_size < 0 or width >= 0


@device
def are_rows_uniform(encoding: Any) -> bool:
    """Return whether keys, values and headers have the same size in all rows."""
    return (
        _is_uniform(encoding.keys_size, encoding.keys_width)
        and _is_uniform(encoding.values_size, encoding.values_width)
        and _is_uniform(encoding.headers_size, encoding.headers_width)
    )


@inlined
def body_size(timestamp_delta: int, offset_delta: int, content_size: int) -> int:
    """Return the bytes of a record behind its length: attributes, deltas, key, value and headers."""
    return 1 + varint_size(timestamp_delta) + varint_size(offset_delta) + content_size


@inlined
def content_size(key_size: int, value_size: int, headers_size: int) -> int:
    """Return the bytes of key, value and headers with their sizes before them; -1 if one is OUTSIDE."""
    if min(key_size, value_size, headers_size) == OUTSIDE:
        return -1
    return sized(key_size) + sized(value_size) + max(headers_size, 1)
