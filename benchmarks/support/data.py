"""What is measured on: segments, the same bytes every time, and how large they are.

LOGSTORE_BENCH_SCALE is the part of the real size: 0 tiny, as in `make test`; 0.01 to see quickly that all runs; 1 real,
as in `make bench`; 4 for a dump of a GiB. Unset it is 0, and DEFAULT_SCALE where pytest-benchmark measures.
"""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.support.page_cache import read_again
from logstore.columns.record_building import build_batches
from logstore.columns.record_columns import BytesColumn, RecordColumns
from logstore.kernels.scan.crc32c import crc32c
from logstore.layout.record import varint
from logstore.model import Codec

KIB, MIB = 2**10, 2**20
DEFAULT_SCALE = 0.01  # of `pytest benchmarks --benchmark-only`, which takes three minutes
SEGMENT = f"{0:020d}.log"
BASE_TIMESTAMP_MS = 1_700_000_000_000
BATCH_SIZE = 16 * 1024  # bytes
TEMPLATE_COUNT = 64
TRANSACTIONAL, MARKER = 0x10, 0x30  # of a batch's attributes
TRANSACTIONS_OF_SEGMENT = 6_000_000  # just below 1 GiB
_MARKERS = [bytes.fromhex(f"20 00 00 00 08 0000 {kind:04x} 0c 0000 00000000 00") for kind in (0, 1)]  # ABORT, COMMIT
WORD_COUNT, WORD_SIZE = 2000, 6
VALUE_SIZE, TEXT_SIZE = 90, 60  # of what is compressed
COMPRESSED = [codec for codec in Codec if codec is not Codec.NONE]
RECORDS_AT_ONCE = 100_000
WRITE_SIZE = 1 << 20  # bytes
_ALPHABET = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/"


def scale() -> float:
    """Return the part of the real sizes."""
    return float(os.environ.get("LOGSTORE_BENCH_SCALE") or 0)


def scaled(tiny: int, real: int, scale_max: float = 1000) -> int:
    """Return `real` times the scale, which is `scale_max` at most, and never less than `tiny`."""
    return max(tiny, round(real * min(scale(), scale_max)))


def steps(*sizes: int) -> list[int]:
    """Return sizes to show growth over: those that fit the scale, and always the first two; tiny is the first alone."""
    if scale() == 0:
        return [sizes[0]]
    largest = max(sizes[1], round(sizes[-1] * scale()))
    kept = [size for size in sizes if size <= largest]
    return kept if kept[-1] == largest or largest > sizes[-1] else [*kept, largest]


def segment_of(directory: Path, size: int) -> npt.NDArray[np.uint8]:
    """Write a segment of uncompressed batches and return its bytes."""
    write_segment(directory / SEGMENT, size)
    return np.fromfile(directory / SEGMENT, np.uint8)


def write_segment(path: Path, size: int, *, value_size: int = 100, batch_size: int = BATCH_SIZE) -> int:
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
    with path.open("wb", buffering=WRITE_SIZE) as file:
        while True:
            body, count = templates[batch_count % TEMPLATE_COUNT]
            batch = _batch(body, count, record_count, BASE_TIMESTAMP_MS + batch_count)
            if written + len(batch) > size:
                break
            file.write(batch)
            written += len(batch)
            record_count += count
            batch_count += 1
    read_again(path)
    return record_count


def write_producers(path: Path, producer_count: int, *, is_transactional: bool, now_ms: int) -> int:
    """Write a batch of one record for each producer from 0 on, so that all are known, or all have one open transaction.

    Returns:
        The number of records.
    """
    body, _ = _records(random.Random(1), 8, 30)
    with path.open("wb", buffering=WRITE_SIZE) as file:
        for producer_id in range(producer_count):
            attributes = TRANSACTIONAL if is_transactional else 0
            file.write(_batch(body, 1, producer_id, now_ms, attributes=attributes, producer=(producer_id, 0, 0)))
    read_again(path)
    return producer_count


