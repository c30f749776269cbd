"""LZ4 record streams: Kafka's own frames, everybody else's, and how they break."""

from __future__ import annotations

import struct

import cramjam
import pytest

from logstore.codec import decompress
from logstore.model import Codec
from tests.naive import lz4, records

SIZE_MAX = 1 << 20
RECORDS = records.stream([bytes([number]) * 90 for number in range(100)])


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


def reason_of(payload: bytes, magic: int = 2) -> tuple[bytes, str]:
    """What a damaged stream delivers, and why it ends there."""
    outcome = decompress(Codec.LZ4, memoryview(payload), magic, SIZE_MAX)
    where, _, reason = outcome.error.message.partition(": ")
    assert where.startswith("The lz4 stream does not decompress beyond its byte ")
    return outcome.data.tobytes(), f"{where.rsplit()[-1]}: {reason.partition(' (')[0]}"


def test_the_header_checksum_counts_except_in_magic_0() -> None:
    entry = struct.pack(">qi", 0, 20) + bytes(20)
    payload = bytearray(lz4.framed([(entry, False)]))
    payload[6] ^= 1
    assert decompress(Codec.LZ4, memoryview(payload), 0, SIZE_MAX).data.tobytes() == entry
    assert reason_of(bytes(payload), 1) == (b"", "6: the header is cut off, or has another checksum")


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (lz4.MAGIC + b"\x60", "0: this is no frame of lz4"),
        (b"\x05\x22\x4d\x18\x60\x40\x82", "0: this is no frame of lz4"),
        (lz4.MAGIC + b"\x61\x40\x82", "4: flags 0x61; Kafka takes independent blocks of version 1"),
        (lz4.MAGIC + b"\x40\x40\x82", "4: flags 0x40; Kafka takes independent blocks of version 1"),
        (lz4.MAGIC + b"\xa0\x40\x82", "4: flags 0xa0; Kafka takes independent blocks of version 1"),
        (lz4.MAGIC + b"\x60\x41\x82", "5: the size of blocks is 0x41"),
        (lz4.MAGIC + b"\x60\x30\x82", "5: the size of blocks is 0x30"),
        (lz4.MAGIC + b"\x60\xc0\x82", "5: the size of blocks is 0xc0"),
        (lz4.MAGIC + b"\x68\x40" + bytes(7), "14: the header is cut off, or has another checksum"),
    ],
)
def test_a_wrong_header_fails_before_any_record(header: bytes, reason: str) -> None:
    assert reason_of(header) == (b"", reason)


ENTRY = struct.pack(">qi", 0, 100) + bytes(100)
FRAME = lz4.framed([(ENTRY, False)])


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (FRAME[:-4], "123: a block is cut off"),
        (FRAME[:-4] + b"\x09\0\0\0\0", "123: a block is cut off"),
        (FRAME[:-4] + b"\x01\0\x01\0" + bytes(65537), "123: a block of 65537 bytes, of 65536 at most"),
        (
            lz4.framed([(ENTRY, False)], content_checksum=b"abcd")[:-1],
            "127: the checksum of the content is cut off",
        ),
        (
            FRAME[:-4] + (24).to_bytes(4, "little") + b"\x10a\x05\x00" + bytes(20),
            "127: this is no block of lz4",
        ),
    ],
)
def test_damage_behind_a_block_leaves_the_block(payload: bytes, reason: str) -> None:
    assert reason_of(payload) == (ENTRY, reason)


def test_a_block_with_another_checksum_is_not_delivered() -> None:
    payload = bytearray(lz4.framed([(ENTRY, False)], block_checksums=True))
    payload[-5] ^= 1
    assert reason_of(bytes(payload)) == (b"", "11: a block has another checksum")


def test_a_bomb_is_refused_at_the_cap() -> None:
    bomb = lz4.framed([compressed(bytes(4 << 20))] * 40, size_code=7)
    outcome = decompress(Codec.LZ4, memoryview(bomb), 2, SIZE_MAX)
    assert outcome.data.size <= SIZE_MAX
    small = records.stream([b"x" * 1000] * 2000)
    bomb = lz4.framed([compressed(small)], size_code=7)
    outcome = decompress(Codec.LZ4, memoryview(bomb), 2, SIZE_MAX)
    assert outcome.error.message == f"The record stream is larger than the cap of {SIZE_MAX} bytes"
