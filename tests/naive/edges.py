"""Batches with one thing at its limit or beyond it: offsets that wrap, lengths that lie, counts that do not fit."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import replace

from tests.support.encoder import (
    CONTROL,
    DELETE_HORIZON,
    LOG_APPEND_TIME,
    LZ4,
    NONE,
    TRANSACTIONAL,
    Batch,
    Rec,
    compressed,
    record_bytes,
    varint,
)

MAX_LONG, MIN_LONG, MAX_INT, MIN_INT = 2**63 - 1, -(2**63), 2**31 - 1, -(2**31)
COUNT_AT, MAGIC_AT = 57, 16
RECORDS = [Rec(b"key", b"value", [(b"name", b"content")], offset_delta=i) for i in range(3)]
GOOD = Batch(0, RECORDS, last_offset_delta=2)


def edge_segments() -> dict[str, bytes]:
    """Name of the edge to the content of a log: a good batch, the odd one and, mostly, another good one."""
    odd = dict(_odd_batches())
    tail = Batch(10, RECORDS[:1]).to_bytes()
    segments = {name: GOOD.to_bytes() + content + tail for name, content in odd.items()}
    at_the_end = {f"last-{name}": GOOD.to_bytes() + content for name, content in odd.items() if "short" in name}
    return segments | at_the_end


def _odd_batches() -> Iterator[tuple[str, bytes]]:
    yield from _header_edges()
    for codec, codec_name in ((NONE, "none"), (LZ4, "lz4")):
        for name, records in _record_edges():
            stream = compressed(codec, records)
            batch = Batch(3, RECORDS, last_offset_delta=2, codec=codec, stream=stream)
            yield f"{name}-{codec_name}", batch.to_bytes()
        for count in (MIN_INT, -1, 0, 1, 2, 4, 1000, MAX_INT):
            whole = bytearray(Batch(3, RECORDS, last_offset_delta=2, codec=codec).to_bytes())
            struct.pack_into(">i", whole, COUNT_AT, count)
            yield f"count-{count}-{codec_name}", bytes(whole)


def _header_edges() -> Iterator[tuple[str, bytes]]:
    batches = {
        "offset-wraps": replace(GOOD, base_offset=MAX_LONG - 1),
        "offset-least": replace(GOOD, base_offset=MIN_LONG),
        "offset-negative": replace(GOOD, base_offset=-2),
        "last-offset-delta-most": replace(GOOD, last_offset_delta=MAX_INT),
        "last-offset-delta-negative": replace(GOOD, last_offset_delta=-7),
        "last-offset-wraps": replace(GOOD, base_offset=MAX_LONG, last_offset_delta=5),
        "sequence-wraps": replace(GOOD, producer_id=1, producer_epoch=0, base_sequence=MAX_INT - 1),
        "sequence-negative": replace(GOOD, producer_id=1, producer_epoch=-3, base_sequence=-5),
        "sequence-least": replace(GOOD, producer_id=MIN_LONG, producer_epoch=-32768, base_sequence=MIN_INT),
        "sequence-delta-most": replace(GOOD, producer_id=1, base_sequence=5, last_offset_delta=MAX_INT),
        "timestamp-wraps": replace(GOOD, base_timestamp=MAX_LONG, records=[Rec(timestamp_delta=5)]),
        "timestamp-least": replace(GOOD, base_timestamp=MIN_LONG, max_timestamp=MIN_LONG),
        "timestamp-delta-least": replace(GOOD, records=[Rec(timestamp_delta=MIN_LONG)]),
        "leader-epoch-negative": replace(GOOD, leader_epoch=-7),
        "delete-horizon-least": replace(GOOD, flags=DELETE_HORIZON, base_timestamp=MIN_LONG),
        "append-time-least": replace(GOOD, flags=LOG_APPEND_TIME, max_timestamp=MIN_LONG),
        "control-of-plain-records": replace(GOOD, flags=CONTROL),
        "high-attributes": replace(GOOD, flags=0x7F80),
        "sign-of-attributes": replace(GOOD, flags=-0x8000),
    }
    for flags in (0, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON, CONTROL | TRANSACTIONAL):
        batches[f"no-records-{flags:02x}"] = Batch(3, last_offset_delta=2, flags=flags, producer_id=5, base_sequence=9)
    yield from ((name, batch.to_bytes()) for name, batch in batches.items())
    for codec in range(1, 8):
        yield f"no-records-codec-{codec}", Batch(3, codec=codec, stream=b"").to_bytes()
    for length in (13, 14, 17, 22, 30, 48, 49):
        for magic in (0, 1, 2):
            yield f"short-{length}-magic-{magic}", struct.pack(">qiib", 3, length, 0, magic) + bytes(length - 5)
    for magic in (3, 127, 128, 255):
        whole = bytearray(GOOD.to_bytes())
        whole[MAGIC_AT] = magic
        yield f"magic-{magic}", bytes(whole)


def _record_edges() -> Iterator[tuple[str, bytes]]:
    """The records of a batch of three, the second of which is odd."""
    body = b"\x00" + varint(0) + varint(1)
    bodies = {
        "no-body": b"",
        "attributes-only": b"\x00",
        "offset-delta-too-long": b"\x00" + varint(0) + varint(2**40) + b"\x01\x01\x00",
        "timestamp-delta-too-long": b"\x00" + b"\xff" * 11 + b"\x00\x01\x01\x00",
        "timestamp-delta-ten-bytes": b"\x00" + b"\xff" * 9 + b"\x01\x02\x01\x01\x00",
        "offset-delta-negative": b"\x00" + varint(0) + varint(-3) + b"\x01\x01\x00",
        "key-length-minus-2": body + varint(-2) + b"\x01\x00",
        "key-beyond-body": body + varint(100) + b"k",
        "key-most": body + varint(MAX_INT) + b"k",
        "value-length-least": body + b"\x01" + varint(MIN_INT) + b"\x00",
        "value-beyond-body": body + b"\x01" + varint(7) + b"v",
        "value-too-long-varint": body + b"\x01" + b"\xff" * 6,
        "no-header-count": body + b"\x01\x01",
        "header-count-negative": body + b"\x01\x01" + varint(-1),
        "header-count-too-many": body + b"\x01\x01" + varint(3) + varint(1) + b"h\x01",
        "header-count-most": body + b"\x01\x01" + varint(MAX_INT),
        "header-key-negative": body + b"\x01\x01" + varint(1) + varint(-1) + b"\x01",
        "header-key-beyond-body": body + b"\x01\x01" + varint(1) + varint(9) + b"h",
        "header-key-not-utf-8": body + b"\x01\x01" + varint(1) + varint(4) + b"\xff\xc3(\xed\x01",
        "header-value-minus-2": body + b"\x01\x01" + varint(1) + varint(1) + b"h" + varint(-2),
        "header-value-beyond-body": body + b"\x01\x01" + varint(1) + varint(1) + b"h" + varint(50) + b"x",
        "bytes-left-in-record": body + b"\x01\x01\x00" + b"left over",
    }
    first, second, third = map(record_bytes, RECORDS)
    for name, odd in bodies.items():
        yield name, first + varint(len(odd)) + odd + third
    yield "record-length-zero", first + varint(0) + third
    yield "record-length-negative", first + varint(-1) + second[1:] + third
    yield "record-length-most", first + varint(MAX_INT) + second[1:] + third
    yield "record-length-too-long-varint", first + b"\xff" * 5 + second + third
    yield "record-length-one-more", first + varint(len(second)) + second[1:] + third
    yield "record-length-one-less", first + varint(len(second) - 2) + second[1:] + third
    yield "bytes-after-the-last", first + second + third + b"\x00"
    yield "cut-in-the-last", first + second + third[:-1]
    yield "cut-in-a-length", first + second + b"\x80"
    yield "nothing", b""
