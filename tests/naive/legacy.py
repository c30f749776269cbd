"""Message sets of magic 0 and 1, written and read with struct."""

from __future__ import annotations

import gzip
import struct
import zlib
from typing import NamedTuple


class Message(NamedTuple):
    """One message with its offset."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def message(magic: int, key: bytes | None, value: bytes | None, *, timestamp: int = 0, attributes: int = 0) -> bytes:
    """A message with the right checksum."""
    body = struct.pack(">bB", magic, attributes)
    if magic != 0:
        body += struct.pack(">q", timestamp)
    for field in key, value:
        body += struct.pack(">i", -1) if field is None else struct.pack(">i", len(field)) + field
    return struct.pack(">I", zlib.crc32(body)) + body


def entry(offset: int, content: bytes) -> bytes:
    return struct.pack(">qi", offset, len(content)) + content


def message_set(magic: int, messages: list[Message]) -> bytes:
    """Plain entries."""
    return b"".join(
        entry(each.offset, message(magic, each.key, each.value, timestamp=each.timestamp)) for each in messages
    )


def wrapped(magic: int, messages: list[Message], *, log_append_time: int | None = None) -> bytes:
    """The messages in one gzip wrapper, as a broker writes it: offsets of magic 1 count from the first one's."""
    base_offset = messages[0].offset if magic == 1 else 0
    inner = message_set(magic, [each._replace(offset=each.offset - base_offset) for each in messages])
    attributes, timestamp = 1, max(each.timestamp for each in messages)
    if log_append_time is not None:
        attributes, timestamp = 1 | 8, log_append_time
    value = gzip.compress(inner, mtime=0)
    return entry(messages[-1].offset, message(magic, None, value, timestamp=timestamp, attributes=attributes))


def parse(data: bytes) -> list[Message]:
    """Entries of the file, out of their wrappers."""
    messages: list[Message] = []
    for offset, content in _entries(data):
        magic, attributes, timestamp, key, value = _parse_message(content)
        if attributes & 7 == 0:
            messages.append(Message(offset, timestamp, key, value))
            continue
        assert value is not None
        inner = _entries(gzip.decompress(value))
        base_offset = offset - inner[-1][0] if magic == 1 and offset else 0
        for inner_offset, inner_content in inner:
            _, _, inner_timestamp, key, inner_value = _parse_message(inner_content)
            if attributes & 8 and magic == 1:
                inner_timestamp = timestamp
            messages.append(Message(base_offset + inner_offset, inner_timestamp, key, inner_value))
    return messages


def _entries(data: bytes) -> list[tuple[int, bytes]]:
    entries = []
    position = 0
    while position < len(data):
        offset, size = struct.unpack_from(">qi", data, position)
        position += 12 + size
        entries.append((offset, data[position - size : position]))
    return entries


def _parse_message(content: bytes) -> tuple[int, int, int, bytes | None, bytes | None]:
    magic, attributes = content[4], content[5]
    position, timestamp = 6, -1
    if magic != 0:
        (timestamp,) = struct.unpack_from(">q", content, position)
        position += 8
    fields = []
    for _ in range(2):
        (size,) = struct.unpack_from(">i", content, position)
        position += 4
        fields.append(None if size < 0 else content[position : position + size])
        position += max(size, 0)
    return magic, attributes, timestamp, fields[0], fields[1]
