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


def reason_of(payload: bytes) -> tuple[bytes, str]:
    """What a damaged stream delivers, and why it ends there."""
    outcome = decompress(Codec.SNAPPY, memoryview(payload), 2, SIZE_MAX)
    where, _, reason = outcome.error.message.partition(": ")
    assert where.startswith("The snappy stream does not decompress beyond its byte ")
    return outcome.data.tobytes(), f"{where.rsplit()[-1]}: {reason.partition(' (')[0]}"


@pytest.mark.parametrize(
    "payload",
    [b"", b"\xff" * 20, b"\x05\x00ab", b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07", b"\x80\x80\x80\x80\x04"],
)
def test_what_is_no_block_is_refused(payload: bytes) -> None:
    assert reason_of(payload) == (b"", "0: this is no block of snappy")


ENTRY = struct.pack(">qi", 0, 2036) + bytes(2036)
FRAME = snappy.framed([compressed(ENTRY)])


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        (struct.pack(">i", 9) + b"short", "a block of 9 bytes is cut off"),
        (struct.pack(">i", 2) + b"\x05\x00", "this is no block of snappy"),
        (struct.pack(">i", 0), "this is no block of snappy"),
        (struct.pack(">i", -7), "a block of 4294967289 bytes is cut off"),
    ],
)
def test_damage_behind_a_block_leaves_the_block(tail: bytes, reason: str) -> None:
    assert reason_of(FRAME + tail) == (ENTRY, f"{len(FRAME) + 4}: {reason}")


@pytest.mark.parametrize("header", [snappy.header(0), snappy.header()[:12]])
def test_a_second_header_that_is_wrong_leaves_the_block_before_it(header: bytes) -> None:
    reason = "a header is cut off, or of an unknown version"
    assert reason_of(FRAME + header) == (ENTRY, f"{len(FRAME)}: {reason}")


@pytest.mark.parametrize("payload", [snappy.framed([compressed(bytes(SIZE_MAX + 1))]), compressed(bytes(SIZE_MAX + 1))])
def test_a_bomb_is_refused_at_the_cap(payload: bytes) -> None:
    outcome = decompress(Codec.SNAPPY, memoryview(payload), 2, SIZE_MAX)
    assert outcome.data.size == 0
    assert outcome.error.message == f"The record stream is larger than the cap of {SIZE_MAX} bytes"
