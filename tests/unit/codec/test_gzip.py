"""gzip record streams: what GZIPInputStream takes, and what Kafka's reader gets of a stream that it does not take."""

from __future__ import annotations

import gzip
import struct
import zlib

import pytest

from logstore.codec import decompress
from logstore.model import Codec
from tests.naive import records

SIZE_MAX = 1 << 20
RECORDS = records.stream([bytes([number]) * 90 for number in range(200)])


def member(data: bytes, flags: int = 0, extra_header: bytes = b"") -> bytes:
    deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
    header = b"\x1f\x8b\x08" + bytes([flags]) + b"\0\0\0\0\0\xff" + extra_header
    if flags & 2:
        header += struct.pack("<H", zlib.crc32(header) & 0xFFFF)
    return header + deflate.compress(data) + deflate.flush() + struct.pack("<II", zlib.crc32(data), len(data))


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(gzip.compress(RECORDS, mtime=0), id="one member"),
        pytest.param(member(RECORDS, 8 | 16, b"name\0comment\0"), id="name and comment"),
        pytest.param(member(RECORDS, 4 | 2, b"\x03\0abc"), id="extra field and header checksum"),
        pytest.param(member(RECORDS[:4000]) + member(RECORDS[4000:], 8, b"n\0"), id="two members"),
        pytest.param(member(RECORDS) + b"\x1f\x8b\x08garbage", id="up to 18 bytes of garbage"),
        pytest.param(member(RECORDS) + b"garbage" * 9, id="garbage that is no header"),
        pytest.param(member(RECORDS) + member(RECORDS)[:18], id="18 bytes of another member"),
    ],
)
def test_a_stream_that_java_takes_is_delivered(payload: bytes) -> None:
    outcome = decompress(Codec.GZIP, memoryview(payload), 2, SIZE_MAX)
    assert outcome.error is None
    assert outcome.data.tobytes() == RECORDS


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (b"", "java.io.EOFException"),
        (b"\x1f\x8b\x08\0", "java.io.EOFException"),
        (b"\x1f\x8c" + bytes(20), "java.util.zip.ZipException: Not in GZIP format"),
        (b"\x1f\x8b\x07" + bytes(20), "java.util.zip.ZipException: Unsupported compression method"),
        (member(RECORDS, 2)[:10] + b"\0\0", "java.util.zip.ZipException: Corrupt GZIP header"),
        (b"\x1f\x8b\x08\x08" + bytes(6) + b"endless name", "java.io.EOFException"),
    ],
)
def test_a_header_that_is_wrong_fails_before_any_record(payload: bytes, message: str) -> None:
    outcome = decompress(Codec.GZIP, memoryview(payload), 2, SIZE_MAX)
    assert not outcome.opened
    assert outcome.error is not None
    assert outcome.error.message == message
    assert outcome.error.java_class == "org.apache.kafka.common.KafkaException"


def damaged(position: int) -> bytes:
    payload = bytearray(member(RECORDS))
    payload[position] ^= 0x55
    return bytes(payload)


@pytest.mark.parametrize(
    ("payload", "cause"),
    [
        (damaged(-1), "java.util.zip.ZipException: Corrupt GZIP trailer"),
        (damaged(-5), "java.util.zip.ZipException: Corrupt GZIP trailer"),
        (member(RECORDS)[:-1], "java.io.EOFException"),
        (member(RECORDS)[:-9], "java.io.EOFException: Unexpected end of ZLIB input stream"),
    ],
)
def test_damage_after_the_last_record_is_found_by_the_check_that_nothing_follows(payload: bytes, cause: str) -> None:
    outcome = decompress(Codec.GZIP, memoryview(payload), 2, SIZE_MAX)
    assert outcome.opened
    assert outcome.data.tobytes() == RECORDS[: outcome.data.size]
    assert outcome.error is not None
    assert outcome.error_at_end is not None
    assert outcome.error.message == "Failed to decompress record stream"
    assert outcome.error_at_end.message == "Error checking for remaining bytes after reading batch"
    # a message set is read to its end in any case, and the cause is told
    entry = struct.pack(">qi", 0, len(RECORDS)) + RECORDS
    if payload == damaged(-1):
        broken = member(entry)[:-1] + b"\x55"
        legacy = decompress(Codec.GZIP, memoryview(broken), 1, SIZE_MAX)
        assert legacy.data.tobytes() == entry
        assert legacy.error is not None
        assert legacy.error.message == cause


def test_bytes_inflated_by_the_call_that_fails_are_lost() -> None:
    """Java inflates buffers of 8192 bytes: of the one with the damage in it nothing is delivered."""
    small = records.stream([b"x" * 9] * 2500)
    stored_block = struct.pack("<BHH", 0, len(small), len(small) ^ 0xFFFF) + small
    payload = b"\x1f\x8b\x08" + bytes(7) + stored_block + b"\x07"
    outcome = decompress(Codec.GZIP, memoryview(payload), 2, SIZE_MAX)
    assert outcome.data.tobytes() == small[: 3 * 8192 - 5]
    assert outcome.error is not None
    assert outcome.error.message == "Failed to decompress record stream"


def test_a_bomb_is_refused_at_the_cap() -> None:
    bomb = gzip.compress(records.framed(bytes(50_000_000)), mtime=0)
    outcome = decompress(Codec.GZIP, memoryview(bomb), 2, SIZE_MAX)
    assert outcome.data.size <= SIZE_MAX
    assert outcome.error is not None
    assert outcome.error.message == f"The record stream is larger than the cap of {SIZE_MAX} bytes"
    assert outcome.error.advice is not None


def test_a_stream_as_large_as_the_cap_is_delivered() -> None:
    payload = memoryview(gzip.compress(RECORDS, mtime=0))
    assert decompress(Codec.GZIP, payload, 2, len(RECORDS)).error is None
    assert decompress(Codec.GZIP, payload, 2, len(RECORDS) - 1).error is not None
