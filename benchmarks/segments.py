"""Segments to measure on: the same bytes every time, of any size."""

from __future__ import annotations

import random
import struct
from pathlib import Path

from logstore.kernels.crc32c import crc32c

BASE_TIMESTAMP_MS = 1_700_000_000_000
TEMPLATE_COUNT = 64
_ALPHABET = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/"


def write_segment(path: Path, size: int, *, value_size: int = 100, batch_size: int = 16 * 1024) -> int:
    """Write about `size` bytes of uncompressed v2 batches with null keys, as a producer's benchmark does.

    Args:
        path: the `.log` to write.
        size: bytes; the file ends with the last whole batch.
        value_size: bytes of each value, printable.
        batch_size: bytes that a batch does not exceed.

    Returns:
        The number of records.
    """
    rng = random.Random(20231114)
    templates = [_records(rng, value_size, batch_size - 61) for _ in range(TEMPLATE_COUNT)]
    record_count = batch_count = written = 0
    with path.open("wb") as file:
        while True:
            body, count = templates[batch_count % TEMPLATE_COUNT]
            batch = _batch(body, count, record_count, BASE_TIMESTAMP_MS + batch_count)
            if written + len(batch) > size:
                return record_count
            file.write(batch)
            written += len(batch)
            record_count += count
            batch_count += 1


def _records(rng: random.Random, value_size: int, size_max: int) -> tuple[bytes, int]:
    records, count = bytearray(), 0
    while True:
        value = bytes(rng.choices(_ALPHABET, k=value_size))
        fields = b"\x00\x00" + _varint(count) + _varint(-1) + _varint(value_size) + value + b"\x00"
        record = _varint(len(fields)) + fields
        if len(records) + len(record) > size_max:
            return bytes(records), count
        records += record
        count += 1


def _batch(body: bytes, count: int, base_offset: int, timestamp_ms: int) -> bytes:
    checked = struct.pack(">hiqqqhii", 0, count - 1, timestamp_ms, timestamp_ms, -1, -1, -1, count) + body
    return struct.pack(">qiibI", base_offset, 9 + len(checked), 0, 2, crc32c(checked)) + checked


def _varint(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
