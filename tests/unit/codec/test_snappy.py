"""snappy record streams: framed, concatenated and raw, and how they break."""

from __future__ import annotations

import struct

import cramjam
import pytest

from logstore.codec import decompress
from logstore.model import Codec
from tests.naive import records, snappy

SIZE_MAX = 1 << 20
RECORDS = records.stream([bytes([number]) * 90 for number in range(100)])
IO_ERROR = "org.apache.kafka.common.KafkaException"
SNAPPY_ERROR = "org.xerial.snappy.SnappyError"


def compressed(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


FRAMED = snappy.framed([compressed(RECORDS[:3000]), compressed(RECORDS[3000:])])


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(FRAMED, id="blocks"),
        pytest.param(compressed(RECORDS), id="a raw block without header"),
        pytest.param(snappy.framed([compressed(RECORDS[:50])]) + snappy.framed([compressed(RECORDS[50:])]), id="two"),
        pytest.param(FRAMED + snappy.header(), id="a header at the end"),
        pytest.param(FRAMED + b"\x00\x00\x00", id="three bytes after the last block"),
        pytest.param(FRAMED + b"\x82SNA" + bytes(12), id="a header that is none ends the stream"),
    ],
)
def test_a_stream_that_java_takes_is_delivered(payload: bytes) -> None:
    outcome = decompress(Codec.SNAPPY, memoryview(payload), 2, SIZE_MAX)
    assert outcome.error is None
    assert outcome.data.tobytes() == RECORDS


@pytest.mark.parametrize(
    ("payload", "message"),
    [
        (
            b"",
            "org.xerial.snappy.SnappyIOException: [EMPTY_INPUT] Cannot decompress empty stream",
        ),
        (b"\xff" * 20, "java.io.IOException: PARSING_ERROR(2)"),
        (b"\x05\x00ab", "java.io.IOException: FAILED_TO_UNCOMPRESS(5)"),
        (b"\xff\xff\xff\xff\x0f", "java.lang.NegativeArraySizeException: -1"),
        (b"\xff\xff\xff\xff\x07", "java.lang.OutOfMemoryError: Requested array size exceeds VM limit"),
        (b"\x80\x80\x80\x80\x04", "java.lang.OutOfMemoryError: Java heap space"),
    ],
)
def test_a_raw_block_is_decoded_when_the_stream_is_opened(payload: bytes, message: str) -> None:
    outcome = decompress(Codec.SNAPPY, memoryview(payload), 2, SIZE_MAX)
    assert not outcome.opened
    assert outcome.error is not None
    assert (outcome.error.java_class, outcome.error.message) == (IO_ERROR, message)


@pytest.mark.parametrize(
    ("tail", "java_class", "message"),
    [
        (struct.pack(">i", 9) + b"short", IO_ERROR, "java.io.IOException: failed to read chunk"),
        (struct.pack(">i", 2) + b"\x05\x00", IO_ERROR, "java.io.IOException: FAILED_TO_UNCOMPRESS(5)"),
        (struct.pack(">i", 0), IO_ERROR, "java.io.IOException: PARSING_ERROR(2)"),
        (struct.pack(">i", -7), SNAPPY_ERROR, "[INVALID_CHUNK_SIZE] chunkSize is too big or negative : -7"),
        (
            struct.pack(">i", 0x20000001),
            SNAPPY_ERROR,
            "[FAILED_TO_UNCOMPRESS] Received chunkSize 536,870,913 is greater than max configured chunk size "
            "536,870,912",
        ),
        (struct.pack(">i", 0x20000000), SNAPPY_ERROR, "[INVALID_CHUNK_SIZE] Java heap space"),
        (
            snappy.header(0),
            IO_ERROR,
            "org.xerial.snappy.SnappyIOException: [INCOMPATIBLE_VERSION] Compressed with an incompatible codec "
            "version 0. At least version 1 is required",
        ),
        (
            snappy.header()[:12],
            IO_ERROR,
            "org.xerial.snappy.SnappyIOException: [FAILED_TO_UNCOMPRESS] Insufficient header size in a concatenated "
            "block",
        ),
    ],
)
def test_a_block_that_is_wrong_fails_in_javas_words(tail: bytes, java_class: str, message: str) -> None:
    entry = struct.pack(">qi", 0, 2036) + bytes(2036)
    outcome = decompress(Codec.SNAPPY, memoryview(snappy.framed([compressed(entry)]) + tail), 1, SIZE_MAX)
    assert outcome.data.tobytes() == entry
    assert outcome.error is not None
    assert (outcome.error.java_class, outcome.error.message) == (java_class, message)


def test_bytes_read_together_with_a_broken_block_are_lost() -> None:
    """Small reads fetch 2048 bytes at once, across blocks."""
    small = records.stream([b"x" * 9] * 300)
    whole = snappy.framed([compressed(small[:2500])]) + struct.pack(">i", 2) + b"\x05\x00"
    outcome = decompress(Codec.SNAPPY, memoryview(whole), 2, SIZE_MAX)
    assert outcome.data.tobytes() == small[:2048]
    assert outcome.error is not None
    assert outcome.error.message == "Failed to decompress record stream"


@pytest.mark.parametrize("payload", [snappy.framed([compressed(bytes(SIZE_MAX + 1))]), compressed(bytes(SIZE_MAX + 1))])
def test_a_bomb_is_refused_at_the_cap(payload: bytes) -> None:
    outcome = decompress(Codec.SNAPPY, memoryview(payload), 2, SIZE_MAX)
    assert outcome.data.size == 0
    assert outcome.error is not None
    assert outcome.error.message == f"The record stream is larger than the cap of {SIZE_MAX} bytes"
