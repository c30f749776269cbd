"""Faults within records, under a checksum that is right."""

from __future__ import annotations

from dataclasses import replace

from tests.planted.planter import Planted, Planter, at_batch, kind
from tests.planted.segment import RECORDS, Segment
from tests.support.encoder import Rec, compressed, record_bytes, varint

ALSO = ("time-index", "time-index-end")


def edited(p: Planter, change, suits=lambda s, r: True) -> Planted:
    segment, row = p.batch(lambda s, r: s.is_data(r) and suits(s, r))
    records = segment.records(row)
    changed = change(records, p.dice.below(len(records)))
    if isinstance(changed, bytes):
        segment.write_stream(row, changed)
    else:
        segment.write_records(row, changed)
    return at_batch(segment, row)


def joined(records: list[Rec]) -> bytes:
    return b"".join(record_bytes(one) for one in records)


def with_raw(records: list[Rec], number: int, raw: bytes) -> bytes:
    return joined(records[:number]) + raw + joined(records[number + 1 :])


def body(record: Rec, *, key=None, value=None, count=None, headers=b"", attributes=b"\x00", tail=b"") -> bytes:
    """A record, field by field; lengths may lie."""
    def nullable(data):
        return varint(-1) if data is None else varint(len(data)) + data
    inside = attributes + varint(record.timestamp_delta) + varint(record.offset_delta)
    inside += nullable(record.key) if key is None else key
    inside += nullable(record.value) if value is None else value
    inside += (varint(len(record.headers)) if count is None else count)
    inside += headers if headers or count is not None else b"".join(varint(len(n)) + n + nullable(v) for n, v in record.headers)
    inside += tail
    return varint(len(inside)) + inside


def raw(name: str, make) -> None:
    def plant(p: Planter) -> Planted:
        return edited(p, lambda records, number: with_raw(records, number, make(records[number])))
    plant.__name__ = name
    kind("log-records")(plant)


raw("record_length_too_long", lambda r: varint(len(record_bytes(r)) + 100) + record_bytes(r)[1:])
raw("record_length_too_short", lambda r: varint(2) + record_bytes(r)[1:])
raw("record_length_zero", lambda r: varint(0))
raw("record_length_negative", lambda r: varint(-5) + record_bytes(r)[1:])
raw("key_beyond_record", lambda r: body(r, key=varint(1000)))
raw("key_length_below_minus_one", lambda r: body(r, key=varint(-2)))
raw("value_beyond_record", lambda r: body(r, value=varint(5000)))
raw("value_length_below_minus_one", lambda r: body(r, value=varint(-7)))
raw("header_count_negative", lambda r: body(r, count=varint(-1)))
raw("header_count_too_large", lambda r: body(r, count=varint(900)))
raw("header_key_negative", lambda r: body(r, count=varint(1), headers=varint(-1) + varint(-1)))
raw("header_key_beyond", lambda r: body(r, count=varint(1), headers=varint(70) + b"x"))
raw("header_value_beyond", lambda r: body(r, count=varint(1), headers=varint(1) + b"x" + varint(99)))
raw("header_key_not_text", lambda r: body(r, count=varint(1), headers=varint(2) + b"\xff\xfe" + varint(-1)))
raw("bytes_left_in_record", lambda r: body(r, tail=b"left"))
raw("varint_too_long", lambda r: b"\xff" * 6 + record_bytes(r))


@kind("log-records")
def last_record_missing(p: Planter) -> Planted:
    return edited(p, lambda records, number: records[:-1])


@kind("log-records", also=("offsets-lost",))
def record_twice(p: Planter) -> Planted:
    def change(records, number):
        return [*records[:number], records[number], *records[number:]]
    return edited(p, change)


@kind("log-records")
def bytes_behind_records(p: Planter) -> Planted:
    return edited(p, lambda records, number: joined(records) + b"\x00more")


@kind("log-records", "offsets-lost")
def offset_delta_raised(p: Planter) -> Planted:
    def change(records, number):
        return [*records[:number], replace(records[number], offset_delta=records[number].offset_delta + 1000), *records[number + 1:]]
    return edited(p, change)


@kind("log-records")
def offset_delta_negative(p: Planter) -> Planted:
    def change(records, number):
        return [*records[:number], replace(records[number], offset_delta=-3), *records[number + 1:]]
    return edited(p, change)


@kind("log-records")
def offset_delta_repeated(p: Planter) -> Planted:
    def change(records, number):
        records[-1] = replace(records[-1], offset_delta=records[-2].offset_delta)
        return records
    return edited(p, change, lambda s, r: s.get(r, "record_count") > 1)


@kind("log-records")
def records_out_of_order(p: Planter) -> Planted:
    return edited(p, lambda records, number: records[::-1], lambda s, r: s.get(r, "record_count") > 1)


@kind("log-records")
def timestamp_above_largest(p: Planter) -> Planted:
    def change(records, number):
        return [*records[:number], replace(records[number], timestamp_delta=1 << 40), *records[number + 1:]]
    return edited(p, change, lambda s, r: not s.get(r, "attributes") & 8)


@kind("log-records")
def largest_timestamp_is_of_no_record(p: Planter) -> Planted:
    def change(records, number):
        return [replace(one, timestamp_delta=one.timestamp_delta - 1000) for one in records]
    return edited(p, change, lambda s, r: not s.get(r, "attributes") & 8)


def is_compressed(s: Segment, r: int) -> bool:
    return s.is_data(r) and s.codec(r) > 0


@kind("log-records")
def stream_cut(p: Planter) -> Planted:
    segment, row = p.batch(is_compressed)
    payload = bytes(segment.batches[row][RECORDS:])
    segment.write_payload(row, payload[: p.dice.between(0, len(payload) - 1 - len(payload) // 4)])
    return at_batch(segment, row)


@kind("log-records")
def stream_noise(p: Planter) -> Planted:
    segment, row = p.batch(is_compressed)
    segment.write_payload(row, p.dice.take(len(segment.batches[row]) - RECORDS))
    return at_batch(segment, row)


@kind("log-records")
def stream_empty(p: Planter) -> Planted:
    segment, row = p.batch(is_compressed)
    segment.write_payload(row, b"")
    return at_batch(segment, row)


@kind("log-records")
def stream_of_nothing(p: Planter) -> Planted:
    segment, row = p.batch(is_compressed)
    segment.write_payload(row, compressed(segment.codec(row), b""))
    return at_batch(segment, row)


@kind("log-records")
def stream_of_too_few(p: Planter) -> Planted:
    return edited(p, lambda records, number: joined(records[:-1]), is_compressed)


@kind("log-records")
def no_records_at_all(p: Planter) -> Planted:
    return edited(p, lambda records, number: b"", lambda s, r: s.codec(r) == 0)
