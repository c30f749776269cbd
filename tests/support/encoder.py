"""Writes v2 record batches field by field, right ones and (where asked) slightly wrong ones.

Codecs come from `zlib` and `cramjam`; the framing of LZ4 and snappy blocks, as Kafka's, is done here.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import cramjam

from tests.naive.checksum import crc32c
from tests.support.dice import Dice

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 0x08, 0x10, 0x20, 0x40
SNAPPY_HEADER = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
SNAPPY_BLOCK_BYTES = 32 * 1024
LZ4_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"  # independent blocks of at most 64 KiB, no checksums
LZ4_BLOCK_BYTES = 64 * 1024
LZ4_STORED = 0x80000000
LZ4_END = bytes(4)
SOME_TIME = 1_700_000_000_000


@dataclass(frozen=True)
class Rec:
    """One record, by its deltas to the batch."""

    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[tuple[bytes, bytes | None]] = ()
    offset_delta: int = 0
    timestamp_delta: int = 0
    attributes: int = 0


@dataclass(frozen=True)
class Batch:
    """One batch; `records` may be none, as compaction leaves it."""

    base_offset: int
    records: Sequence[Rec] = field(default_factory=list)
    last_offset_delta: int = 0
    codec: int = NONE
    flags: int = 0
    base_timestamp: int = SOME_TIME
    max_timestamp: int = SOME_TIME
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    leader_epoch: int = 0
    stream: bytes | None = None  # in place of the compressed records

    def to_bytes(self) -> bytes:
        records = self.stream
        if records is None:
            records = compressed(self.codec, b"".join(record_bytes(record) for record in self.records))
        after_crc = struct.pack(
            ">hiqqqhii",
            self.codec | self.flags,
            self.last_offset_delta,
            self.base_timestamp,
            self.max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            len(self.records),
        )
        checked = after_crc + records
        head = struct.pack(">qiibI", self.base_offset, 9 + len(checked), self.leader_epoch, 2, crc32c(checked))
        return head + checked


def varint(number: int) -> bytes:
    """Zigzag and seven bits a byte, up to 64 bits.

    >>> varint(0), varint(-1), varint(64)
    (b'\\x00', b'\\x01', b'\\x80\\x01')
    """
    rest = ((number << 1) ^ (number >> 63)) & (2**64 - 1)
    out = bytearray()
    while rest >= 0x80:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def record_bytes(record: Rec) -> bytes:
    body = bytes([record.attributes & 0xFF]) + varint(record.timestamp_delta) + varint(record.offset_delta)
    body += _nullable(record.key) + _nullable(record.value) + varint(len(record.headers))
    for name, value in record.headers:
        body += varint(len(name)) + name + _nullable(value)
    return varint(len(body)) + body


def compressed(codec: int, data: bytes) -> bytes:
    match codec:
        case 1:
            deflate = zlib.compressobj(wbits=31)
            return deflate.compress(data) + deflate.flush()
        case 2:
            starts = range(0, len(data), SNAPPY_BLOCK_BYTES)
            blocks = [bytes(cramjam.snappy.compress_raw(data[at : at + SNAPPY_BLOCK_BYTES])) for at in starts]
            return SNAPPY_HEADER + b"".join(struct.pack(">i", len(block)) + block for block in blocks)
        case 3:
            starts = range(0, len(data), LZ4_BLOCK_BYTES)
            return LZ4_HEADER + b"".join(lz4_block(data[at : at + LZ4_BLOCK_BYTES]) for at in starts) + LZ4_END
        case 4:
            return bytes(cramjam.zstd.compress(data))
        case _:
            return data


def lz4_block(data: bytes) -> bytes:
    block = bytes(cramjam.lz4.compress_block(data, store_size=False))
    if len(block) < len(data):
        return struct.pack("<I", len(block)) + block
    return struct.pack("<I", len(data) | LZ4_STORED) + data


def random_segment(seed: str) -> bytes:
    """Some batches as any producer, coordinator or cleaner may have left them, with odd values in every field."""
    dice = Dice(seed)
    offset = dice.choose((0, 0, 0, 5, 2**31, 2**40))
    batches = []
    for _ in range(dice.between(1, 6)):
        batch = _random_batch(dice, offset)
        batches.append(batch.to_bytes())
        offset = batch.base_offset + batch.last_offset_delta + 1 + dice.choose((0, 0, 0, 3))
    return b"".join(batches)


def _random_batch(dice: Dice, offset: int) -> Batch:
    control = dice.chance(15)
    records, delta = [], 0
    for _ in range(dice.choose((0, 1, 1, 2, 5, 9, 40))):
        records.append(_random_control(dice, delta) if control else _random_record(dice, delta))
        delta += dice.choose((1, 1, 1, 2, 7))
    numbered = dice.chance(60)
    return Batch(
        base_offset=offset,
        records=records,
        last_offset_delta=max(delta - 1, 0) + dice.choose((0, 0, 4)),
        codec=NONE if control else dice.below(5),
        flags=_random_flags(dice, control),
        base_timestamp=dice.choose((SOME_TIME, SOME_TIME, 0, -1, 2**62)),
        max_timestamp=dice.choose((SOME_TIME, SOME_TIME + 100, 0, -1)),
        producer_id=dice.choose((0, 7, 2**62)) if numbered else -1,
        producer_epoch=dice.choose((0, 3, 32767)) if numbered else -1,
        base_sequence=dice.choose((0, 10, 2**31 - 1, 2**31 - 3)) if numbered and not control else -1,
        leader_epoch=dice.choose((0, 1, 2**31 - 1, -1)),
    )


def _random_flags(dice: Dice, control: bool) -> int:
    chances = {LOG_APPEND_TIME: 15, TRANSACTIONAL: 40, DELETE_HORIZON: 15}
    return sum(flag for flag, percent in chances.items() if dice.chance(percent)) | (CONTROL if control else 0)


def _random_record(dice: Dice, delta: int) -> Rec:
    return Rec(
        key=_random_bytes(dice),
        value=_random_bytes(dice),
        headers=[(_random_bytes(dice) or b"h", _random_bytes(dice)) for _ in range(dice.choose((0, 0, 0, 1, 3)))],
        offset_delta=delta,
        timestamp_delta=dice.choose((0, 1, 5, -5, 2**40)),
        attributes=dice.choose((0, 0, 0, 1, 255)),
    )


def _random_control(dice: Dice, delta: int) -> Rec:
    key = struct.pack(">hh", dice.choose((0, 0, 0, 1)), dice.choose((0, 1, 1, 0, 7, 100)))
    value = struct.pack(">hi", dice.choose((0, 0, 1)), dice.choose((0, 5, -1)))
    return Rec(key=key, value=value + dice.choose((b"", b"more")), offset_delta=delta)


def _random_bytes(dice: Dice) -> bytes | None:
    texts = (b"text", "Grüße 世界 😀".encode(), b"a\nb\tc\r\x00\x1b[0m", b'{"a": [1, "\\""]}', b"\xff\xfe\xc3(\xe2\x82")
    match dice.below(8):
        case 0:
            return None
        case 1:
            return b""
        case 2:
            return dice.take(dice.between(1, 20))
        case 3:
            return b"long " * dice.choose((20, 20, 20, 100, 100, 100, 2000, 15_000))
        case _:
            return dice.choose(texts)


def _nullable(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data
