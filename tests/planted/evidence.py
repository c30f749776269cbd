"""Faults that only other files contradict, such as those that the same controller or coordinator wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from logstore.topics.transaction_state import PREPARED, TransactionMetadata, TransactionState
from tests.planted.batches import is_only_record_of_marker
from tests.planted.coordinators import OF_MARKERS, State, is_followed, state
from tests.planted.directories import NO_OP_SIZE, lines_of, write_lines
from tests.planted.markers import ALSO as OF_LOST_MARKERS
from tests.planted.planter import (
    OF_OFFSETS,
    OF_PRODUCERS,
    Planted,
    Planter,
    UnsuitableError,
    at_batch,
    in_segment,
    register,
)
from tests.planted.segment import Segment
from tests.support.encoder import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL

METADATA = "__cluster_metadata"
OPEN_SIZE_MIN = 1 << 20  # of an index that was not closed, which is as long as it may become
INTERNAL = (METADATA, "__consumer_offsets", "__transaction_state", "__share_group_state")
HIGH_WATERMARKS, RECOVERY_POINTS = "replication-offset-checkpoint", "recovery-point-offset-checkpoint"


def header(topic: str, field: str, delta: int, *, is_control: bool = False) -> None:
    """Register a field that no broker writes in a batch of an internal topic."""

    def suits(segment: Segment, row: int) -> bool:
        is_right = bool(segment.get(row, "attributes") & CONTROL) == is_control
        return is_right and segment.get(row, "producer_id") < 0 and segment.get(row, "record_count") > 0

    def plant(planter: Planter) -> Planted:
        segment, row = planter.batch(suits, topic)
        segment.put(row, field, segment.get(row, field) + delta)
        return at_batch(segment, row)

    what = "a control batch" if is_control else "a batch"
    register(f"{field.replace('_', ' ')} {delta:+} off in {what} of {topic}", plant, ["log-header"], ["log-records"])


for topic in INTERNAL:
    for field in ("producer_epoch", "base_sequence"):
        header(topic, field, 1)
header(METADATA, "attributes", LOG_APPEND_TIME)
for field, delta in (("attributes", TRANSACTIONAL), ("producer_epoch", 1), ("base_sequence", 1)):
    header(METADATA, field, delta, is_control=True)


def made_control(planter: Planter) -> Planted:
    """One with a NoOpRecord, of which no other file tells."""
    segment, row = planter.batch(lambda segment, row: len(segment.batches[row]) == NO_OP_SIZE, METADATA)
    segment.put(row, "attributes", segment.get(row, "attributes") | CONTROL)
    return at_batch(segment, row)


register(f"batch of {METADATA} made control", made_control, ["internal-record"])


def marker_time(field: str, delta: int) -> None:
    def plant(planter: Planter) -> Planted:
        segment, row = planter.batch(is_only_record_of_marker)
        if segment.get(row, "base_timestamp") != segment.get(row, "max_timestamp"):
            raise UnsuitableError
        segment.put(row, field, segment.get(row, field) + delta)
        return at_batch(segment, row)

    register(
        f"marker whose {field} is {delta:+} off".replace("_", " "), plant, ["log-header"], OF_OFFSETS | OF_PRODUCERS
    )


for field in ("base_timestamp", "max_timestamp"):
    for delta in (-1, 1):
        marker_time(field, delta)


def without_epoch(planter: Planter) -> Planted:
    """The first batch of a log, where the checkpoint has its epoch."""
    segment, row = planter.batch(lambda segment, row: row == 0 and not int(segment.log.stem))
    segment.put(row, "leader_epoch", -1, keeps_crc=True)
    return at_batch(segment, row)


register("first batch without a leader epoch", without_epoch, ["log-leader-epoch"])


def epochs_begin_late(planter: Planter) -> Planted:
    """Of a topic whose records may be deleted, in a broker's first life."""
    segment, _ = planter.batch(lambda segment, row: segment.last_offset(row) >= 3 and not int(segment.log.stem))
    path = segment.log.with_name("leader-epoch-checkpoint")
    starts = {"-".join(line[:2]) for line in lines_of(planter, "log-start-offset-checkpoint")}
    version, count, first, *others = path.read_text().splitlines()
    if path.parent.name in starts or first.split()[1] != "0":
        raise UnsuitableError
    path.write_text("\n".join([version, count, f"{first.split()[0]} 3", *others]) + "\n")
    return Planted(path.parent.name)


register("leader epoch that starts later", epochs_begin_late, ["leader-epochs"], ["offsets-lost"])


def checkpoint(name: str, word: str, change: Callable[[int], int | None]) -> None:
    """Register another offset of a log that was closed, or none."""

    def plant(planter: Planter) -> Planted:
        entries = lines_of(planter, name)
        here = {path.name for path in planter.partitions()}
        entry = planter.one_of(one for one in entries if "-".join(one[:2]) in here and int(one[2]) > 3)
        offset, place = change(int(entry[2])), entries.index(entry)
        entries[place : place + 1] = [] if offset is None else [[*entry[:2], str(offset)]]
        write_lines(planter, name, entries)
        return Planted("-".join(entry[:2]))

    register(word, plant, ["checkpoint-offset"])


for delta in (-1, -3):
    checkpoint(HIGH_WATERMARKS, f"high watermark {delta:+} off", lambda old, delta=delta: old + delta)
checkpoint(HIGH_WATERMARKS, "high watermark left out", lambda old: None)
checkpoint(RECOVERY_POINTS, "recovery point left out", lambda old: None)


