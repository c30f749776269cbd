"""Zstandard record streams: frames one after the other, cut short, broken, and too large."""

from __future__ import annotations

import struct

import cramjam
import pytest

from logstore.codec import decompress
from logstore.model import Codec
from tests.naive import records

SIZE_MAX = 1 << 20
RECORDS = records.stream([bytes([number]) * 90 for number in range(200)])
# No content size, window of 128 KiB, no checksum: the header of a frame made by hand.
HEADER = b"\x28\xb5\x2f\xfd\x00\x38"
SKIPPABLE = struct.pack("<II", 0x184D2A57, 3) + b"abc"


def compressed(data: bytes) -> bytes:
    return bytes(cramjam.zstd.compress(data))


def raw_block(data: bytes, *, is_last: bool = False) -> bytes:
    return struct.pack("<I", len(data) << 3 | is_last)[:3] + data


def repeated_block(size: int, *, is_last: bool = False) -> bytes:
    return struct.pack("<I", size << 3 | 2 | is_last)[:3] + b"r"


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        pytest.param(b"", b"", id="nothing at all"),
        pytest.param(compressed(RECORDS), RECORDS, id="a frame"),
        pytest.param(compressed(RECORDS[:900]) + compressed(RECORDS[900:]), RECORDS, id="two frames"),
        pytest.param(SKIPPABLE + compressed(RECORDS) + SKIPPABLE, RECORDS, id="skippable frames"),
        pytest.param(
            HEADER + raw_block(RECORDS) + raw_block(b"", is_last=True), RECORDS, id="an empty last block, as Kafka's"
        ),
    ],
)
def test_a_stream_that_java_takes_is_delivered(payload: bytes, expected: bytes) -> None:
    outcome = decompress(Codec.ZSTD, memoryview(payload), 2, SIZE_MAX)
    assert outcome.error is None
    assert outcome.data.tobytes() == expected


GOOD_BLOCK = raw_block(RECORDS[:17000])


BROKEN_BLOCK = b"\x0d\x00\x00x"


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        pytest.param(b"plain", b"", id="no frame"),
        pytest.param(HEADER[:4] + b"\x08\x38" + raw_block(RECORDS, is_last=True), b"", id="reserved header bit"),
        pytest.param(HEADER[:4] + b"\x00\x90" + raw_block(RECORDS, is_last=True), b"", id="window above 128 MiB"),
        pytest.param(HEADER[:4] + b"\x01\x38\x05" + raw_block(RECORDS, is_last=True), b"", id="a dictionary"),
        pytest.param(HEADER, b"", id="only a header"),
        pytest.param(HEADER + GOOD_BLOCK, RECORDS[:17000], id="no last block"),
        pytest.param(HEADER + GOOD_BLOCK + raw_block(RECORDS)[:99], RECORDS[:17000] + RECORDS[:96], id="half a block"),
        pytest.param(HEADER + GOOD_BLOCK + b"\x07\x00\x00", RECORDS[:17000], id="reserved block type"),
        pytest.param(HEADER + GOOD_BLOCK + BROKEN_BLOCK, RECORDS[:17000], id="a compressed block that is none"),
        pytest.param(
            HEADER + GOOD_BLOCK + raw_block(b"", is_last=True) + b"garbage", RECORDS[:17000], id="garbage after"
        ),
        pytest.param(compressed(RECORDS) + b"\x28\xb6", RECORDS, id="the start of no frame after a frame"),
        pytest.param(compressed(RECORDS) + b"\x28\xb5", RECORDS, id="the start of a frame after a frame"),
        pytest.param(HEADER[:4] + b"\x04\x38" + raw_block(RECORDS, is_last=True) + b"sum!", RECORDS, id="checksum"),
        pytest.param(
            compressed(RECORDS) + struct.pack("<II", 0x184D2A50, 1 << 18) + bytes(1 << 17), RECORDS, id="half a skip"
        ),
    ],
)
def test_all_bytes_before_the_damage_are_delivered(payload: bytes, expected: bytes) -> None:
    outcome = decompress(Codec.ZSTD, memoryview(payload), 2, SIZE_MAX)
    assert outcome.data.tobytes() == expected
    assert outcome.error.message.startswith("The zstd stream does not decompress beyond its byte ")


def test_the_error_names_the_byte_that_the_library_refuses() -> None:
    whole = HEADER + raw_block(RECORDS[:50])
    outcome = decompress(Codec.ZSTD, memoryview(whole + BROKEN_BLOCK), 2, SIZE_MAX)
    assert outcome.error is not None
    # the decoder looks at a block when it has all of it
    position = len(whole) + len(BROKEN_BLOCK) - 1
    assert (outcome.error.message or "").startswith(f"The zstd stream does not decompress beyond its byte {position}: ")


@pytest.mark.parametrize("block_count", [9, 1000])
def test_a_bomb_is_refused_at_the_cap(block_count: int) -> None:
    bomb = HEADER + repeated_block(1 << 17) * block_count + repeated_block(1, is_last=True)
    outcome = decompress(Codec.ZSTD, memoryview(bomb), 2, SIZE_MAX)
    assert outcome.data.size <= SIZE_MAX
    assert outcome.error.message == f"The record stream is larger than the cap of {SIZE_MAX} bytes"


def test_a_large_bound_does_not_refuse_a_small_stream() -> None:
    payload = compressed(RECORDS) + SKIPPABLE * 9000
    assert decompress(Codec.ZSTD, memoryview(payload), 2, SIZE_MAX).data.tobytes() == RECORDS
