"""Faults of transactions and groups: markers, coordinators' records, committed offsets."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace

from logstore.topics.transaction_state import TransactionMetadata, TransactionState, decode_value, encode_value
from tests.planted.planter import Planted, Planter, UnsuitableError, at_batch, kind
from tests.planted.segment import Segment
from tests.support.encoder import CONTROL, TRANSACTIONAL, Batch, Rec

STATES, GROUPS = "__transaction_state", "__consumer_offsets"
MARKER_CONSEQUENCES = (
    "transaction-index", "snapshot-state", "transaction-atomicity", "marker-contradicting", "marker-missing", "transaction-hanging",
    "sequence-gap", "sequence-duplicate", "offsets-lost", "time-index", "time-index-end", "chain-back", "chain-mixed", "log-records",
)
COMMIT, ABORT = 1, 0


def is_whole(s: Segment, r: int) -> bool:
    """The log was never cleaned."""
    return s.log.parent.name.split("-")[0] not in ("compact", "tombstones")


def marker_type(s: Segment, r: int) -> int:
    key = s.records(r)[0].key
    assert key is not None
    return struct.unpack(">hh", key)[1]


def has_data_before(s: Segment, r: int) -> bool:
    return any(s.is_transactional_data(row) and s.get(row, "producer_id") == s.get(r, "producer_id") for row in range(r))


def ends_data(s: Segment, r: int) -> bool:
    """The marker ends a transaction with data in this segment."""
    for row in range(r - 1, -1, -1):
        if s.get(row, "producer_id") == s.get(r, "producer_id"):
            return s.is_transactional_data(row)
    return False


def marker(p: Planter, suits=lambda s, r: True) -> tuple[Segment, int]:
    return p.batch(lambda s, r: s.is_marker(r) and s.get(r, "record_count") == 1 and is_whole(s, r) and suits(s, r))


def flip(segment: Segment, row: int) -> None:
    record = segment.records(row)[0]
    segment.write_records(row, [replace(record, key=struct.pack(">hh", 0, 1 - marker_type(segment, row)))])


for wanted, word in ((COMMIT, "commit"), (ABORT, "abort")):
    def flipped(p: Planter, wanted: int = wanted) -> Planted:
        segment, row = marker(p, lambda s, r: marker_type(s, r) == wanted and ends_data(s, r))
        flip(segment, row)
        return at_batch(segment, row)
    flipped.__name__ = f"marker_of_{word}_flipped"
    kind("marker-contradicting", "transaction-atomicity", "transaction-index", also=MARKER_CONSEQUENCES)(flipped)

    def cut_out(p: Planter, wanted: int = wanted) -> Planted:
        segment, row = marker(p, lambda s, r: marker_type(s, r) == wanted and ends_data(s, r) and 0 < r < len(s.batches) - 1)
        base = segment.get(row, "base_offset")
        del segment.batches[row]
        segment.save()
        return Planted(segment.log.parent.name, base)
    cut_out.__name__ = f"marker_of_{word}_cut_out"
    kind("offsets-lost", "marker-missing", also=MARKER_CONSEQUENCES)(cut_out)

    def replaced(p: Planter, wanted: int = wanted) -> Planted:
        """As if it had never been written: a record of no producer is at its offset."""
        segment, row = marker(p, lambda s, r: marker_type(s, r) == wanted and ends_data(s, r))
        base, time, epoch = (segment.get(row, name) for name in ("base_offset", "max_timestamp", "leader_epoch"))
        plain = Batch(base, [Rec(value=b"x" * 9)], base_timestamp=time, max_timestamp=time, leader_epoch=epoch)
        segment.batches[row][:] = plain.to_bytes()
        segment.save()
        return Planted(segment.log.parent.name)  # told where its transaction begins
    replaced.__name__ = f"marker_of_{word}_never_written"
    kind("marker-missing", "transaction-hanging", "marker-contradicting", "transaction-index", "snapshot-state", also=MARKER_CONSEQUENCES)(replaced)


def plain_one(s: Segment, r: int) -> bool:
    return s.is_data(r) and s.get(r, "producer_id") < 0 and s.get(r, "last_offset_delta") == 0 and is_whole(s, r)


def put_marker(p: Planter, segment: Segment, row: int, producer_id: int, epoch: int, *, commit: bool) -> Planted:
    base, time, leader_epoch = (segment.get(row, name) for name in ("base_offset", "max_timestamp", "leader_epoch"))
    record = Rec(key=struct.pack(">hh", 0, int(commit)), value=struct.pack(">hi", 0, 0))
    batch = Batch(base, [record], flags=TRANSACTIONAL | CONTROL, base_timestamp=time, max_timestamp=time,
                  producer_id=producer_id, producer_epoch=epoch, leader_epoch=leader_epoch)
    segment.batches[row][:] = batch.to_bytes()
    segment.save()
    return Planted(segment.log.parent.name, base)


for commit in (True, False):
    def unexplained(p: Planter, commit: bool = commit) -> Planted:
        segment, row = p.batch(plain_one)
        return put_marker(p, segment, row, 77_777, 3, commit=commit)
    unexplained.__name__ = f"marker_of_nobody_{'commit' if commit else 'abort'}"
    kind("marker-unexplained", "marker-contradicting", "snapshot-state", also=MARKER_CONSEQUENCES)(unexplained)

    def doubled(p: Planter, commit: bool = commit) -> Planted:
        segment, row = p.batch(lambda s, r: plain_one(s, r) and any(s.is_marker(m) and marker_type(s, m) == commit for m in range(r)))
        before = [m for m in range(row) if segment.is_marker(m) and marker_type(segment, m) == commit][-1]
        return put_marker(p, segment, row, segment.get(before, "producer_id"), segment.get(before, "producer_epoch"), commit=commit)
    doubled.__name__ = f"marker_of_{'commit' if commit else 'abort'}_doubled"
    kind("marker-doubled", "marker-contradicting", "marker-unexplained", "snapshot-state", also=MARKER_CONSEQUENCES)(doubled)

    def contradicted(p: Planter, commit: bool = commit) -> Planted:
        segment, row = p.batch(lambda s, r: plain_one(s, r) and any(s.is_marker(m) and marker_type(s, m) == commit for m in range(r)))
        before = [m for m in range(row) if segment.is_marker(m) and marker_type(segment, m) == commit][-1]
        return put_marker(p, segment, row, segment.get(before, "producer_id"), segment.get(before, "producer_epoch"), commit=not commit)
    contradicted.__name__ = f"marker_of_{'commit' if commit else 'abort'}_contradicted"
    kind("marker-contradicting", "marker-unexplained", "snapshot-state", also=MARKER_CONSEQUENCES)(contradicted)


def bad_marker(name: str, change: Callable[[Rec], Rec]) -> None:
    def plant(p: Planter) -> Planted:
        segment, row = p.batch(lambda s, r: s.is_marker(r) and s.get(r, "record_count") == 1)
        segment.write_records(row, [change(segment.records(row)[0])])
        return at_batch(segment, row)
    plant.__name__ = f"marker_{name}"
    kind("log-marker", also=MARKER_CONSEQUENCES)(plant)


bad_marker("of_unknown_type", lambda r: replace(r, key=struct.pack(">hh", 0, 9)))
bad_marker("with_short_key", lambda r: replace(r, key=b"\x00"))
bad_marker("without_key", lambda r: replace(r, key=None))
bad_marker("without_value", lambda r: replace(r, value=None))
bad_marker("with_short_value", lambda r: replace(r, value=b"\x00\x00"))
bad_marker("with_negative_version", lambda r: replace(r, value=struct.pack(">hi", -1, 0)))


@kind("log-marker", "snapshot-state", "marker-unexplained", "marker-contradicting", "marker-missing", "transaction-hanging", "producer-fenced", "producer-epoch-back", also=MARKER_CONSEQUENCES)
def marker_of_a_later_epoch(p: Planter) -> Planted:
    segment, row = marker(p, ends_data)
    segment.put(row, "producer_epoch", segment.get(row, "producer_epoch") + 3)
    return at_batch(segment, row)


@kind("log-marker", "snapshot-state", "marker-unexplained", "marker-contradicting", "marker-missing", "transaction-hanging", "producer-fenced", also=MARKER_CONSEQUENCES)
def marker_of_an_earlier_epoch(p: Planter) -> Planted:
    segment, row = marker(p, lambda s, r: ends_data(s, r) and s.get(r, "producer_epoch") > 0)
    segment.put(row, "producer_epoch", 0)
    return at_batch(segment, row)


@kind("marker-unexplained", "marker-missing", "transaction-hanging", "snapshot-state", also=MARKER_CONSEQUENCES)
def marker_of_another_producer(p: Planter) -> Planted:
    segment, row = marker(p, ends_data)
    segment.put(row, "producer_id", 88_888)
    return at_batch(segment, row)


@kind("log-marker", "snapshot-state", also=MARKER_CONSEQUENCES)
def marker_of_an_older_coordinator(p: Planter) -> Planted:
    segment, row = marker(p)
    record = segment.records(row)[0]
    segment.write_records(row, [replace(record, value=struct.pack(">hi", 0, -3))])
    return at_batch(segment, row)


# ---- __transaction_state


def states(segment: Segment, row: int) -> TransactionMetadata | None:
    record = segment.records(row)[0]
    return decode_value(record.value) if record.value is not None else None


def state_at(p: Planter, suits: Callable[[TransactionMetadata], bool], is_last: bool | None = None) -> tuple[Segment, int, TransactionMetadata]:
    found = []
    for log in p.logs(STATES):
        segment = Segment(log)
        last: dict[bytes | None, int] = {}
        for row in range(len(segment.batches)):
            if segment.is_data(row):
                last[segment.records(row)[0].key] = row
        for row in range(len(segment.batches)):
            if segment.is_data(row) and segment.get(row, "record_count") == 1:
                metadata = states(segment, row)
                is_last_one = last[segment.records(row)[0].key] == row
                if metadata is not None and suits(metadata) and is_last in (None, is_last_one):
                    found.append((segment, row, metadata))
    return p.one_of(found)


def write_state(segment: Segment, row: int, metadata: TransactionMetadata) -> None:
    record = segment.records(row)[0]
    assert record.value is not None
    segment.write_records(row, [replace(record, value=encode_value(metadata, version=struct.unpack(">h", record.value[:2])[0]))])
    segment.save()


def user_places(p: Planter, metadata: TransactionMetadata) -> list[str]:
    names = {path.name for path in p.partitions()}
    return [f"{topic}-{number}" for topic, number in metadata.partitions if f"{topic}-{number}" in names and not topic.startswith("compact")]


OTHER = {
    TransactionState.PREPARE_COMMIT: TransactionState.PREPARE_ABORT, TransactionState.PREPARE_ABORT: TransactionState.PREPARE_COMMIT,
    TransactionState.COMPLETE_COMMIT: TransactionState.COMPLETE_ABORT, TransactionState.COMPLETE_ABORT: TransactionState.COMPLETE_COMMIT,
}

for prepared in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT):
    def decided_otherwise(p: Planter, prepared: TransactionState = prepared) -> Planted:
        """The decision says the other thing, and so does what follows."""
        segment, row, metadata = state_at(p, lambda m: m.state is prepared and bool(user_places(p, m)))
        key = segment.records(row)[0].key
        write_state(segment, row, metadata._replace(state=OTHER[metadata.state]))
        for later in range(row + 1, len(segment.batches)):
            if segment.is_data(later) and segment.records(later)[0].key == key:
                after = states(segment, later)
                if after is not None and after.state in OTHER:
                    write_state(segment, later, after._replace(state=OTHER[after.state]))
                break
        return Planted(p.one_of(user_places(p, metadata)))
    decided_otherwise.__name__ = f"{prepared.name.lower()}_decided_otherwise"
    kind("marker-contradicting", also=("transaction-atomicity",))(decided_otherwise)

    def completed_otherwise(p: Planter, prepared: TransactionState = prepared) -> Planted:
        """What was completed is not what was decided."""
        segment, row, metadata = state_at(p, lambda m: m.state is prepared and bool(m.partitions))
        key = segment.records(row)[0].key
        for later in range(row + 1, len(segment.batches)):
            if segment.is_data(later) and segment.records(later)[0].key == key:
                after = states(segment, later)
                if after is None or after.state not in OTHER:
                    raise UnsuitableError
                write_state(segment, later, after._replace(state=OTHER[after.state]))
                return Planted(segment.log.parent.name)
        raise UnsuitableError
    completed_otherwise.__name__ = f"{prepared.name.lower()}_completed_otherwise"
    kind("coordinator-state", also=("marker-contradicting",))(completed_otherwise)

    def claims_less(p: Planter, prepared: TransactionState = prepared) -> Planted:
        segment, row, metadata = state_at(p, lambda m: m.state is prepared and len(user_places(p, m)) > 0 and len(m.partitions) > 1)
        gone = p.one_of(user_places(p, metadata))
        write_state(segment, row, metadata._replace(partitions=tuple(one for one in metadata.partitions if "-".join(map(str, one)) != gone)))
        return Planted(segment.log.parent.name)
    claims_less.__name__ = f"{prepared.name.lower()}_without_a_partition"
    kind("coordinator-state", also=("marker-unexplained", "marker-contradicting"))(claims_less)

    def claims_more(p: Planter, prepared: TransactionState = prepared) -> Planted:
        segment, row, metadata = state_at(p, lambda m: m.state is prepared and bool(m.partitions))
        others = [path.name for path in p.partitions() if not path.name.startswith(("compact", "tombstones")) and path.name not in user_places(p, metadata)]
        more = p.one_of(others)
        topic, _, number = more.rpartition("-")
        write_state(segment, row, metadata._replace(partitions=(*metadata.partitions, (topic, int(number)))))
        return Planted(segment.log.parent.name)
    claims_more.__name__ = f"{prepared.name.lower()}_with_a_partition_more"
    kind("coordinator-state", also=("marker-missing", "marker-contradicting"))(claims_more)


@kind("transaction-hanging", "marker-missing")
def ongoing_forgotten(p: Planter) -> Planted:
    """The last record of an open transaction says that it was completed."""
    segment, row, metadata = state_at(p, lambda m: m.state is TransactionState.ONGOING and bool(user_places(p, m)), is_last=True)
    write_state(segment, row, metadata._replace(state=TransactionState.COMPLETE_ABORT, partitions=()))
    return Planted(p.one_of(user_places(p, metadata)))


@kind("transaction-hanging", "marker-missing")
def ongoing_of_another_producer(p: Planter) -> Planted:
    segment, row, metadata = state_at(p, lambda m: m.state is TransactionState.ONGOING and bool(user_places(p, m)), is_last=True)
    write_state(segment, row, metadata._replace(producer_id=metadata.producer_id + 5000))
    return Planted(p.one_of(user_places(p, metadata)))


@kind("transaction-hanging", "marker-missing")
def ongoing_of_an_earlier_epoch(p: Planter) -> Planted:
    segment, row, metadata = state_at(p, lambda m: m.state is TransactionState.ONGOING and bool(user_places(p, m)), is_last=True)
    write_state(segment, row, metadata._replace(producer_epoch=metadata.producer_epoch + 7))
    return Planted(p.one_of(user_places(p, metadata)))


@kind("transaction-hanging", "marker-missing")
def ongoing_without_a_partition(p: Planter) -> Planted:
    segment, row, metadata = state_at(p, lambda m: m.state is TransactionState.ONGOING and bool(user_places(p, m)), is_last=True)
    gone = p.one_of(user_places(p, metadata))
    write_state(segment, row, metadata._replace(partitions=tuple(one for one in metadata.partitions if "-".join(map(str, one)) != gone)))
    return Planted(gone)


def bad_state(name: str, change: Callable[[Rec], Rec]) -> None:
    def plant(p: Planter) -> Planted:
        segment, row = p.batch(Segment.is_data, topic=STATES)
        records = segment.records(row)
        segment.write_records(row, [change(records[0]), *records[1:]])
        return at_batch(segment, row)
    plant.__name__ = f"state_{name}"
    kind("internal-record", also=("marker-missing", "transaction-hanging", "marker-contradicting", "marker-unexplained"))(plant)


bad_state("unknown", lambda r: replace(r, value=(r.value or b"")[:16] + b"\x63" + (r.value or b"")[17:]))
bad_state("cut", lambda r: replace(r, value=(r.value or b"")[:9]))
bad_state("without_key", lambda r: replace(r, key=None))
bad_state("with_short_key", lambda r: replace(r, key=b"\x00\x00\x00\x50x"))
bad_state("with_noise", lambda r: replace(r, value=b"\x00\x00" + b"\xff" * 20))


# ---- __consumer_offsets


def commits(p: Planter, suits=lambda s, r, key, value: True) -> tuple[Segment, int, int, str]:
    """A last commit: segment, row, index of the record, and the partition whose offset it is."""
    found = []
    names = {path.name for path in p.partitions()}
    for log in p.logs(GROUPS):
        segment = Segment(log)
        last: dict[bytes, tuple[int, int]] = {}
        for row in range(len(segment.batches)):
            for index, record in enumerate(segment.records(row) if segment.is_data(row) else ()):
                if record.key is not None and record.key[:2] in (b"\x00\x00", b"\x00\x01"):
                    last[record.key] = row, index
        for key, (row, index) in last.items():
            record = segment.records(row)[index]
            size = struct.unpack_from(">h", key, 2)[0]
            topic_size = struct.unpack_from(">h", key, 4 + size)[0]
            topic = key[6 + size : 6 + size + topic_size].decode()
            name = f"{topic}-{struct.unpack_from('>i', key, 6 + size + topic_size)[0]}"
            if record.value is not None and name in names and suits(segment, row, key, record.value):
                found.append((segment, row, index, name))
    return p.one_of(found)


def edit(segment: Segment, row: int, index: int, record: Callable[[Rec], Rec]) -> Planted:
    records = segment.records(row)
    records[index] = record(records[index])
    segment.write_records(row, records)
    return at_batch(segment, row)


for is_chain in (False, True):
    def ahead(p: Planter, is_chain: bool = is_chain) -> Planted:
        segment, row, index, _ = commits(p, lambda s, r, key, value: (s.get(r, "producer_id") >= 0) == is_chain)
        return edit(segment, row, index, lambda r: replace(r, value=r.value[:2] + struct.pack(">q", 1 << 40) + r.value[10:]))
    ahead.__name__ = "group_ahead_in_a_transaction" if is_chain else "group_ahead"
    kind("chain-ahead" if is_chain else "group-ahead")(ahead)

    def negative(p: Planter, is_chain: bool = is_chain) -> Planted:
        segment, row, index, _ = commits(p, lambda s, r, key, value: (s.get(r, "producer_id") >= 0) == is_chain)
        return edit(segment, row, index, lambda r: replace(r, value=r.value[:2] + struct.pack(">q", -7) + r.value[10:]))
    negative.__name__ = "group_at_a_negative_offset_in_a_transaction" if is_chain else "group_at_a_negative_offset"
    kind("group-behind", "chain-back", "internal-record", also=("chain-back",))(negative)


@kind("group-unknown")
def group_of_an_unknown_topic(p: Planter) -> Planted:
    segment, row, index, name = commits(p)
    topic = name.rpartition("-")[0].encode()
    return edit(segment, row, index, lambda r: replace(r, key=r.key.replace(topic, b"#" * len(topic))))


@kind("group-unknown")
def group_of_an_unknown_partition(p: Planter) -> Planted:
    segment, row, index, name = commits(p)
    return edit(segment, row, index, lambda r: replace(r, key=r.key[:-4] + struct.pack(">i", 99)))


def bad_group(name: str, change: Callable[[Rec], Rec]) -> None:
    def plant(p: Planter) -> Planted:
        segment, row, index, _ = commits(p)
        return edit(segment, row, index, change)
    plant.__name__ = f"group_record_{name}"
    kind("internal-record")(plant)


bad_group("cut", lambda r: replace(r, value=r.value[:5]))
bad_group("without_key", lambda r: replace(r, key=None))
bad_group("with_short_key", lambda r: replace(r, key=r.key[:7]))
bad_group("with_noise", lambda r: replace(r, value=b"\x00\x03" + b"\xff" * 5))


@kind("group-behind")
def group_below_the_log_start(p: Planter) -> Planted:
    """DeleteRecords took what the group has not read."""
    def is_low(s: Segment, r: int, key: bytes, value: bytes) -> bool:
        return True
    segment, row, index, name = commits(p, is_low)
    records = segment.records(row)
    offset = struct.unpack(">q", records[index].value[2:10])[0]
    logs = sorted((p.root / name).glob("*.log"))
    last = Segment(logs[-1])
    end = last.last_offset(len(last.batches) - 1) + 1 if last.batches else 0
    if end <= offset + 1 or len(logs) > 1:
        raise UnsuitableError
    path = p.root / "log-start-offset-checkpoint"
    lines = path.read_text().splitlines()[2:]
    topic, _, number = name.rpartition("-")
    lines = [line for line in lines if line.rsplit(" ", 1)[0] != f"{topic} {number}"] + [f"{topic} {number} {offset + 1}"]
    path.write_text(f"0\n{len(lines)}\n" + "".join(line + "\n" for line in lines))
    epochs = p.root / name / "leader-epoch-checkpoint"
    epochs.write_text(f"0\n1\n{epochs.read_text().split()[2]} {offset + 1}\n")
    return Planted("__consumer_offsets-" + segment.log.parent.name.rpartition("-")[2])
