"""Faults within records, under a checksum that is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tests.planted.batches import is_timed_by_its_producer
from tests.planted.planter import Planted, Planter, Suits, at_batch, register
from tests.planted.segment import RECORDS, Segment
from tests.support.encoder import Rec, compressed, record_bytes, varint

RULE = "log-records"
Change = Callable[[list[Rec], int], list[Rec] | bytes]  # of the records of a batch, one of which is chosen


def is_compressed(segment: Segment, row: int) -> bool:
    return segment.is_data(row) and segment.codec(row) > 0


def has_several(segment: Segment, row: int) -> bool:
    return segment.is_data(row) and segment.get(row, "record_count") > 1


def records(name: str, change: Change, suits: Suits = Segment.is_data) -> None:
    """Register a fault that writes other records in the place of a batch's, or other bytes in the place of those."""

    def plant(planter: Planter) -> Planted:
        segment, row = planter.batch(suits)
        before = segment.records(row)
        after = change(before, planter.dice.below(len(before)))
        segment.write_stream(row, after if isinstance(after, bytes) else joined(after))
        return at_batch(segment, row)

    register(name, plant, [RULE], ["offsets-lost"])


def joined(found: list[Rec]) -> bytes:
    return b"".join(map(record_bytes, found))


def one(name: str, make: Callable[[Rec], bytes]) -> None:
    """Register a fault that writes one record otherwise."""
    records(name, lambda found, number: joined(found[:number]) + make(found[number]) + joined(found[number + 1 :]))


def other(change: Callable[[Rec], Rec]) -> Change:
    return lambda found, number: [*found[:number], change(found[number]), *found[number + 1 :]]


def body(
    record: Rec, *, key: bytes | None = None, value: bytes | None = None, headers: bytes | None = None, end: bytes = b""
) -> bytes:
    """A record whose fields are other bytes, their sizes with them."""
    head = bytes([record.attributes]) + varint(record.timestamp_delta) + varint(record.offset_delta)
    key = nullable(record.key) if key is None else key
    value = nullable(record.value) if value is None else value
    if headers is None:
        pairs = (varint(len(name)) + name + nullable(content) for name, content in record.headers)
        headers = varint(len(record.headers)) + b"".join(pairs)
    inside = head + key + value + headers + end
    return varint(len(inside)) + inside


def nullable(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


one("record longer than its batch", lambda record: varint(len(record_bytes(record)) + 9000) + record_bytes(record)[1:])
one("record shorter than it is", lambda record: varint(2) + record_bytes(record)[1:])
one("record of no bytes", lambda record: varint(0))
one("record of a size below zero", lambda record: varint(-5) + record_bytes(record)[1:])
one("record whose size does not end", lambda record: b"\xff" * 6 + record_bytes(record))
one("record with bytes left", lambda record: body(record, end=b"left"))
one("key beyond its record", lambda record: body(record, key=varint(1000)))
one("key of a size below -1", lambda record: body(record, key=varint(-2)))
one("value beyond its record", lambda record: body(record, value=varint(5000)))
one("value of a size below -1", lambda record: body(record, value=varint(-7)))
one("headers fewer than none", lambda record: body(record, headers=varint(-1)))
one("headers more than there are", lambda record: body(record, headers=varint(900)))
one("header whose key is null", lambda record: body(record, headers=varint(1) + varint(-1) + varint(-1)))
one("header whose key is beyond", lambda record: body(record, headers=varint(1) + varint(70) + b"x"))
one("header whose value is beyond", lambda record: body(record, headers=varint(1) + varint(1) + b"x" + varint(99)))
records("last record missing", lambda found, number: found[:-1])
records("record twice", lambda found, number: [*found[: number + 1], *found[number:]])
records("bytes behind the records", lambda found, number: joined(found) + b"\x00more")
records("no bytes at all", lambda found, number: b"")
records("offset raised", other(lambda record: replace(record, offset_delta=record.offset_delta + 1000)))
records("offset below the batch", other(lambda record: replace(record, offset_delta=-3)))
records(
    "offset twice",
    lambda found, number: [*found[:-1], replace(found[-1], offset_delta=found[-2].offset_delta)],
    has_several,
)
records("records out of order", lambda found, number: found[::-1], has_several)
records(
    "timestamp above the largest",
    other(lambda record: replace(record, timestamp_delta=1 << 40)),
    is_timed_by_its_producer,
)
records(
    "largest timestamp of no record",
    lambda found, number: [replace(record, timestamp_delta=record.timestamp_delta - 1000) for record in found],
    is_timed_by_its_producer,
)


def stream(name: str, make: Callable[[Planter, bytes, int], bytes]) -> None:
    """Register a fault that changes the compressed bytes of a batch."""

    def plant(planter: Planter) -> Planted:
        segment, row = planter.batch(is_compressed)
        segment.write_payload(row, make(planter, bytes(segment.batches[row][RECORDS:]), segment.codec(row)))
        return at_batch(segment, row)

    register(f"stream {name}", plant, [RULE])


stream("cut", lambda planter, payload, codec: payload[: planter.dice.between(0, len(payload) * 3 // 4)])
stream("of noise", lambda planter, payload, codec: planter.dice.take(len(payload))[: len(payload)])
stream("of no bytes", lambda planter, payload, codec: b"")
stream("of nothing", lambda planter, payload, codec: compressed(codec, b""))
