"""Faults of batches: fields of headers, order, bytes between and behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tests.planted.planter import (
    OF_GROUPS,
    OF_OFFSETS,
    OF_PRODUCERS,
    Planted,
    Planter,
    Suits,
    at_batch,
    in_segment,
    kind,
    register,
)
from tests.planted.segment import FIELDS, RECORDS, Segment
from tests.support.encoder import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL

DAMAGE = ("log-crc", "log-length", "log-tail")
OUT_OF_ORDER = ("log-offset-order", "log-offset-range", "offsets-lost")
ALL = OF_OFFSETS | OF_PRODUCERS | OF_GROUPS
OF_TAILS = {"checkpoint-offset", *OF_GROUPS}
SUFFIXES = (".log", ".index", ".timeindex", ".txnindex")


def is_any(segment: Segment, row: int) -> bool:
    return True


def is_inner(segment: Segment, row: int) -> bool:
    return 0 < row < len(segment.batches) - 1


def is_plain(segment: Segment, row: int) -> bool:
    return segment.is_data(row) and segment.get(row, "producer_id") < 0


def is_timed_by_its_producer(segment: Segment, row: int) -> bool:
    return segment.is_data(row) and not segment.get(row, "attributes") & LOG_APPEND_TIME


def follows_on_its_producer(segment: Segment, row: int) -> bool:
    return segment.is_producers(row) and segment.get(row, "base_sequence") > 0


def is_never_cleaned(segment: Segment, row: int) -> bool:
    return segment.is_data(row) and segment.log.parent.name != "kept-0"


def is_only_record_of_marker(segment: Segment, row: int) -> bool:
    return segment.is_marker(row) and segment.get(row, "record_count") == 1


def is_ended(segment: Segment, row: int) -> bool:
    """Data of a transaction whose marker is the next batch of its producer."""
    rows = range(row + 1, len(segment.batches))
    behind = (one for one in rows if segment.get(one, "producer_id") == segment.get(row, "producer_id"))
    return segment.is_transactional_data(row) and segment.is_marker(next(behind, row))


def header(
    field: str,
    changes: dict[str, Callable[[int], int]],
    *rules: str,
    also: Iterable[str] = (),
    suits: Suits = is_any,
    keeps_crc: bool = False,
    is_at_batch: bool = True,
) -> None:
    """Register faults of one field."""
    for word, change in changes.items():

        def plant(planter: Planter, change: Callable[[int], int] = change) -> Planted:
            segment, row = planter.batch(suits)
            offset = segment.get(row, "base_offset")
            segment.put(row, field, change(segment.get(row, field)), keeps_crc=keeps_crc)
            segment.save()
            return Planted(segment.log.parent.name, offset if is_at_batch else None)

        register(f"{field} {word}".replace("_", " "), plant, rules, also)


def to(*values: int) -> dict[str, Callable[[int], int]]:
    return {f"is {value}": lambda old, value=value: value for value in values}


def by(*values: int) -> dict[str, Callable[[int], int]]:
    return {f"is {value:+} off": lambda old, value=value: old + value for value in values}


header("length", to(0, -1, 5, 13, 1 << 30), *DAMAGE, also=OF_TAILS, keeps_crc=True)
header("length", by(1, -1, 40), *DAMAGE, keeps_crc=True, suits=is_inner)
header("magic", to(3, 127), "log-magic", *DAMAGE, also=ALL)
header("magic", to(-1), "log-magic", *DAMAGE, also=OF_TAILS, keeps_crc=True)
header("record_count", to(-1, 1 << 20, -(2**31)), "log-record-count", also=OF_PRODUCERS, suits=Segment.is_data)
header("record_count", by(1), "log-record-count", "log-records", also=OF_PRODUCERS, suits=Segment.is_data)
header("record_count", to(0), "log-records", also={"offsets-lost", *OF_PRODUCERS}, suits=Segment.is_data)
header(
    "last_offset_delta",
    to(-1, -5, 1 << 30) | by(1, 2),
    *(*OUT_OF_ORDER, "log-records"),
    also=ALL,
    suits=is_plain,
    is_at_batch=False,
)
header("leader_epoch", to(7, 1000), "leader-epochs", "log-leader-epoch", keeps_crc=True)
header("leader_epoch", to(-1, -5), "log-leader-epoch", keeps_crc=True)
header(
    "max_timestamp",
    by(-100_000, -1, 1, 1 << 40),
    "log-records",
    also=OF_OFFSETS | OF_PRODUCERS,
    suits=is_timed_by_its_producer,
)
header("base_timestamp", by(-1, 1, 3_600_000), "log-records", also=OF_OFFSETS, suits=is_timed_by_its_producer)
header(
    "base_sequence",
    by(-1, 1, 5),
    "sequence-gap",
    "sequence-duplicate",
    also=OF_PRODUCERS,
    suits=follows_on_its_producer,
)
header(
    "producer_id",
    to(4242),
    *("snapshot-state", "sequence-gap", "transaction-hanging"),
    also=OF_PRODUCERS,
    suits=follows_on_its_producer,
    is_at_batch=False,
)
OF_EPOCHS = OF_PRODUCERS | {"producer-epoch-back"}
header("attributes", by(0x80, 0x4000), "log-header", suits=Segment.is_data)
header("attributes", {"with a horizon": lambda old: old | 0x40}, "log-delete-horizon", suits=is_never_cleaned)
header("base_sequence", to(-1, -5), "log-header", also=OF_PRODUCERS, suits=Segment.is_producers)
header("base_sequence", {"of a marker": lambda old: 5}, "log-header", suits=is_only_record_of_marker)
header("producer_id", to(-2), "log-header", also=OF_PRODUCERS, suits=Segment.is_producers)
header("producer_id", to(-1), "log-header", also=OF_PRODUCERS, suits=Segment.is_transactional_data)
header("producer_epoch", to(-1), "log-header", also=OF_EPOCHS, suits=Segment.is_producers)
header("producer_epoch", by(1000), "producer-epoch-back", also=OF_PRODUCERS, suits=is_ended, is_at_batch=False)


@kind("log-crc", also=OF_TAILS)
def bit_of_a_record_flipped(planter: Planter) -> Planted:
    segment, row = planter.batch(lambda segment, row: len(segment.batches[row]) > RECORDS)
    segment.batches[row][planter.dice.between(RECORDS, len(segment.batches[row]) - 1)] ^= 1 << planter.dice.below(8)
    return at_batch(segment, row)


@kind("log-crc", also=OF_TAILS)
def bit_of_a_header_flipped(planter: Planter) -> Planted:
    segment, row = planter.batch()
    segment.batches[row][planter.dice.between(FIELDS["attributes"][0], RECORDS - 1)] ^= 1 << planter.dice.below(8)
    return at_batch(segment, row)


@kind("log-crc", also=OF_TAILS)
def checksum_wrong(planter: Planter) -> Planted:
    segment, row = planter.batch()
    segment.put(row, "crc", segment.get(row, "crc") ^ 1 << planter.dice.below(32), keeps_crc=True)
    return at_batch(segment, row)


@kind("log-crc", also=OF_TAILS)
def sector_of_zeros(planter: Planter) -> Planted:
    segment, row = planter.batch(lambda segment, row: len(segment.batches[row]) > RECORDS + 10)
    batch = segment.batches[row]
    batch[RECORDS - 20 :] = bytes(len(batch) - RECORDS + 20)
    return at_batch(segment, row)


def other_codec(codec: int, *rules: str) -> None:
    def plant(planter: Planter) -> Planted:
        segment, row = planter.batch(lambda segment, row: segment.is_data(row) and segment.codec(row) != codec)
        segment.put(row, "attributes", segment.get(row, "attributes") & ~7 | codec)
        return at_batch(segment, row)

    register(f"codec said to be {codec}", plant, rules)


for number in range(8):
    other_codec(number, "log-codec" if number > 4 else "log-records")


def flagged(name: str, flag: int, suits: Suits, *rules: str) -> None:
    def plant(planter: Planter) -> Planted:
        segment, row = planter.batch(suits)
        segment.put(row, "attributes", segment.get(row, "attributes") ^ flag)
        return in_segment(segment)

    register(name, plant, rules, OF_PRODUCERS | {"offsets-lost"})


def is_idempotent(segment: Segment, row: int) -> bool:
    return segment.is_producers(row) and not segment.is_transactional_data(row)


def is_behind_its_producer(segment: Segment, row: int) -> bool:
    """Data of a transaction of a producer that wrote in one before, in this segment."""
    rows = range(row)
    is_known = any(segment.get(one, "producer_id") == segment.get(row, "producer_id") for one in rows)
    return segment.is_transactional_data(row) and is_known


OF_TRANSACTIONS = ("transaction-hanging", "snapshot-state", "transaction-index", "producer-outside", "log-marker")
flagged("idempotent batch made transactional", TRANSACTIONAL, is_idempotent, *OF_TRANSACTIONS)
flagged("batch left out of its transaction", TRANSACTIONAL, is_behind_its_producer, *OF_TRANSACTIONS)
flagged("transactional batch made control", CONTROL, Segment.is_transactional_data, "log-marker")
flagged("plain batch made control", CONTROL, is_plain, "log-marker")


@kind("log-offset-order", also=ALL)
def batch_twice(planter: Planter) -> Planted:
    segment, row = planter.batch(is_inner)
    segment.batches.insert(row + 1, bytearray(segment.batches[row]))
    return at_batch(segment, row)


@kind("log-offset-order", also=ALL)
def batches_swapped(planter: Planter) -> Planted:
    segment, row = planter.batch(
        lambda segment, row: row + 1 < len(segment.batches) and is_plain(segment, row) and is_plain(segment, row + 1)
    )
    segment.batches[row : row + 2] = segment.batches[row + 1], segment.batches[row]
    return in_segment(segment)


def cut_out_of_internal(topic: str) -> None:
    """Register the loss of a batch of a coordinator, which a broker that is alone never had cleaned."""

    def plant(planter: Planter) -> Planted:
        segment, row = planter.batch(lambda segment, row: is_inner(segment, row) and segment.is_data(row), topic)
        offset = segment.get(row, "base_offset")
        del segment.batches[row]
        segment.save()
        return Planted(segment.log.parent.name, offset)

    register(f"batch of {topic} cut out", plant, ["offsets-lost"], ALL | {"coordinator-state"})


for topic in ("__transaction_state", "__consumer_offsets", "__share_group_state"):
    cut_out_of_internal(topic)


@kind("metadata-behind", also=OF_PRODUCERS)
def producer_of_another_cluster(planter: Planter) -> Planted:
    segment, row = planter.batch(is_plain)
    for field, value in {"producer_id": 1 << 40, "producer_epoch": 0, "base_sequence": 0}.items():
        segment.put(row, field, value)
    return in_segment(segment)


@kind("metadata-behind")
def leader_epochs_of_another_cluster(planter: Planter) -> Planted:
    directory = planter.partition()
    for segment in map(Segment, sorted(directory.glob("*.log"))):
        for row in range(len(segment.batches)):
            segment.put(row, "leader_epoch", segment.get(row, "leader_epoch") + 9, keeps_crc=True)
        segment.save()
    checkpoint = directory / "leader-epoch-checkpoint"
    head, entries = checkpoint.read_text().splitlines()[:2], checkpoint.read_text().splitlines()[2:]
    raised = [f"{int(epoch) + 9} {start}" for epoch, start in map(str.split, entries)]
    checkpoint.write_text("\n".join([*head, *raised, ""]))
    return Planted(directory.name)


@kind("offsets-lost", also=ALL)
def batch_cut_out(planter: Planter) -> Planted:
    segment, row = planter.batch(lambda segment, row: is_inner(segment, row) and not segment.is_marker(row))
    offset = segment.get(row, "base_offset")
    del segment.batches[row]
    segment.save()
    return Planted(segment.log.parent.name, offset)


def inserted(name: str, content: Callable[[Planter], bytes]) -> None:
    def plant(planter: Planter) -> Planted:
        segment, row = planter.batch(is_inner)
        segment.batches[row][:0] = content(planter)
        return in_segment(segment)

    register(f"{name} between batches", plant, DAMAGE)

    def plant_behind(planter: Planter) -> Planted:
        segment, _ = planter.batch()
        segment.tail = content(planter)
        return in_segment(segment)

    register(f"{name} behind the last batch", plant_behind, DAMAGE)


inserted("zeros", lambda planter: bytes(planter.dice.choose((1, 61, 512, 5000))))
inserted("noise", lambda planter: planter.dice.take(planter.dice.choose((1, 61, 512))))


@kind(*DAMAGE, also=ALL)
def last_batch_torn(planter: Planter) -> Planted:
    segment, row = planter.batch(lambda segment, row: row == len(segment.batches) - 1)
    del segment.batches[row][planter.dice.between(1, len(segment.batches[row]) - 1) :]
    return in_segment(segment)


header("base_offset", by(1, 5, 1000), *OUT_OF_ORDER, also=ALL, keeps_crc=True, suits=is_plain, is_at_batch=False)
header("base_offset", by(-1), *OUT_OF_ORDER, also=ALL, keeps_crc=True, is_at_batch=False, suits=is_inner)
header("base_offset", to(-5), *OUT_OF_ORDER, also=ALL, keeps_crc=True, is_at_batch=False, suits=is_plain)


def segment_gone(name: str, place: slice, *rules: str) -> None:
    def plant(planter: Planter) -> Planted:
        logs = [sorted(path.glob("*.log")) for path in planter.partitions()]
        path = planter.one_of(log for some in logs if len(some) > 2 for log in some[place] if log.stat().st_size)
        for suffix in SUFFIXES:
            path.with_suffix(suffix).unlink(missing_ok=True)
        return Planted(path.parent.name)

    register(f"{name} segment gone", plant, rules, ALL)


segment_gone("first", slice(0, 1), "offsets-lost")
segment_gone("middle", slice(1, -1), "offsets-lost")
segment_gone("last", slice(-1, None), "checkpoint-offset", "snapshot-state")


@kind(*OUT_OF_ORDER, also=ALL | {"index-zeros", "log-tail"})
def segment_renamed(planter: Planter) -> Planted:
    path = planter.one_of(planter.logs())
    for suffix in SUFFIXES:
        old = path.with_suffix(suffix)
        if old.exists():
            old.rename(path.with_name(f"{int(path.stem) + 2:020d}{suffix}"))
    return Planted(path.parent.name)


@kind(*OUT_OF_ORDER, also=ALL)
def segment_of_another_partition(planter: Planter) -> Planted:
    target = planter.one_of(planter.logs())
    others = [log for log in planter.logs() if log.parent != target.parent and log.name != target.name]
    target.write_bytes(planter.one_of(others).read_bytes())
    return Planted(target.parent.name)