def write_transactions(directory: Path, transaction_count: int, *, producer_count: int = 1000) -> int:
    """Write segments of transactions of one record and its marker, a tenth of them aborted; return the offset behind.

    Args:
        directory: of the partition, which there is not yet.
        producer_count: the producers take turns.
    """
    directory.mkdir(parents=True)
    body, _ = _records(random.Random(1), 8, 20)
    for first in range(0, transaction_count, TRANSACTIONS_OF_SEGMENT):
        with (directory / f"{2 * first:020}.log").open("wb", buffering=WRITE_SIZE) as file:
            for number in range(first, min(first + TRANSACTIONS_OF_SEGMENT, transaction_count)):
                sequence, producer_id = divmod(number, producer_count)
                time_ms = BASE_TIMESTAMP_MS + number
                producer = (producer_id, 0, sequence)
                file.write(_batch(body, 1, 2 * number, time_ms, attributes=TRANSACTIONAL, producer=producer))
                kind = _MARKERS[number % 10 > 0]
                file.write(_batch(kind, 1, 2 * number + 1, time_ms, attributes=MARKER, producer=(producer_id, 0, -1)))
    return 2 * transaction_count


def compressible(rng: np.random.Generator, count: int) -> npt.NDArray[np.uint8]:
    """Return so many rows of VALUE_SIZE bytes, two thirds words and one noise."""
    words = np.random.default_rng(20261121).integers(97, 123, (WORD_COUNT, WORD_SIZE), np.uint8)
    words[:, -1] = ord(" ")
    text = words[rng.integers(0, WORD_COUNT, (count, TEXT_SIZE // WORD_SIZE))].reshape(count, TEXT_SIZE)
    noise = rng.integers(33, 127, (count, VALUE_SIZE - TEXT_SIZE), np.uint8)
    return np.ascontiguousarray(np.concatenate([text, noise], axis=1))


def record_stream(size: int) -> bytes:
    """Return so many bytes, compressible as those of records."""
    return compressible(np.random.default_rng(1), size // VALUE_SIZE + 1).tobytes()[:size]


def write_compressed_segment(path: Path, size: int, codec: Codec) -> int:
    """Write batches of records of 100 bytes, the values `compressible`, of about `size` bytes before compression.

    Returns:
        The number of records.
    """
    rng = np.random.default_rng(1)
    record_count = size // 100
    with path.open("wb", buffering=WRITE_SIZE) as file:
        for offset in range(0, record_count, RECORDS_AT_ONCE):
            count = min(RECORDS_AT_ONCE, record_count - offset)
            values = BytesColumn.of_offsets(compressible(rng, count).reshape(-1), np.arange(count + 1) * VALUE_SIZE)
            columns = RecordColumns(count, None, values, np.full(count, BASE_TIMESTAMP_MS, np.int64))
            built = build_batches(columns, batch_size=BATCH_SIZE, base_offset=offset, codec=codec)
            file.write(built.data.data)
    read_again(path)
    return record_count


def _records(rng: random.Random, value_size: int, size_max: int) -> tuple[bytes, int]:
    records, count = bytearray(), 0
    while True:
        value = bytes(rng.choices(_ALPHABET, k=value_size))
        fields = b"\x00\x00" + varint(count) + varint(-1) + varint(value_size) + value + b"\x00"
        record = varint(len(fields)) + fields
        if len(records) + len(record) > size_max:
            return bytes(records), count
        records += record
        count += 1


def _batch(
    body: bytes,
    count: int,
    base_offset: int,
    timestamp_ms: int,
    *,
    attributes: int = 0,
    producer: tuple[int, int, int] = (-1, -1, -1),
) -> bytes:
    times = (timestamp_ms, timestamp_ms)
    checked = struct.pack(">hiqqqhii", attributes, count - 1, *times, *producer, count) + body
    return struct.pack(">qiibI", base_offset, 9 + len(checked), 0, 2, crc32c(checked)) + checked


def values(count: int, size: int = 100) -> list[bytes]:
    """Return values that differ, the same every time."""
    return [bytes(97 + (number * 31 + place * 7) % 26 for place in range(size)) for number in range(count)]


def columns_of(value_size: int, *, count: int, has_keys: bool = False) -> RecordColumns:
    """Return values, and keys of 8 bytes, out of one buffer of noise, the same every time."""
    noise = np.random.default_rng(20261121).integers(32, 127, count * value_size + 8, np.uint8)
    values = BytesColumn.of_offsets(noise, np.arange(count + 1) * value_size)
    keys = BytesColumn(noise, values.starts, values.starts + 8) if has_keys else None
    return RecordColumns(count, keys, values, BASE_TIMESTAMP_MS + np.arange(count) // 100)
