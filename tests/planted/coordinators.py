"""Faults of the internal topics: what coordinators say of transactions, and offsets that groups committed."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import NamedTuple

from logstore.topics.transaction_state import (
    IDLE,
    PREPARED,
    TransactionMetadata,
    TransactionState,
    decode_value,
    encode_value,
)
from tests.planted.markers import ABORT, marker_type
from tests.planted.planter import OF_GROUPS, Planted, Planter, UnsuitableError, at_batch, in_segment, register
from tests.planted.segment import Segment
from tests.support.encoder import Rec

STATES, OFFSETS = "__transaction_state", "__consumer_offsets"
OF_MARKERS = frozenset(
    {"marker-missing", "marker-contradicting", "marker-unexplained", "transaction-atomicity", "transaction-hanging"}
)
OTHER = {
    TransactionState.PREPARE_COMMIT: TransactionState.PREPARE_ABORT,
    TransactionState.PREPARE_ABORT: TransactionState.PREPARE_COMMIT,
    TransactionState.COMPLETE_COMMIT: TransactionState.COMPLETE_ABORT,
    TransactionState.COMPLETE_ABORT: TransactionState.COMPLETE_COMMIT,
}


class State(NamedTuple):
    """A record of a transactional id."""

    segment: Segment
    row: int
    key: bytes | None
    metadata: TransactionMetadata

    def write(self, metadata: TransactionMetadata) -> None:
        """Write another value in its place."""
        record = self.segment.records(self.row)[0]
        (version,) = struct.unpack_from(">h", record.value or b"")
        self.segment.write_records(self.row, [replace(record, value=encode_value(metadata, version=version))])
        self.segment.save()

    @property
    def following(self) -> State | None:
        """The next record of the same id."""
        return next((one for one in states_of(self.segment) if one.row > self.row and one.key == self.key), None)


def states_of(segment: Segment) -> Iterator[State]:
    for row in range(len(segment.batches)):
        if segment.is_data(row) and segment.get(row, "record_count") == 1:
            record = segment.records(row)[0]
            metadata = decode_value(record.value)
            if metadata is not None:
                yield State(segment, row, record.key, metadata)


def state(planter: Planter, suits: Callable[[State], object]) -> State:
    """Return a record that suits, of a log that was never compacted, so that what is before it is known."""
    segments = [Segment(log) for log in planter.logs(STATES)]
    if any(segment.get(0, "base_offset") or not is_dense(segment) for segment in segments):
        raise UnsuitableError
    return planter.one_of(one for segment in segments for one in states_of(segment) if suits(one))


def is_dense(segment: Segment) -> bool:
    rows = range(1, len(segment.batches))
    return all(segment.get(row, "base_offset") == segment.last_offset(row - 1) + 1 for row in rows)


def names(metadata: TransactionMetadata) -> set[str]:
    return {f"{topic}-{number}" for topic, number in metadata.partitions}


def users(planter: Planter, metadata: TransactionMetadata) -> list[str]:
    """Partitions of the transaction that are users'."""
    return sorted(names(metadata) & {path.name for path in planter.partitions()})


def decision(prepared: TransactionState) -> None:
    """Register faults of what was decided."""
    word = prepared.name.partition("_")[2].lower()

    def is_decision(one: State) -> bool:
        return one.metadata.state is prepared and bool(one.metadata.partitions)

    def decide_otherwise(planter: Planter) -> Planted:
        one = state(planter, lambda one: is_decision(one) and one.following and users(planter, one.metadata))
        after = one.following
        assert after is not None
        one.write(one.metadata._replace(state=OTHER[prepared]))
        after.write(after.metadata._replace(state=OTHER[after.metadata.state]))
        return Planted(users(planter, one.metadata)[0])

    def complete_otherwise(planter: Planter) -> Planted:
        one = state(planter, lambda one: is_decision(one) and one.following)
        after = one.following
        assert after is not None
        after.write(after.metadata._replace(state=OTHER[after.metadata.state]))
        return Planted(one.segment.log.parent.name)

    def leave_out(planter: Planter) -> Planted:
        one = state(planter, lambda one: is_decision(one) and len(one.metadata.partitions) > 1)
        gone = planter.dice.choose(one.metadata.partitions)
        one.write(one.metadata._replace(partitions=tuple(each for each in one.metadata.partitions if each != gone)))
        return Planted(one.segment.log.parent.name)

    def claim(planter: Planter) -> Planted:
        one = state(planter, is_decision)
        more = planter.partition(lambda path: path.name not in names(one.metadata)).name
        topic, _, number = more.rpartition("-")
        one.write(one.metadata._replace(partitions=(*one.metadata.partitions, (topic, int(number)))))
        return Planted(one.segment.log.parent.name)

    register(f"{word} decided otherwise", decide_otherwise, ["marker-contradicting"], OF_MARKERS)
    register(f"{word} completed otherwise", complete_otherwise, ["coordinator-state"], OF_MARKERS)
    register(f"{word} without a partition", leave_out, ["coordinator-state"], OF_MARKERS)
    register(f"{word} with a partition more", claim, ["coordinator-state"], OF_MARKERS)


