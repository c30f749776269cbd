"""Faults of batches: headers, order, bytes between them."""

from __future__ import annotations

from tests.planted.planter import Planted, Planter, at_batch, kind
from tests.planted.segment import FIELDS, RECORDS, Segment

PRODUCER_CONSEQUENCES = ("snapshot-state", "sequence-gap", "sequence-duplicate")
OFFSET_CONSEQUENCES = ("offsets-lost", "offset-index", "time-index", "time-index-end", "leader-epochs", "log-records")


def header_fault(name: str, field: str, values: tuple[int, ...], *rules: str, keeps_crc: bool = False,
                 also: tuple[str, ...] = (), is_relative: bool = False, suits=lambda s, r: True) -> None:
    """Register faults that set a field of any batch to a value, or add it."""
    for value in values:
        def plant(p: Planter, value: int = value) -> Planted:
            segment, row = p.batch(suits)
            base = segment.get(row, "base_offset")
            segment.put(row, field, segment.get(row, field) + value if is_relative else value, keeps_crc=keeps_crc)
            segment.save()
            return Planted(segment.log.parent.name, base)
        plant.__name__ = f"{name}_{value}".replace("-", "minus_")
        kind(*rules, also=also)(plant)


def is_inner(s: Segment, r: int) -> bool:
    return 0 < r < len(s.batches) - 1

def is_plain(s: Segment, r: int) -> bool:
    return s.is_data(r) and s.get(r, "producer_id") < 0

header_fault("length", "length", (0, -1, 5, 13, 1 << 30), "log-length", "log-crc", "log-tail", keeps_crc=True)
header_fault("length_off", "length", (1, -1, 40), "log-crc", "log-length", keeps_crc=True, is_relative=True, suits=is_inner)
header_fault("magic", "magic", (3, 127), "log-magic", "log-crc", "log-length", also=OFFSET_CONSEQUENCES + PRODUCER_CONSEQUENCES)
header_fault("magic_negative", "magic", (-1,), "log-magic", "log-crc", "log-length", "log-tail", keeps_crc=True)
header_fault("count", "record_count", (-1, 1 << 20, -(2**31)), "log-record-count", also=PRODUCER_CONSEQUENCES, suits=Segment.is_data)
header_fault("count_off", "record_count", (1,), "log-record-count", "log-records", also=PRODUCER_CONSEQUENCES, is_relative=True, suits=Segment.is_data)
header_fault("count_less", "record_count", (-1,), "log-records", "offsets-lost", also=PRODUCER_CONSEQUENCES, is_relative=True, suits=lambda s, r: s.get(r, "record_count") > 1)
header_fault("count_zero", "record_count", (0,), "log-records", also=PRODUCER_CONSEQUENCES, suits=Segment.is_data)
header_fault("last_delta", "last_offset_delta", (-1, -5, 1 << 30), "log-offset-order", "log-offset-range", "log-records", "offsets-lost", also=OFFSET_CONSEQUENCES + PRODUCER_CONSEQUENCES + ("log-record-count",), suits=is_plain)
header_fault("last_delta_off", "last_offset_delta", (1, 2), "log-offset-order", "offsets-lost", "log-offset-range", also=OFFSET_CONSEQUENCES + PRODUCER_CONSEQUENCES + ("checkpoint-offset",), is_relative=True, suits=is_plain)
header_fault("leader_epoch_ahead", "leader_epoch", (7, 1000), "leader-epochs", "log-leader-epoch", keeps_crc=True)
header_fault("leader_epoch_negative", "leader_epoch", (-1, -5), "leader-epochs", "log-leader-epoch", keeps_crc=True)
header_fault("max_timestamp_off", "max_timestamp", (-1, -100000), "log-records", also=("time-index", "time-index-end"), is_relative=True, suits=lambda s, r: s.is_data(r) and not s.get(r, "attributes") & 8)
header_fault("max_timestamp_above", "max_timestamp", (1, 1 << 40), "log-records", also=("time-index", "time-index-end"), is_relative=True, suits=lambda s, r: s.is_data(r) and not s.get(r, "attributes") & 8)
header_fault("base_timestamp_off", "base_timestamp", (1, -1, 3600000), "log-records", also=("time-index", "time-index-end"), is_relative=True, suits=lambda s, r: s.is_data(r) and not s.get(r, "attributes") & 8)
header_fault("producer_epoch_off", "producer_epoch", (1,), "snapshot-state", "sequence-gap", "marker-missing", "producer-epoch-back", "producer-fenced", "log-marker", "transaction-hanging", "sequence-duplicate", also=PRODUCER_CONSEQUENCES + ("marker-contradicting",), is_relative=True, suits=Segment.is_producers)
header_fault("sequence_off", "base_sequence", (1, 5, -1), "snapshot-state", "sequence-gap", "sequence-duplicate", is_relative=True, suits=lambda s, r: s.is_producers(r) and s.get(r, "base_sequence") > 0)
header_fault("producer_other", "producer_id", (4242,), "snapshot-state", "sequence-gap", "transaction-hanging", also=PRODUCER_CONSEQUENCES + ("marker-contradicting", "transaction-atomicity", "transaction-index", "log-marker", "marker-missing"), suits=lambda s, r: s.is_producers(r) and s.get(r, "base_sequence") > 0)


