"""gzip record streams: what GZIPInputStream takes, and what Kafka's reader gets of a stream that it does not take."""

from __future__ import annotations

import gzip
import struct
import tracemalloc
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
    ("payload", "reason"),
    [
        (b"", "its header is cut off"),
        (b"\x1f\x8b\x08\0", "its header is cut off"),
        (b"\x1f\x8c" + bytes(20), "this is no header of gzip with deflate"),
        (b"\x1f\x8b\x07" + bytes(20), "this is no header of gzip with deflate"),
        (member(RECORDS, 2)[:10] + b"\0\0", "its header has another checksum"),
        (b"\x1f\x8b\x08\x08" + bytes(6) + b"endless name", "its header is cut off"),
        (b"\x1f\x8b\x08\x04" + bytes(6) + b"\xff\xff", "its header is cut off"),
    ],
)
def test_a_wrong_header_fails_before_any_record(payload: bytes, reason: str) -> None:
    outcome = decompress(Codec.GZIP, memoryview(payload), 2, SIZE_MAX)
    assert outcome.data.size == 0
    assert outcome.error.message == f"The gzip stream does not decompress beyond its byte 0: {reason}"


def damaged(position: int) -> bytes:
    payload = bytearray(member(RECORDS))
    payload[position] ^= 0x55
    return bytes(payload)


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (damaged(-1), "its trailer has another checksum or size than its content"),
        (damaged(-5), "its trailer has another checksum or size than its content"),
        (member(RECORDS)[:-1], "its trailer is cut off"),
    ],
)
def test_damage_behind_the_content_leaves_all_of_it(payload: bytes, reason: str) -> None:
    outcome = decompress(Codec.GZIP, memoryview(payload), 2, SIZE_MAX)
    assert outcome.data.tobytes() == RECORDS
    position = len(member(RECORDS)) - 8
    assert outcome.error.message == f"The gzip stream does not decompress beyond its byte {position}: {reason}"


@pytest.mark.parametrize("size", [1, 8, 255, 256, 257, 700])
def test_all_bytes_before_the_damage_are_delivered(size: int) -> None:
    content = RECORDS[:size]
    stored_block = struct.pack("<BHH", 0, size, size ^ 0xFFFF) + content
    payload = b"\x1f\x8b\x08" + bytes(7) + stored_block + b"\x07"
    outcome = decompress(Codec.GZIP, memoryview(payload), 2, SIZE_MAX)
    assert outcome.data.tobytes() == content
    where = f"beyond its byte {len(payload) - 1}"
    assert outcome.error.message == f"The gzip stream does not decompress {where}: invalid block type"


def test_a_stream_that_is_cut_off_delivers_its_beginning() -> None:
    payload = member(RECORDS)[:-60]
    outcome = decompress(Codec.GZIP, memoryview(payload), 2, SIZE_MAX)
    assert 0 < outcome.data.size < len(RECORDS)
    assert outcome.data.tobytes() == RECORDS[: outcome.data.size]
    assert outcome.error.message.endswith(f"byte {len(payload)}: it is cut off")


def test_a_bomb_is_refused_at_the_cap() -> None:
    bomb = gzip.compress(records.framed(bytes(50_000_000)), mtime=0)
    outcome = decompress(Codec.GZIP, memoryview(bomb), 2, SIZE_MAX)
    assert outcome.data.size <= SIZE_MAX
    assert outcome.error.message == f"The record stream is larger than the cap of {SIZE_MAX} bytes"
    assert outcome.error.advice is not None


def test_a_stream_as_large_as_the_cap_is_delivered() -> None:
    payload = memoryview(gzip.compress(RECORDS, mtime=0))
    assert decompress(Codec.GZIP, payload, 2, len(RECORDS)).error is None
    assert decompress(Codec.GZIP, payload, 2, len(RECORDS) - 1).error is not None


def test_the_texts_of_a_header_are_skipped_without_a_copy_of_the_stream() -> None:
    """Each member copied all behind it, so that the time grew with the square of the size of a stream."""
    named = member(b"paid", 8 | 16, b"n" * 1000 + b"\0" + b"c" * 255 + b"\0")
    payload = memoryview(named + named + bytes(5_000_000))
    tracemalloc.start()
    try:
        outcome = decompress(Codec.GZIP, payload, 2, SIZE_MAX)
        assert (outcome.data.tobytes(), outcome.error) == (b"paidpaid", None)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
