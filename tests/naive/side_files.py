"""Side files the slow way: a loop where logstore has arrays, a state machine where it has patterns."""

from __future__ import annotations

import struct
from collections.abc import Sequence

WARM_BYTES = 8192


def offset_index_rows(data: bytes, base_offset: int) -> list[tuple[int, int]]:
    """(offset, position) of each whole entry."""
    whole = data[: len(data) // 8 * 8]
    return [(wrapped(base_offset + relative), position) for relative, position in struct.iter_unpack(">ii", whole)]


def time_index_rows(data: bytes, base_offset: int) -> list[tuple[int, int]]:
    """(timestamp, offset) of each whole entry."""
    whole = data[: len(data) // 12 * 12]
    return [(timestamp, wrapped(base_offset + relative)) for timestamp, relative in struct.iter_unpack(">qi", whole)]


def largest_lower_bound_slot(keys: Sequence[int], target: int, entry_size: int) -> int:
    """One lookup of Kafka's, step by step; -1 if there is none."""
    if not keys:
        return -1
    first_warm = max(0, len(keys) - 1 - WARM_BYTES // entry_size)
    if keys[first_warm] < target:
        low, high = first_warm, len(keys) - 1
    elif keys[0] > target:
        return -1
    else:
        low, high = 0, first_warm
    while low < high:
        middle = (low + high + 1) // 2
        if keys[middle] > target:
            high = middle - 1
        elif keys[middle] < target:
            low = middle
        else:
            return middle
    return low


def aborted_transactions(data: bytes, fetch_offset: int, upper_bound_offset: int) -> tuple[list[int], bool]:
    """Numbers of the entries that a read needs, and whether the search ends in this file."""
    found = []
    for number in range(len(data) // 34):
        _, _, first, last, last_stable = struct.unpack_from(">hqqqq", data, number * 34)
        if last >= fetch_offset and first < upper_bound_offset:
            found.append(number)
        if last_stable >= upper_bound_offset:
            return found, True
    return found, False


def first_batch(data: bytes, position: int, offset: int) -> tuple[int, int] | str | None:
    """(position, last offset) of the first batch from `position` on that ends at or after `offset`; text if damaged.

    Reads every batch to the end of the file before it looks, as Kafka's tool does.
    """
    batches = []
    while position < len(data) - 17:
        base_offset, length, magic = struct.unpack_from(">qi4xb", data, position)
        if length < 14:
            return f"Found record size {length} smaller"
        if position > len(data) - 12 - length:
            break
        batches.append((position, base_offset, magic))
        position += 12 + length
    for at, base_offset, magic in batches:
        if magic >= 2 and at + 61 > len(data):
            return f"Failed to load record batch at position {at} "
        last_offset = base_offset
        if magic >= 2:
            last_offset = wrapped(base_offset + struct.unpack_from(">i", data, at + 23)[0])
        if last_offset >= offset:
            return at, last_offset
    return None


def hash_map_order(keys: Sequence[str]) -> list[str]:
    """Keys as a Java HashMap iterates them, each put in by computeIfAbsent, which `keys` may repeat."""
    buckets: list[list[str]] = [[] for _ in range(16)]
    for key in keys:
        if sum(map(len, buckets)) > len(buckets) * 3 / 4:
            doubled: list[list[str]] = [[] for _ in range(2 * len(buckets))]
            for bucket in buckets:
                for old in bucket:
                    doubled[_spread(old) % len(doubled)].append(old)
            buckets = doubled
        bucket = buckets[_spread(key) % len(buckets)]
        if key not in bucket:
            bucket.insert(0, key)
    return [key for bucket in buckets for key in bucket]


def _spread(text: str) -> int:
    code = 0
    data = text.encode("utf-16-be")
    for at in range(0, len(data), 2):
        code = (31 * code + data[at] * 256 + data[at + 1]) % 2**32
    return code ^ (code >> 16)


def properties(text: str) -> dict[str, str] | str:
    """Java properties, a character at a time; the message of Java's exception for a wrong escape."""
    try:
        return _properties(text)
    except ValueError as error:
        return str(error)


def _properties(text: str) -> dict[str, str]:
    found = {}
    for line in _logical_lines(text):
        key_end = 0
        while key_end < len(line) and line[key_end] not in "=: \t\f":
            key_end += 2 if line[key_end] == "\\" else 1
        value_start = key_end
        while line[value_start : value_start + 1] in (" ", "\t", "\f"):
            value_start += 1
        if line[value_start : value_start + 1] in ("=", ":"):
            value_start += 1
            while line[value_start : value_start + 1] in (" ", "\t", "\f"):
                value_start += 1
        found[_unescaped(line[:key_end])] = _unescaped(line[value_start:])
    return found


def _logical_lines(text: str) -> list[str]:
    lines = []
    line, skip_blanks, in_comment, backslash = "", True, False, False
    at = 0
    while at < len(text):
        character = text[at]
        at += 1
        if character not in "\r\n":
            if in_comment or (skip_blanks and character in " \t\f"):
                continue
            skip_blanks = False
            if not line and character in "#!":
                in_comment = True
                continue
            line += character
            backslash = character == "\\" and not backslash
            continue
        if character == "\r" and text[at : at + 1] == "\n":
            at += 1
        if backslash and at < len(text):
            line = line[:-1]
        elif line:
            lines.append(line[:-1] if backslash else line)
            line = ""
        skip_blanks, in_comment, backslash = True, False, False
    if line:
        lines.append(line[:-1] if backslash else line)
    return lines


def _unescaped(text: str) -> str:
    out = ""
    at = 0
    while at < len(text):
        character = text[at]
        at += 1
        if character != "\\":
            out += character
        elif text[at : at + 1] == "u":
            digits = text[at + 1 : at + 5]
            if len(digits) < 4 or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
                raise ValueError("Malformed \\uxxxx encoding.")
            out += chr(int(digits, 16))
            at += 5
        else:
            out += {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}.get(text[at : at + 1], text[at : at + 1])
            at += 1
    return out


def wrapped(number: int) -> int:
    """`number` as 64 signed bits."""
    return (number + 2**63) % 2**64 - 2**63