decision(TransactionState.PREPARE_COMMIT)
decision(TransactionState.PREPARE_ABORT)


def changed(name: str, **changes: Callable[[int], int]) -> None:
    """Register a fault of a record that follows on another of its transactional id."""

    def plant(planter: Planter) -> Planted:
        one = state(planter, lambda one: one.metadata.state is not TransactionState.EMPTY and is_followed(one))
        values = {field: change(getattr(one.metadata, field)) for field, change in changes.items()}
        one.write(one.metadata._replace(**values))
        return Planted(one.segment.log.parent.name)  # or the record behind it is told

    register(f"state of {name}", plant, ["coordinator-state"], OF_MARKERS)


def is_followed(one: State) -> bool:
    """Whether a record of the same id is before it, with no tombstone between."""
    records = [one.segment.records(row)[0] for row in range(one.row) if one.segment.is_data(row)]
    values = [record.value for record in records if record.key == one.key]
    return bool(values) and values[-1] is not None


def started(name: str, states: Collection[TransactionState], delta: int) -> None:
    """Register another start of a transaction, or one in a state that has none."""

    def plant(planter: Planter) -> Planted:
        one = state(planter, lambda one: one.metadata.state in states and is_followed(one))
        one.write(one.metadata._replace(start_timestamp_ms=one.metadata.start_timestamp_ms + delta))
        return Planted(one.segment.log.parent.name)

    register(f"state of {name}", plant, ["coordinator-state"])


for delta in (-1, 60_000):
    started(f"a decision with a start {delta:+}", PREPARED, delta)
    started(f"an end with a start {delta:+}", IDLE - {TransactionState.EMPTY}, delta)
started("none with a start", {TransactionState.EMPTY}, 60_000)


def elsewhere(topic: str, word: str) -> None:
    """Register all records of an id in a partition where its coordinator does not look."""

    def plant(planter: Planter) -> Planted:
        segment, row = planter.batch(is_keyed, topic)
        old = segment.records(row)[0].key or b""
        size = struct.unpack_from(">h", old, 2)[0]
        partition = int(segment.log.parent.name[-1])
        new = next(name for name in (b"%0*d" % (size, n) for n in range(99)) if place_for(name) != partition)
        key = old[:4] + new + old[4 + size :]
        for one in (one for one in range(len(segment.batches)) if segment.is_data(one)):
            records = segment.records(one)
            if any(record.key == old for record in records):
                segment.write_records(
                    one, [replace(record, key=key if record.key == old else record.key) for record in records]
                )
        return in_segment(segment)

    def is_keyed(segment: Segment, row: int) -> bool:
        """Whether the first record is of an id, or of an offset that counts."""
        if not segment.is_data(row) or segment.get(row, "producer_id") >= 0:
            return False
        record = segment.records(row)[0]
        types = (b"\x00\x00",) if topic == STATES else (b"\x00\x00", b"\x00\x01")
        return record.value is not None and (record.key or b"")[:2] in types

    register(f"{word} in another partition", plant, ["internal-partition"], OF_MARKERS | OF_GROUPS)


def place_for(name: bytes) -> int:
    """The one of two partitions that keeps an id of ASCII (`String.hashCode`)."""
    code = 0
    for letter in name:
        code = (code * 31 + letter) & 0xFFFFFFFF
    return abs((code ^ 1 << 31) - (1 << 31)) % 2