@kind("log-crc")
def flipped_record_bit(p: Planter) -> Planted:
    segment, row = p.batch(lambda s, r: len(s.batches[r]) > RECORDS)
    at = p.dice.between(RECORDS, len(segment.batches[row]) - 1)
    segment.batches[row][at] ^= 1 << p.dice.below(8)
    return at_batch(segment, row)


@kind("log-crc")
def flipped_header_bit(p: Planter) -> Planted:
    segment, row = p.batch()
    at = p.dice.between(FIELDS["attributes"][0], RECORDS - 1)
    segment.batches[row][at] ^= 1 << p.dice.below(8)
    return at_batch(segment, row)


@kind("log-crc")
def wrong_checksum(p: Planter) -> Planted:
    segment, row = p.batch()
    segment.put(row, "crc", segment.get(row, "crc") ^ 1 << p.dice.below(32), keeps_crc=True)
    return at_batch(segment, row)


@kind("log-crc")
def zeroed_sector(p: Planter) -> Planted:
    segment, row = p.batch(lambda s, r: len(s.batches[r]) > RECORDS + 10)
    batch = segment.batches[row]
    batch[RECORDS - 20 :] = bytes(len(batch) - RECORDS + 20)
    return at_batch(segment, row)


for codec in (5, 6, 7):
    def unknown_codec(p: Planter, codec: int = codec) -> Planted:
        segment, row = p.batch(Segment.is_data)
        segment.put(row, "attributes", segment.get(row, "attributes") & ~7 | codec)
        return at_batch(segment, row)
    unknown_codec.__name__ = f"codec_{codec}"
    kind("log-codec")(unknown_codec)

for codec in (1, 2, 3, 4):
    def wrong_codec(p: Planter, codec: int = codec) -> Planted:
        segment, row = p.batch(lambda s, r: s.is_data(r) and s.codec(r) != codec)
        segment.put(row, "attributes", segment.get(row, "attributes") & ~7 | codec)
        return at_batch(segment, row)
    wrong_codec.__name__ = f"stream_is_not_codec_{codec}"
    kind("log-records")(wrong_codec)


@kind("log-records")
def codec_forgotten(p: Planter) -> Planted:
    segment, row = p.batch(lambda s, r: s.is_data(r) and s.codec(r) > 0)
    segment.put(row, "attributes", segment.get(row, "attributes") & ~7)
    return at_batch(segment, row)


@kind("transaction-hanging", "log-marker", "snapshot-state", "transaction-index", "marker-missing", also=("sequence-gap", "marker-contradicting"))
def became_transactional(p: Planter) -> Planted:
    segment, row = p.batch(lambda s, r: s.is_producers(r) and not s.is_transactional_data(r))
    segment.put(row, "attributes", segment.get(row, "attributes") | 0x10)
    return at_batch(segment, row)


@kind("transaction-hanging", "log-marker", "snapshot-state", "transaction-index", "marker-contradicting", "producer-fenced", "producer-outside", also=("sequence-gap",))
def lost_transactional(p: Planter) -> Planted:
    segment, row = p.batch(Segment.is_transactional_data)
    segment.put(row, "attributes", segment.get(row, "attributes") & ~0x10)
    return at_batch(segment, row)


@kind("log-marker", also=PRODUCER_CONSEQUENCES + ("transaction-index", "marker-contradicting", "transaction-hanging", "marker-missing"))
def data_became_control(p: Planter) -> Planted:
    segment, row = p.batch(Segment.is_transactional_data)
    segment.put(row, "attributes", segment.get(row, "attributes") | 0x20)
    return at_batch(segment, row)