def last_snapshot_removed(planter: Planter) -> Planted:
    directory = planter.partition(lambda path: len(list(path.glob("*.snapshot"))) > 1)
    max(directory.glob("*.snapshot")).unlink()
    return Planted(directory.name)


register("snapshot of the end removed", last_snapshot_removed, ["snapshot-missing"])


def quorum_state(planter: Planter) -> Path:
    """Of a metadata log that was closed: a copy may hold one that is older or newer than the log."""
    directory = planter.root / f"{METADATA}-0"
    if any(index.stat().st_size > OPEN_SIZE_MIN for index in directory.glob("*.index")):
        raise UnsuitableError
    return directory / "quorum-state"


def election(word: str, field: str, change: Callable[[int], int]) -> None:
    def plant(planter: Planter) -> Planted:
        path = quorum_state(planter)
        content = json.loads(path.read_text())
        path.write_text(json.dumps(content | {field: change(content[field])}))
        return Planted(path.parent.name)

    register(f"quorum-state {word}", plant, ["quorum-state"])


election("of an earlier epoch", "leaderEpoch", lambda old: old - 1)
election("of a later epoch", "leaderEpoch", lambda old: old + 1)
election("of another leader", "leaderId", lambda old: old + 1)
election("with a vote for nobody", "votedId", lambda old: 4242)


def election_forgotten(planter: Planter) -> Planted:
    path = quorum_state(planter)
    path.unlink()
    return Planted(path.parent.name)


register("quorum-state removed", election_forgotten, ["quorum-state"])


def id_of_metadata(planter: Planter) -> Planted:
    path = planter.root / f"{METADATA}-0" / "partition.metadata"
    path.write_text(re.sub("topic_id: A", "topic_id: B", path.read_text()))
    return Planted(path.parent.name)


register("topic id of the metadata log", id_of_metadata, ["partition-metadata"])


def metadata_snapshot(word: str, change: Callable[[Segment, int], None]) -> None:
    """Register a batch that no controller writes into a snapshot."""

    def plant(planter: Planter) -> Planted:
        segment = Segment(planter.one_of(sorted(planter.root.glob(f"{METADATA}-0/*.checkpoint"))))
        change(segment, planter.dice.below(len(segment.batches)))
        return in_segment(segment)

    register(f"snapshot of the metadata log {word}", plant, ["metadata-snapshot"], ["internal-record"])


def added(field: str, delta: int) -> Callable[[Segment, int], None]:
    keeps_crc = field in ("base_offset", "leader_epoch")
    return lambda segment, row: segment.put(row, field, segment.get(row, field) + delta, keeps_crc=keeps_crc)


for field in ("base_offset", "leader_epoch", "last_offset_delta", "max_timestamp", "producer_id", "producer_epoch"):
    metadata_snapshot(f"with another {field}".replace("_", " "), added(field, 1))
metadata_snapshot("with another base sequence", added("base_sequence", 1))
metadata_snapshot("of transactions", added("attributes", TRANSACTIONAL))


def snapshot_renamed(word: str, name: Callable[[int, int], tuple[int, int]]) -> None:
    def plant(planter: Planter) -> Planted:
        path = planter.one_of(one for one in planter.root.glob(f"{METADATA}-0/*.checkpoint") if int(one.stem[:20]))
        offset, epoch = name(int(path.stem[:20]), int(path.stem[21:]))
        path.rename(path.with_name(f"{offset:020d}-{epoch:010d}.checkpoint"))
        return Planted(path.parent.name)

    register(f"snapshot of the metadata log {word}", plant, ["metadata-snapshot"], ["startup-file"])


snapshot_renamed("beyond the end", lambda offset, epoch: (offset + 100_000, epoch))
snapshot_renamed("of a later epoch", lambda offset, epoch: (offset, epoch + 1))


def changed(word: str, suits: Callable[[State], object], change: Callable[[TransactionMetadata], object]) -> None:
    """Register a record of a transactional id that its coordinator cannot have written."""

    def plant(planter: Planter) -> Planted:
        one = state(planter, suits)
        metadata = change(one.metadata)
        assert isinstance(metadata, TransactionMetadata)
        one.write(metadata)
        return Planted(one.segment.log.parent.name)

    register(f"state {word}", plant, ["coordinator-state"], OF_MARKERS)


def has_versions(one: State) -> bool:
    """Whether the record has the fields of version 1."""
    return (one.segment.records(one.row)[0].value or b"")[:2] != b"\x00\x00"


changed(
    "of a first record that has begun", lambda one: not is_followed(one), lambda old: old._replace(start_timestamp_ms=7)
)
changed(
    "of a first record of a later epoch", lambda one: not is_followed(one), lambda old: old._replace(producer_epoch=3)
)
changed(
    "with another previous producer",
    lambda one: has_versions(one) and is_followed(one),
    lambda old: old._replace(previous_producer_id=old.producer_id + 5),
)
changed("with a next producer", has_versions, lambda old: old._replace(next_producer_id=old.producer_id + 5))
changed("of an unknown version of transactions", has_versions, lambda old: old._replace(client_transaction_version=3))


def forgotten(planter: Planter) -> Planted:
    """A tombstone in the place of a transaction that is under way."""
    one = state(planter, lambda one: one.metadata.state in {*PREPARED, TransactionState.ONGOING} and is_followed(one))
    record = one.segment.records(one.row)[0]
    one.segment.write_records(one.row, [replace(record, value=None)])
    one.segment.save()
    return Planted(one.segment.log.parent.name)


register("transactional id forgotten in a transaction", forgotten, ["coordinator-state"], OF_MARKERS | OF_LOST_MARKERS)
