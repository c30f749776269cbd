"""Zstandard record streams: frames one after the other, cut short, broken, and too large."""

from __future__ import annotations

import struct

import cramjam
import pytest

from logstore.codec import decompress
from logstore.codec.zstd_frame import State, frames
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
        pytest.param(compressed(RECORDS) + b"\x28\xb5", RECORDS, id="the start of a frame after a frame"),
        pytest.param(
            compressed(RECORDS[:900]) + HEADER + raw_block(RECORDS)[:500],
            RECORDS[:900] + RECORDS[:497],
            id="a frame cut short after a frame",
        ),
    ],
)
def test_a_stream_that_java_takes_is_delivered(payload: bytes, expected: bytes) -> None:
    outcome = decompress(Codec.ZSTD, memoryview(payload), 2, SIZE_MAX)
    assert outcome.error is None
    assert outcome.data.tobytes() == expected


GOOD_BLOCK = raw_block(RECORDS[:17000])


@pytest.mark.parametrize(
    ("payload", "size"),
    [
        pytest.param(b"plain", 0, id="no frame"),
        pytest.param(HEADER[:4] + b"\x08\x38" + raw_block(RECORDS, is_last=True), 0, id="reserved header bit"),
        pytest.param(HEADER[:4] + b"\x00\x90" + raw_block(RECORDS, is_last=True), 0, id="window above 128 MiB"),
        pytest.param(HEADER[:4] + b"\x01\x38\x05" + raw_block(RECORDS, is_last=True), 0, id="a dictionary"),
        pytest.param(HEADER, 0, id="only a header"),
        pytest.param(HEADER + GOOD_BLOCK, 17000, id="no last block"),
        pytest.param(HEADER + GOOD_BLOCK + raw_block(RECORDS)[:99], 17096, id="half a raw block"),
        pytest.param(HEADER + GOOD_BLOCK + b"\x07\x00\x00", 16384, id="reserved block type"),
        pytest.param(HEADER + GOOD_BLOCK + b"\x0d\x00\x00x", 16384, id="a compressed block that is none"),
        pytest.param(HEADER + GOOD_BLOCK + raw_block(b"", is_last=True) + b"garbage", 17000, id="garbage after"),
        pytest.param(compressed(RECORDS) + b"\x28\xb6", len(RECORDS), id="the start of no frame after a frame"),
    ],
)
def test_a_stream_that_breaks_delivers_what_java_had_flushed(payload: bytes, size: int) -> None:
    """Small reads fetch 16384 bytes at once: a block that is refused takes the unflushed rest with it."""
    outcome = decompress(Codec.ZSTD, memoryview(payload), 2, SIZE_MAX)
    assert outcome.opened
    assert outcome.data.tobytes() == RECORDS[:size] if size != 17096 else RECORDS[:17000] + RECORDS[:96]
    assert outcome.error is not None
    assert outcome.error_at_end is not None
    assert outcome.error.message == "Failed to decompress record stream"
    assert outcome.error_at_end.message == "Error checking for remaining bytes after reading batch"


@pytest.mark.parametrize("damage", ["checksum", "content size"])
def test_a_frame_whose_sum_is_wrong_fails_at_its_end(damage: str) -> None:
    small = records.stream([b"x" * 9] * 10)
    block = raw_block(small, is_last=True)
    if damage == "checksum":
        payload = HEADER[:4] + b"\x04\x38" + block + b"sum!"
    else:
        payload = HEADER[:4] + b"\x60" + struct.pack("<H", 1000 - 256) + block
    outcome = decompress(Codec.ZSTD, memoryview(payload), 2, SIZE_MAX)
    assert outcome.data.size == 0
    assert outcome.error is not None


def test_a_cut_behind_128_kib_is_an_error_though_a_frame_ended_before() -> None:
    payload = compressed(RECORDS) + struct.pack("<II", 0x184D2A50, 1 << 18) + bytes(1 << 17)
    outcome = decompress(Codec.ZSTD, memoryview(payload), 2, SIZE_MAX)
    assert outcome.data.tobytes() == RECORDS
    assert outcome.error is not None


@pytest.mark.parametrize("block_count", [9, 1000])
def test_a_bomb_is_refused_at_the_cap(block_count: int) -> None:
    bomb = HEADER + repeated_block(1 << 17) * block_count + repeated_block(1, is_last=True)
    outcome = decompress(Codec.ZSTD, memoryview(bomb), 2, SIZE_MAX)
    assert outcome.data.size <= SIZE_MAX
    assert outcome.error is not None
    assert outcome.error.message == f"The record stream is larger than the cap of {SIZE_MAX} bytes"


def test_a_large_bound_does_not_refuse_a_small_stream() -> None:
    payload = compressed(RECORDS) + SKIPPABLE * 9000
    assert decompress(Codec.ZSTD, memoryview(payload), 2, SIZE_MAX).data.tobytes() == RECORDS


def test_frames_and_blocks_are_found_without_decoding() -> None:
    payload = SKIPPABLE + HEADER + raw_block(b"four") + repeated_block(70_000, is_last=True) + HEADER + b"\x01"
    skippable, frame, cut = frames(memoryview(payload))
    assert skippable.is_skippable
    assert [block.size_bound for block in frame.blocks] == [4, 70_000]
    assert (frame.start, frame.end, frame.state) == (11, len(payload) - 7, State.COMPLETE)
    assert cut.state is State.CUT