@kind("log-marker", "log-records", also=PRODUCER_CONSEQUENCES + ("offsets-lost",))
def plain_data_became_control(p: Planter) -> Planted:
    segment, row = p.batch(is_plain)
    segment.put(row, "attributes", segment.get(row, "attributes") | 0x20)
    return at_batch(segment, row)


@kind("log-offset-order", also=OFFSET_CONSEQUENCES + PRODUCER_CONSEQUENCES)
def batch_twice(p: Planter) -> Planted:
    segment, row = p.batch(is_inner)
    segment.batches.insert(row + 1, bytearray(segment.batches[row]))
    return at_batch(segment, row)


@kind("log-offset-order", "offsets-lost", also=OFFSET_CONSEQUENCES + PRODUCER_CONSEQUENCES)
def batches_swapped(p: Planter) -> Planted:
    segment, row = p.batch(lambda s, r: r + 1 < len(s.batches) and is_plain(s, r) and is_plain(s, r + 1))
    batches = segment.batches
    batches[row], batches[row + 1] = batches[row + 1], batches[row]
    return at_batch(segment, row)


@kind("offsets-lost", also=PRODUCER_CONSEQUENCES + ("time-index", "marker-missing", "snapshot-state", "transaction-index", "marker-contradicting", "transaction-hanging"))
def batch_cut_out(p: Planter) -> Planted:
    segment, row = p.batch(lambda s, r: is_inner(s, r) and is_plain(s, r))
    base = segment.get(row, "base_offset")
    del segment.batches[row]
    segment.save()
    return Planted(segment.log.parent.name, base)


@kind("offsets-lost", also=PRODUCER_CONSEQUENCES + OFFSET_CONSEQUENCES)
def batch_of_producer_cut_out(p: Planter) -> Planted:
    segment, row = p.batch(lambda s, r: is_inner(s, r) and s.is_producers(r) and not s.is_transactional_data(r))
    base = segment.get(row, "base_offset")
    del segment.batches[row]
    segment.save()
    return Planted(segment.log.parent.name, base)


@kind("log-length", "log-tail", "log-crc")
def zeros_inserted(p: Planter) -> Planted:
    segment, row = p.batch(is_inner)
    segment.batches[row][:0] = bytes(p.dice.choose((1, 61, 512)))
    base = None
    segment.save()
    return Planted(segment.log.parent.name, base)


@kind("log-length", "log-tail", "log-crc")
def noise_inserted(p: Planter) -> Planted:
    segment, row = p.batch(is_inner)
    segment.batches[row][:0] = p.dice.take(p.dice.choose((1, 61, 512)))
    segment.save()
    return Planted(segment.log.parent.name)


@kind("log-tail", "log-length")
def noise_at_the_end(p: Planter) -> Planted:
    segment, row = p.batch(lambda s, r: r == len(s.batches) - 1)
    segment.tail = p.dice.take(p.dice.choose((1, 60, 300)))
    segment.save()
    return Planted(segment.log.parent.name)


@kind("log-tail", "log-length")
def zeros_at_the_end(p: Planter) -> Planted:
    segment, row = p.batch(lambda s, r: r == len(s.batches) - 1)
    segment.tail = bytes(p.dice.choose((1, 60, 300, 5000)))
    segment.save()
    return Planted(segment.log.parent.name)


@kind("log-tail", "checkpoint-offset", "offsets-lost", also=OFFSET_CONSEQUENCES + PRODUCER_CONSEQUENCES + ("transaction-hanging", "marker-missing", "transaction-index", "group-ahead", "marker-contradicting", "transaction-no-data"))
def torn_at_the_end(p: Planter) -> Planted:
    segment, row = p.batch(lambda s, r: r == len(s.batches) - 1)
    del segment.batches[row][p.dice.between(1, len(segment.batches[row]) - 1) :]
    segment.save()
    return Planted(segment.log.parent.name)


@kind("offsets-lost", "log-offset-range", "log-offset-order", also=OFFSET_CONSEQUENCES + PRODUCER_CONSEQUENCES + ("checkpoint-offset",))
def offset_raised(p: Planter) -> Planted:
    segment, row = p.batch(is_plain)
    segment.put(row, "base_offset", segment.get(row, "base_offset") + p.dice.choose((1, 5, 1000)), keeps_crc=True)
    return at_batch(segment, row)