elsewhere(STATES, "transactional id")
elsewhere(OFFSETS, "group")
for producer_id_delta in (1, -1000):
    changed(f"producer {producer_id_delta:+}", producer_id=lambda old, delta=producer_id_delta: old + delta)
for epoch_delta in (-100, 3, 100):
    changed(f"an epoch {epoch_delta:+}", producer_epoch=lambda old, delta=epoch_delta: old + delta)
changed("another timeout", transaction_timeout_ms=lambda old: old // 2 - 1)


def open_one(name: str, change: Callable[[TransactionMetadata, str], TransactionMetadata]) -> None:
    """Register a fault of the last record of a transaction that is open."""

    def plant(planter: Planter) -> Planted:
        one = state(planter, lambda one: is_open(planter, one))
        place = planter.one_of(with_data(planter, one.metadata))
        one.write(change(one.metadata, place))
        return Planted(place)

    register(f"open transaction {name}", plant, ["transaction-hanging"], OF_MARKERS | {"coordinator-state"})


def is_open(planter: Planter, one: State) -> bool:
    is_last = one.metadata.state is TransactionState.ONGOING and one.following is None
    return is_last and bool(with_data(planter, one.metadata))


def with_data(planter: Planter, metadata: TransactionMetadata) -> list[str]:
    """Partitions whose last batch of the producer is data."""
    found = []
    for name in users(planter, metadata):
        last = -1
        for segment in map(Segment, sorted((planter.root / name).glob("*.log"))):
            for row in range(len(segment.batches)):
                if segment.get(row, "producer_id") == metadata.producer_id:
                    last = marker_type(segment, row)
                    found = [one for one in found if one != name] + ([name] if last < 0 else [])
    return found


open_one("forgotten", lambda metadata, place: metadata._replace(state=TransactionState.COMPLETE_ABORT, partitions=()))
open_one("of another producer", lambda metadata, place: metadata._replace(producer_id=metadata.producer_id + 5000))
open_one("of another epoch", lambda metadata, place: metadata._replace(producer_epoch=metadata.producer_epoch + 7))
open_one(
    "without a partition",
    lambda metadata, place: metadata._replace(
        partitions=tuple(one for one in metadata.partitions if f"{one[0]}-{one[1]}" != place)
    ),
)


def unreadable(topic: str, name: str, change: Callable[[Rec], Rec]) -> None:
    """Register a record of an internal topic that nobody can read."""

    def plant(planter: Planter) -> Planted:
        segment, row = planter.batch(Segment.is_data, topic)
        records = segment.records(row)
        segment.write_records(row, [change(records[0]), *records[1:]])
        return at_batch(segment, row)

    register(f"{topic} {name}", plant, ["internal-record"], OF_MARKERS | OF_GROUPS)


for topic in (STATES, OFFSETS):
    unreadable(topic, "without a key", lambda record: replace(record, key=None))
    unreadable(topic, "with a short key", lambda record: replace(record, key=b"\x00\x00\x00\x50x"))
    unreadable(topic, "with a short value", lambda record: replace(record, value=b"\x00\x00\x00"))
unreadable(STATES, "of an unknown state", lambda record: replace(record, value=spliced(record.value, 16, b"\x63")))
unreadable(STATES, "with noise", lambda record: replace(record, value=b"\x00\x00" + b"\xff" * 20))


def spliced(data: bytes | None, position: int, new: bytes) -> bytes:
    assert data is not None
    return data[:position] + new + data[position + len(new) :]


class Commit(NamedTuple):
    """The last commit of a group in a partition that is there."""

    segment: Segment
    row: int
    number: int
    is_chain: bool

    def write(self, change: Callable[[Rec], Rec]) -> Planted:
        """Write another record in its place."""
        records = self.segment.records(self.row)
        records[self.number] = change(records[self.number])
        self.segment.write_records(self.row, records)
        self.segment.save()
        return Planted(self.segment.log.parent.name, self.segment.get(self.row, "base_offset") + self.number)


def commits(planter: Planter) -> Iterator[Commit]:
    for log in planter.logs(OFFSETS):
        segment, last = Segment(log), dict[bytes, Commit | None]()
        for row in range(len(segment.batches)):
            for number, record in enumerate(segment.records(row) if segment.is_data(row) else ()):
                if (
                    record.key is not None
                    and record.key[:2] in (b"\x00\x00", b"\x00\x01")
                    and not is_aborted(segment, row)
                ):
                    is_chain = segment.get(row, "producer_id") >= 0
                    is_there = record.value is not None and (planter.root / place_of(record.key)).exists()
                    last[record.key] = Commit(segment, row, number, is_chain) if is_there else None
        yield from (one for one in last.values() if one is not None)


def is_aborted(segment: Segment, row: int) -> bool:
    producer_id, rows = segment.get(row, "producer_id"), range(row + 1, len(segment.batches))
    ends = (one for one in rows if segment.is_marker(one) and segment.get(one, "producer_id") == producer_id)
    return producer_id >= 0 and marker_type(segment, next(ends)) == ABORT


def place_of(key: bytes) -> str:
    """The partition's name in the key of a committed offset."""
    size = struct.unpack_from(">h", key, 2)[0]
    topic_size = struct.unpack_from(">h", key, 4 + size)[0]
    topic, at = key[6 + size : 6 + size + topic_size], 6 + size + topic_size
    return f"{topic.decode()}-{struct.unpack_from('>i', key, at)[0]}"


def committed(name: str, offset: int, plain_rule: str, chain_rule: str) -> None:
    def of(word: str, rule: str, *, is_chain: bool) -> None:
        def plant(planter: Planter) -> Planted:
            commit = planter.one_of(one for one in commits(planter) if one.is_chain == is_chain)
            return commit.write(
                lambda record: replace(record, value=spliced(record.value, 2, struct.pack(">q", offset)))
            )

        register(f"{word} {name}", plant, [rule], ["chain-back", "group-behind"])

    of("group", plain_rule, is_chain=False)
    of("chain", chain_rule, is_chain=True)


committed("ahead of the log", 1 << 40, "group-ahead", "chain-ahead")
committed("at an offset below 0", -7, "group-behind", "group-behind")


def unknown(name: str, change: Callable[[bytes], bytes]) -> None:
    def plant(planter: Planter) -> Planted:
        commit = planter.one_of(commits(planter))
        return commit.write(lambda record: replace(record, key=change(record.key or b"")))

    register(f"group of an unknown {name}", plant, ["group-unknown"])


def renamed(key: bytes) -> bytes:
    topic = place_of(key).rpartition("-")[0].encode()
    return key.replace(struct.pack(">h", len(topic)) + topic, struct.pack(">h", len(topic)) + b"#" * len(topic))


unknown("topic", renamed)
unknown("partition", lambda key: key[:-4] + struct.pack(">i", 99))


def below_the_start(planter: Planter) -> Planted:
    """DeleteRecords takes what a group has not read."""

    def is_unread(commit: Commit) -> bool:
        record = commit.segment.records(commit.row)[commit.number]
        logs = sorted((planter.root / place_of(record.key or b"")).glob("*.log"))
        segment = Segment(logs[0])
        return len(logs) == 1 and offset_of(record) < segment.last_offset(len(segment.batches) - 1)

    commit = planter.one_of(one for one in commits(planter) if is_unread(one))
    record = commit.segment.records(commit.row)[commit.number]
    place, start = place_of(record.key or b""), offset_of(record) + 1
    checkpoint = planter.root / "log-start-offset-checkpoint"
    line = f"{' '.join(place.rsplit('-', 1))} {start}"
    others = [one for one in checkpoint.read_text().splitlines()[2:] if one.rsplit(" ", 1)[0] != line.rsplit(" ", 1)[0]]
    checkpoint.write_text("\n".join(["0", str(len(others) + 1), *others, line, ""]))
    epochs = planter.root / place / "leader-epoch-checkpoint"
    epochs.write_text(f"0\n1\n{epochs.read_text().split()[2]} {start}\n")
    return Planted(commit.segment.log.parent.name)


def offset_of(record: Rec) -> int:
    found: int = struct.unpack_from(">q", record.value or b"", 2)[0]
    return found


register("group below the log start", below_the_start, ["group-behind"])
