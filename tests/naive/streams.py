"""Compressed streams as other writers make them, or as nobody should: the same bytes in many a wrapping.

Kafka's own encoders use few of the features of their formats; librdkafka, franz-go and old clients use others.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

import cramjam
import xxhash

from tests.support.encoder import LZ4_STORED, SNAPPY_HEADER, lz4_block

LZ4_MAGIC = b"\x04\x22\x4d\x18"
LZ4_SKIPPABLE = b"\x50\x2a\x4d\x18" + struct.pack("<I", 5) + b"12345"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
ZSTD_BLOCK_RAW, ZSTD_BLOCK_RLE, ZSTD_BLOCK_RESERVED = 0, 1, 3
VERSION_1, INDEPENDENT, BLOCK_CHECKSUM, CONTENT_SIZE, CONTENT_CHECKSUM, DICTIONARY = 0x40, 0x20, 0x10, 0x08, 0x04, 0x01


def gzip_streams(data: bytes) -> dict[str, bytes]:
    """RFC 1952 members."""
    plain = _gzip(data)
    half = len(data) // 2
    return {
        "plain": plain,
        "stored": _gzip(data, level=0),
        "two-members": _gzip(data[:half]) + _gzip(data[half:]),
        "empty-member-first": _gzip(b"") + plain,
        "extra-name-comment-crc": _gzip_with_fields(plain),
        "reserved-flag": plain[:3] + b"\x80" + plain[4:],
        "other-method": plain[:2] + b"\x07" + plain[3:],
        "zeros-after": plain + bytes(20),
        "noise-after": plain + b"noise after the end",
        "wrong-crc": plain[:-8] + b"\x01\x02\x03\x04" + plain[-4:],
        "wrong-size": plain[:-4] + b"\x01\x02\x03\x04",
        "no-trailer": plain[:-8],
        "cut": plain[: len(plain) // 2],
        "only-header": plain[:10],
        "half-header": plain[:5],
        "zlib": zlib.compress(data),
        "raw-deflate": plain[10:-8],
        "nothing": b"",
    }


def snappy_streams(data: bytes) -> dict[str, bytes]:
    """The framing of snappy-java, and raw snappy as the first other clients sent it."""
    raw = bytes(cramjam.snappy.compress_raw(data))
    block = struct.pack(">i", len(raw)) + raw
    halves = [bytes(cramjam.snappy.compress_raw(part)) for part in (data[: len(data) // 2], data[len(data) // 2 :])]
    two = b"".join(struct.pack(">i", len(half)) + half for half in halves)
    return {
        "framed": SNAPPY_HEADER + block,
        "two-blocks": SNAPPY_HEADER + two,
        "header-again": SNAPPY_HEADER
        + struct.pack(">i", len(halves[0]))
        + halves[0]
        + SNAPPY_HEADER
        + two[-len(halves[1]) - 4 :],
        "raw": raw,
        "version-0": SNAPPY_HEADER[:8] + struct.pack(">ii", 0, 0) + block,
        "version-9-compatible-1": SNAPPY_HEADER[:8] + struct.pack(">ii", 9, 1) + block,
        "version-9": SNAPPY_HEADER[:8] + struct.pack(">ii", 9, 9) + block,
        "empty-block": SNAPPY_HEADER + struct.pack(">i", 0) + block,
        "negative-block": SNAPPY_HEADER + struct.pack(">i", -5) + block,
        "huge-block": SNAPPY_HEADER + struct.pack(">i", 2**31 - 1) + raw,
        "cut-block": SNAPPY_HEADER + block[: len(block) // 2],
        "cut-length": SNAPPY_HEADER + block[:2],
        "only-header": SNAPPY_HEADER,
        "half-header": SNAPPY_HEADER[:9],
        "stream-format": bytes(cramjam.snappy.compress(data)),
        "lying-length": SNAPPY_HEADER + struct.pack(">i", len(raw) + 1) + b"\x80" + raw,
        "bad-copy": SNAPPY_HEADER + struct.pack(">i", 5) + b"\x0a\x15\x09\x00\x00",
        "nothing": b"",
    }


def lz4_streams(data: bytes) -> dict[str, bytes]:
    """The LZ4 frame format, version 1.6.x, of which Kafka reads a part."""
    frame = lz4_frame(data)
    legacy = b"\x02\x21\x4c\x18" + lz4_block(data)
    return {
        "as-kafka": frame,
        "stored": lz4_frame(data, compress=False),
        "small-blocks": lz4_frame(data, block_bytes=50),
        "content-size": lz4_frame(data, flags=CONTENT_SIZE),
        "block-checksum": lz4_frame(data, flags=BLOCK_CHECKSUM),
        "wrong-block-checksum": lz4_frame(data, flags=BLOCK_CHECKSUM, damage_block_checksum=True),
        "content-checksum": lz4_frame(data, flags=CONTENT_CHECKSUM),
        "wrong-content-checksum": lz4_frame(data, flags=CONTENT_CHECKSUM)[:-4] + b"\x00\x01\x02\x03",
        "dictionary": lz4_frame(data, flags=DICTIONARY),
        "reserved-flag": lz4_frame(data, flags=0x02),
        "dependent": lz4_frame(data, flags=-INDEPENDENT),
        "version-2": lz4_frame(data, flags=VERSION_1),
        **{f"block-size-{size}": lz4_frame(data, block_descriptor=size << 4) for size in (0, 3, 5, 6, 7)},
        "reserved-block-descriptor": lz4_frame(data, block_descriptor=0x41),
        "wrong-header-checksum": frame[:6] + bytes([frame[6] ^ 1]) + frame[7:],
        "header-checksum-over-magic": lz4_frame(data, checksum_over_magic=True),
        "no-end-mark": frame[:-4],
        "half-end-mark": frame[:-2],
        "noise-after": frame + b"noise after the end",
        "two-frames": lz4_frame(data[: len(data) // 2]) + lz4_frame(data[len(data) // 2 :]),
        "skippable-first": LZ4_SKIPPABLE + frame,
        "legacy": legacy,
        "cut": frame[: len(frame) // 2],
        "only-header": frame[:7],
        "half-header": frame[:5],
        "block-too-large": frame[:7] + struct.pack("<I", 70_000) + bytes(70_000) + bytes(4),
        "block-beyond-end": frame[:7] + struct.pack("<I", 60_000) + frame[11:],
        "empty-frame": lz4_frame(b""),
        "nothing": b"",
    }


def zstd_streams(data: bytes) -> dict[str, bytes]:
    """Zstandard frames (RFC 8878)."""
    frame = bytes(cramjam.zstd.compress(data))
    raw = zstd_frame([(ZSTD_BLOCK_RAW, data[:100], 100), (ZSTD_BLOCK_RAW, data[100:], len(data) - 100)])
    return {
        "one-shot": frame,
        "raw-blocks": raw,
        "run-length-block": zstd_frame([(ZSTD_BLOCK_RAW, data, len(data)), (ZSTD_BLOCK_RLE, b"\x00", 50)]),
        "checksum": zstd_frame([(ZSTD_BLOCK_RAW, data, len(data))], checksum_of=data),
        "wrong-checksum": zstd_frame([(ZSTD_BLOCK_RAW, data, len(data))], checksum_of=b"other"),
        "two-frames": zstd_frame([(ZSTD_BLOCK_RAW, data[:9], 9)]) + bytes(cramjam.zstd.compress(data[9:])),
        "skippable-first": LZ4_SKIPPABLE + frame,
        "skippable-last": frame + LZ4_SKIPPABLE,
        "reserved-block": zstd_frame([(ZSTD_BLOCK_RESERVED, data, len(data))]),
        "reserved-bit": ZSTD_MAGIC + b"\x08\x58" + raw[6:],
        "wrong-content-size": ZSTD_MAGIC + b"\x20" + bytes([len(data) % 200 + 1]) + raw[6:],
        "dictionary": ZSTD_MAGIC + b"\x01\x58\x07" + raw[6:],
        "huge-window": ZSTD_MAGIC + b"\x00\xf8" + raw[6:],
        "noise-after": frame + b"noise after the end",
        "cut": frame[: len(frame) // 2],
        "no-last-block": raw[:-3],
        "only-magic": ZSTD_MAGIC,
        "half-magic": ZSTD_MAGIC[:2],
        "old-format": b"\x26\xb5\x2f\xfd" + frame[4:],
        "nothing": b"",
    }


STREAMS: dict[int, Callable[[bytes], dict[str, bytes]]] = {
    1: gzip_streams,
    2: snappy_streams,
    3: lz4_streams,
    4: zstd_streams,
}


def lz4_frame(
    data: bytes,
    *,
    flags: int = 0,
    block_descriptor: int = 0x40,
    block_bytes: int = 64 * 1024,
    compress: bool = True,
    damage_block_checksum: bool = False,
    checksum_over_magic: bool = False,
) -> bytes:
    """A frame of independent blocks, whose flags are the usual ones plus `flags`."""
    flag = VERSION_1 + INDEPENDENT + flags
    descriptor = bytes([flag, block_descriptor])
    if flags > 0 and flags & CONTENT_SIZE:
        descriptor += struct.pack("<Q", len(data))
    if flags > 0 and flags & DICTIONARY:
        descriptor += struct.pack("<I", 7)
    checked = LZ4_MAGIC + descriptor if checksum_over_magic else descriptor
    out = LZ4_MAGIC + descriptor + bytes([xxhash.xxh32_intdigest(checked) >> 8 & 0xFF])
    for start in range(0, len(data), block_bytes):
        content = data[start : start + block_bytes]
        block = lz4_block(content) if compress else struct.pack("<I", len(content) | LZ4_STORED) + content
        out += block
        if flags > 0 and flags & BLOCK_CHECKSUM:
            out += struct.pack("<I", xxhash.xxh32_intdigest(block[4:]) ^ damage_block_checksum)
    out += bytes(4)
    return out + struct.pack("<I", xxhash.xxh32_intdigest(data)) if flags > 0 and flags & CONTENT_CHECKSUM else out


def zstd_frame(blocks: list[tuple[int, bytes, int]], checksum_of: bytes | None = None) -> bytes:
    """A frame of blocks `(type, content, regenerated size)` without content size, window 2 MiB."""
    out = ZSTD_MAGIC + (b"\x00" if checksum_of is None else b"\x04") + b"\x58"
    for number, (kind, content, size) in enumerate(blocks):
        header = size << 3 | kind << 1 | (number == len(blocks) - 1)
        out += struct.pack("<I", header)[:3] + content
    return out if checksum_of is None else out + struct.pack("<Q", xxhash.xxh64_intdigest(checksum_of))[:4]


def _gzip(data: bytes, level: int = 6) -> bytes:
    deflate = zlib.compressobj(level, wbits=31)
    return deflate.compress(data) + deflate.flush()


def _gzip_with_fields(plain: bytes) -> bytes:
    header = plain[:3] + bytes([0x02 | 0x04 | 0x08 | 0x10]) + plain[4:10]
    header += struct.pack("<H", 4) + b"EXTR" + b"name\x00" + b"comment\x00"
    return header + struct.pack("<H", zlib.crc32(header) & 0xFFFF) + plain[10:]