@kind("log-offset-range", "log-offset-order", "offsets-lost", also=OFFSET_CONSEQUENCES + PRODUCER_CONSEQUENCES + ("checkpoint-offset",))
def offset_lowered(p: Planter) -> Planted:
    segment, row = p.batch(lambda s, r: is_plain(s, r) and s.get(r, "base_offset") > 1)
    segment.put(row, "base_offset", segment.get(row, "base_offset") - 1, keeps_crc=True)
    return at_batch(segment, row)


@kind("log-offset-range", "log-offset-order", also=OFFSET_CONSEQUENCES + PRODUCER_CONSEQUENCES + ("checkpoint-offset",))
def offset_negative(p: Planter) -> Planted:
    segment, row = p.batch(is_plain)
    segment.put(row, "base_offset", -5, keeps_crc=True)
    segment.save()
    return Planted(segment.log.parent.name)


@kind("offsets-lost", also=OFFSET_CONSEQUENCES + PRODUCER_CONSEQUENCES + ("marker-contradicting", "marker-missing", "transaction-index", "transaction-hanging", "orphan-index"))
def segment_gone_in_the_middle(p: Planter) -> Planted:
    logs = [sorted(path.glob("*.log")) for path in p.partitions() if path.name.split("-")[0] not in ("compact", "tombstones")]
    path = p.one_of([one for some in logs for one in some[1:-1]])
    for suffix in (".log", ".index", ".timeindex", ".txnindex"):
        path.with_suffix(suffix).unlink(missing_ok=True)
    return Planted(path.parent.name)


@kind("checkpoint-offset", "snapshot-state", also=OFFSET_CONSEQUENCES + PRODUCER_CONSEQUENCES + ("marker-contradicting", "marker-missing", "transaction-index", "transaction-hanging", "group-ahead"))
def last_segment_gone(p: Planter) -> Planted:
    logs = [sorted(path.glob("*.log")) for path in p.partitions()]
    path = p.one_of([some[-1] for some in logs if len(some) > 1 and some[-1].stat().st_size])
    for suffix in (".log", ".index", ".timeindex", ".txnindex"):
        path.with_suffix(suffix).unlink(missing_ok=True)
    return Planted(path.parent.name)


@kind("leader-epochs", "offsets-lost", also=OFFSET_CONSEQUENCES + PRODUCER_CONSEQUENCES + ("marker-contradicting", "marker-missing", "transaction-index", "transaction-hanging"))
def first_segment_gone(p: Planter) -> Planted:
    logs = [sorted(path.glob("*.log")) for path in p.partitions()]
    path = p.one_of([some[0] for some in logs if len(some) > 1 and some[0].stat().st_size])
    for suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot"):
        path.with_suffix(suffix).unlink(missing_ok=True)
    return Planted(path.parent.name)


@kind("log-offset-range", "log-offset-order", "offsets-lost", also=OFFSET_CONSEQUENCES + PRODUCER_CONSEQUENCES + ("log-tail", "checkpoint-offset", "index-zeros"))
def segment_renamed(p: Planter) -> Planted:
    logs = [sorted(path.glob("*.log")) for path in p.partitions()]
    path = p.one_of([one for some in logs for one in some if one.stat().st_size])
    base = int(path.stem) + 2
    for suffix in (".log", ".index", ".timeindex", ".txnindex", ".snapshot"):
        old = path.with_suffix(suffix)
        if old.exists():
            old.rename(path.with_name(f"{base:020d}{suffix}"))
    return Planted(path.parent.name)


@kind("log-offset-order", "log-offset-range", "offsets-lost", also=OFFSET_CONSEQUENCES + PRODUCER_CONSEQUENCES + ("checkpoint-offset", "sequence-gap", "group-ahead", "checkpoint-partition", "snapshot-missing"))
def log_of_another_partition(p: Planter) -> Planted:
    """The active segment of another partition has been copied over this one's."""
    target = p.partition(lambda path: (path / f"{0:020d}.log").exists() and (path / f"{0:020d}.log").stat().st_size and len(list(path.glob("*.log"))) > 1)
    source = p.partition(lambda path: path.name != target.name and len(list(path.glob("*.log"))) > 1)
    logs = sorted(source.glob("*.log"))
    (target / f"{0:020d}.log").write_bytes(logs[1].read_bytes() or logs[0].read_bytes())
    return Planted(target.name)
