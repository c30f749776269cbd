"""LZ4 record streams: Kafka's own frames, everybody else's, and how they break."""

from __future__ import annotations

import struct

import cramjam
import pytest

from logstore.codec import decompress
from logstore.codec.lz4_block import refused_position
from logstore.model import Codec
from tests.naive import lz4, records

SIZE_MAX = 1 << 20
RECORDS = records.stream([bytes([number]) * 90 for number in range(100)])
KAFKA = "org.apache.kafka.common.KafkaException"


def compressed(data: bytes) -> tuple[bytes, bool]:
    return bytes(cramjam.lz4.compress_block(data, store_size=False)), True


BLOCKS = [compressed(RECORDS[:3000]), (RECORDS[3000:4000], False), compressed(RECORDS[4000:])]
PLAIN = lz4.framed(BLOCKS)


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(PLAIN, id="plain"),
        pytest.param(lz4.framed(BLOCKS, size_code=7), id="4 MiB blocks"),
        pytest.param(lz4.framed(BLOCKS, content_size=1), id="content size is not compared"),
        pytest.param(lz4.framed(BLOCKS, block_checksums=True), id="block checksums"),
        pytest.param(lz4.framed(BLOCKS, content_checksum=b"wild"), id="content checksum is not compared"),
        pytest.param(PLAIN + b"anything", id="nothing after the frame is read"),
        pytest.param(PLAIN + PLAIN, id="nor another frame"),
    ],
)
def test_a_stream_that_java_takes_is_delivered(payload: bytes) -> None:
    outcome = decompress(Codec.LZ4, memoryview(payload), 2, SIZE_MAX)
    assert outcome.error is None
    assert outcome.data.tobytes() == RECORDS


def test_the_header_checksum_counts_except_in_magic_0() -> None:
    entry = struct.pack(">qi", 0, 20) + bytes(20)
    payload = bytearray(lz4.framed([(entry, False)]))
    payload[6] ^= 1
    assert decompress(Codec.LZ4, memoryview(payload), 0, SIZE_MAX).data.tobytes() == entry
    outcome = decompress(Codec.LZ4, memoryview(payload), 1, SIZE_MAX)
    assert not outcome.opened
    assert outcome.error is not None
    assert outcome.error.message == "java.io.IOException: Stream frame descriptor corrupted"


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (lz4.MAGIC + b"\x60", "java.io.IOException: Stream ended prematurely"),
        (b"\x05\x22\x4d\x18\x60\x40\x82", "java.io.IOException: Stream unsupported (invalid magic bytes)"),
        (lz4.MAGIC + b"\x61\x40\x82", "java.lang.RuntimeException: Reserved bits must be 0"),
        (lz4.MAGIC + b"\x40\x40\x82", "java.lang.RuntimeException: Dependent block stream is unsupported"),
        (lz4.MAGIC + b"\xa0\x40\x82", "java.lang.RuntimeException: Version 2 is unsupported"),
        (lz4.MAGIC + b"\x60\x41\x82", "java.lang.RuntimeException: Reserved2 field must be 0"),
        (lz4.MAGIC + b"\x60\x30\x82", "java.lang.RuntimeException: Block size value must be between 4 and 7"),
        (lz4.MAGIC + b"\x60\xc0\x82", "java.lang.RuntimeException: Reserved3 field must be 0"),
        (lz4.MAGIC + b"\x68\x40" + bytes(7), "java.io.IOException: Stream ended prematurely"),
        (lz4.MAGIC + b"\x60\x40", "java.nio.BufferUnderflowException"),
    ],
)
def test_a_header_that_is_wrong_fails_before_any_record(header: bytes, message: str) -> None:
    outcome = decompress(Codec.LZ4, memoryview(header), 2, SIZE_MAX)
    assert not outcome.opened
    assert outcome.error is not None
    assert (outcome.error.java_class, outcome.error.message) == (KAFKA, message)


ENTRY = struct.pack(">qi", 0, 100) + bytes(100)


@pytest.mark.parametrize(
    ("payload", "java_class", "message"),
    [
        (lz4.framed([(ENTRY, False)])[:-4], KAFKA, "java.io.IOException: Stream ended prematurely"),
        (lz4.framed([(ENTRY, False)])[:-4] + b"\x09\0\0\0\0", KAFKA, "java.io.IOException: Stream ended prematurely"),
        (
            lz4.framed([(ENTRY, False)])[:-4] + b"\x01\0\x01\0",
            KAFKA,
            "java.io.IOException: Block size 65537 exceeded max: 65536",
        ),
        (
            lz4.framed([(ENTRY, False)], content_checksum=b"abcd")[:-1],
            "java.nio.BufferUnderflowException",
            None,
        ),
    ],
)
def test_a_frame_that_goes_wrong_fails_in_javas_words(payload: bytes, java_class: str, message: str | None) -> None:
    outcome = decompress(Codec.LZ4, memoryview(payload), 1, SIZE_MAX)
    assert outcome.data.tobytes() == ENTRY
    assert outcome.error is not None
    assert (outcome.error.java_class, outcome.error.message) == (java_class, message)


def test_a_block_checksum_that_is_wrong_loses_the_block() -> None:
    payload = bytearray(lz4.framed([(ENTRY, False)], block_checksums=True))
    payload[-5] ^= 1
    outcome = decompress(Codec.LZ4, memoryview(payload), 1, SIZE_MAX)
    assert outcome.data.size == 0
    assert outcome.error is not None
    assert outcome.error.message == "java.io.IOException: Block checksum mismatch"


def test_an_error_in_a_block_tells_its_position_in_the_batch() -> None:
    block = b"\x10a\x05\x00" + bytes(20)
    outcome = decompress(Codec.LZ4, memoryview(lz4.framed([(block, True)])), 1, SIZE_MAX, payload_offset=30)
    assert outcome.error is not None
    assert outcome.error.message == (
        f"java.io.IOException: net.jpountz.lz4.LZ4Exception: Error decoding offset {30 + 11 + 4 + 1} of input buffer"
    )


@pytest.mark.parametrize(
    ("block", "capacity", "position"),
    [
        (b"", 100, 0),
        (b"\x50abc", 100, 1),
        (b"\xf0\xff\xff", 100, 1),
        (b"\xf0\x01" + b"a" * 16, 15, 2),
        (b"\x10a\x05\x00" + bytes(20), 100, 4),
    ],
)
def test_the_place_where_the_decoder_gives_up(block: bytes, capacity: int, position: int) -> None:
    """The numbers are those of liblz4."""
    assert refused_position(memoryview(block), capacity) == position


def test_a_bomb_is_refused_at_the_cap() -> None:
    bomb = lz4.framed([compressed(bytes(4 << 20))] * 40, size_code=7)
    outcome = decompress(Codec.LZ4, memoryview(bomb), 2, SIZE_MAX)
    assert outcome.data.size <= SIZE_MAX
    small = records.stream([b"x" * 1000] * 2000)
    bomb = lz4.framed([compressed(small)], size_code=7)
    outcome = decompress(Codec.LZ4, memoryview(bomb), 2, SIZE_MAX)
    assert outcome.error is not None
    assert outcome.error.message == f"The record stream is larger than the cap of {SIZE_MAX} bytes"
