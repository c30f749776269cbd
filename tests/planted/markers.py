"""Faults of transaction markers: changed, missing, one too many."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace

from tests.planted.planter import OF_GROUPS, OF_OFFSETS, OF_PRODUCERS, Planted, Planter, at_batch, in_segment, register
from tests.planted.segment import Segment
from tests.support.encoder import CONTROL, TRANSACTIONAL, Batch, Rec

ALSO = OF_PRODUCERS | OF_OFFSETS | OF_GROUPS | {"producer-epoch-back"}
COMMIT, ABORT = 1, 0
WORDS = {COMMIT: "commit", ABORT: "abort"}
NOBODY = 77_777


def marker_type(segment: Segment, row: int) -> int:
    """COMMIT or ABORT; -1 for what is no marker."""
    if not segment.is_marker(row) or segment.get(row, "record_count") != 1:
        return -1
    found: int = struct.unpack(">hh", segment.records(row)[0].key or b"")[1]
    return found


def ends_data(segment: Segment, row: int) -> bool:
    """Whether what its producer wrote before, in this segment, is data."""
    of_producer = (
        one for one in reversed(range(row)) if segment.get(one, "producer_id") == segment.get(row, "producer_id")
    )
    return marker_type(segment, row) >= 0 and segment.is_transactional_data(next(of_producer, row))


def changed(name: str, wanted: int, change: Callable[[Segment, int], None], *rules: str) -> None:
    """Register a fault of a marker that ends data."""

    def plant(planter: Planter) -> Planted:
        segment, row = planter.batch(
            lambda segment, row: marker_type(segment, row) == wanted and ends_data(segment, row)
        )
        change(segment, row)
        return in_segment(segment)

    register(f"{WORDS[wanted]} marker {name}", plant, rules, ALSO)


def flip(segment: Segment, row: int) -> None:
    record = segment.records(row)[0]
    segment.write_records(row, [replace(record, key=struct.pack(">hh", 0, 1 - marker_type(segment, row)))])


def cut_out(segment: Segment, row: int) -> None:
    del segment.batches[row]


def never_write(segment: Segment, row: int) -> None:
    """Put a record of no producer in its place."""
    put(segment, row, [Rec(value=b"x" * 9)])


def put(segment: Segment, row: int, records: list[Rec], flags: int = 0, producer: tuple[int, int] = (-1, -1)) -> None:
    """Write another batch at the offset of one."""
    offset, time, epoch = (segment.get(row, name) for name in ("base_offset", "max_timestamp", "leader_epoch"))
    batch = Batch(
        offset,
        records,
        flags=flags,
        base_timestamp=time,
        max_timestamp=time,
        producer_id=producer[0],
        producer_epoch=producer[1],
        leader_epoch=epoch,
    )
    segment.batches[row][:] = batch.to_bytes()


def add_to(field: str, number: int) -> Callable[[Segment, int], None]:
    return lambda segment, row: segment.put(row, field, segment.get(row, field) + number)


for wanted in WORDS:
    changed("says the other thing", wanted, flip, "marker-contradicting", "transaction-atomicity", "transaction-index")
    changed("cut out", wanted, cut_out, "offsets-lost", "checkpoint-offset")
    # an ABORT may have been an administrator's, of which no coordinator knows
    told = *("marker-missing", "transaction-hanging"), *("transaction-index", "snapshot-state")[: 2 * (wanted == ABORT)]
    changed("never written", wanted, never_write, *told)
    changed("of another producer", wanted, add_to("producer_id", NOBODY), *told)
    changed("of a later epoch", wanted, add_to("producer_epoch", 3), "marker-contradicting", *told)


def of_a_later_coordinator(planter: Planter) -> Planted:
    """The coordinator of the producer's next marker has an older epoch."""

    def is_followed(segment: Segment, row: int) -> bool:
        producer_id, later = segment.get(row, "producer_id"), range(row + 1, len(segment.batches))
        return marker_type(segment, row) >= 0 and any(
            marker_type(segment, one) >= 0 and segment.get(one, "producer_id") == producer_id for one in later
        )

    segment, row = planter.batch(is_followed)
    record = segment.records(row)[0]
    segment.write_records(row, [replace(record, value=struct.pack(">hi", 0, 99))])
    return in_segment(segment)


register("marker of a later coordinator", of_a_later_coordinator, ["marker-epoch"], ALSO)


def is_single(segment: Segment, row: int) -> bool:
    """Whether a marker has room there."""
    is_of_nobody = segment.is_data(row) and segment.get(row, "producer_id") < 0
    return is_of_nobody and segment.get(row, "last_offset_delta") == 0


def put_marker(segment: Segment, row: int, producer: tuple[int, int], kind: int) -> None:
    record = Rec(key=struct.pack(">hh", 0, kind), value=struct.pack(">hi", 0, 0))
    put(segment, row, [record], TRANSACTIONAL | CONTROL, producer)


def unexplained(kind: int) -> None:
    def plant(planter: Planter) -> Planted:
        states = Segment(planter.one_of(planter.logs("__transaction_state")))  # else nobody knows of any producer
        born_ms = states.get(0, "max_timestamp")
        segment, row = planter.batch(
            lambda segment, row: is_single(segment, row) and segment.get(row, "max_timestamp") > born_ms
        )
        put_marker(segment, row, (NOBODY, 3), kind)
        return at_batch(segment, row)

    register(f"{WORDS[kind]} marker of nobody", plant, ["marker-unexplained", "marker-contradicting"], ALSO)


def again(name: str, before: int, kind: int, *rules: str) -> None:
    """Register a marker more behind one of the same producer."""

    def plant(planter: Planter) -> Planted:
        segment, row = planter.batch(
            lambda segment, row: (
                is_single(segment, row) and any(marker_type(segment, one) == before for one in range(row))
            )
        )
        last = max(one for one in range(row) if marker_type(segment, one) == before)
        put_marker(segment, row, (segment.get(last, "producer_id"), segment.get(last, "producer_epoch")), kind)
        return in_segment(segment)

    register(name, plant, rules, ALSO)


for kind in WORDS:
    unexplained(kind)
    # behind it is the producer's next transaction, maybe: then the marker ends a part of that
    rules = "marker-doubled", "marker-contradicting", "marker-unexplained", "transaction-index"
    again(f"{WORDS[kind]} marker twice", kind, kind, *rules)
    again(f"{WORDS[kind]} marker and another", kind, 1 - kind, *rules)


def unreadable(name: str, change: Callable[[Rec], Rec]) -> None:
    def plant(planter: Planter) -> Planted:
        segment, row = planter.batch(lambda segment, row: marker_type(segment, row) >= 0)
        segment.write_records(row, [change(segment.records(row)[0])])
        return at_batch(segment, row)

    register(f"marker {name}", plant, ["log-marker"], ALSO)


def compress(planter: Planter) -> Planted:
    segment, row = planter.batch(lambda segment, row: marker_type(segment, row) >= 0)
    records = segment.records(row)
    segment.put(row, "attributes", segment.get(row, "attributes") | 1)
    segment.write_records(row, records)
    return at_batch(segment, row)


register("marker compressed", compress, ["log-header"], ALSO)
unreadable("of an unknown type", lambda record: replace(record, key=struct.pack(">hh", 0, 9)))
unreadable("with a short key", lambda record: replace(record, key=b"\x00"))
unreadable("without a key", lambda record: replace(record, key=None))
unreadable("without a value", lambda record: replace(record, value=None))
unreadable("with a short value", lambda record: replace(record, value=b"\x00\x00"))
unreadable("of a version below 0", lambda record: replace(record, value=struct.pack(">hi", -1, 0)))
