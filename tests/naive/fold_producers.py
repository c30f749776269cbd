"""Producer state with an object for everything, as Kafka's classes have it, one batch after the other."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

from tests.naive.checksum import crc32c
from tests.support.encoder import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL, Batch

REPLICATION, COORDINATOR, CLIENT = "replication", "coordinator", "client"
INT_MAX = 2**31 - 1
ABORT = 0


class RefusedError(Exception):
    """The name of Kafka's exception, and its message."""


@dataclass(frozen=True)
class Remembered:
    last_sequence: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_sequence(self) -> int:
        first = self.last_sequence - self.offset_delta
        return first if first >= 0 or self.last_sequence < 0 else first + 2**31


@dataclass
class Producer:
    producer_id: int
    epoch: int = -1
    coordinator_epoch: int = -1
    timestamp: int = -1
    first_offset: int | None = None
    batches: list[Remembered] = field(default_factory=list)

    def take_epoch(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.batches = []
            self.epoch = epoch

    def remember(self, batch: Remembered) -> None:
        self.batches = [*self.batches, batch][-5:]

    def last_sequence(self) -> int:
        return self.batches[-1].last_sequence if self.batches else -1


@dataclass(frozen=True)
class Completed:
    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool
    last_stable_offset: int = 0


@dataclass
class Verification:
    lowest_sequence: int
    supports_epoch_bump: bool
    epoch: int


@dataclass
class State:
    partition: str = "t-0"
    producers: dict[int, Producer] = field(default_factory=dict)
    ongoing: dict[int, int] = field(default_factory=dict)
    verification: dict[int, Verification] = field(default_factory=dict)

    def last_stable_offset(self, high_watermark: int) -> int:
        return min([high_watermark, *self.ongoing])

    def drop_expired(self, now: int, expiration: int) -> None:
        for key, producer in list(self.producers.items()):
            if producer.first_offset is None and now - producer.timestamp >= expiration:
                del self.producers[key]

    def snapshot(self) -> bytes:
        entries = b""
        for key, producer in sorted(self.producers.items()):
            last = producer.batches[-1] if producer.batches else Remembered(-1, -1, 0, -1)
            first_offset = -1 if producer.first_offset is None else producer.first_offset
            entries += struct.pack(
                ">qhiqi", key, producer.epoch, last.last_sequence, last.last_offset, last.offset_delta
            )
            entries += struct.pack(">qiq", producer.timestamp, producer.coordinator_epoch, first_offset)
        checked = struct.pack(">i", len(self.producers)) + entries
        return struct.pack(">hI", 1, crc32c(checked)) + checked


@dataclass
class Group:
    """Batches that count together."""

    state: State
    origin: str = REPLICATION
    version: int = -1
    is_verified: Callable[[int], bool] = lambda _: True
    updates: dict[int, Producer] = field(default_factory=dict)
    verification: dict[int, Verification | None] = field(default_factory=dict)
    started: list[tuple[int, int]] = field(default_factory=list)
    completed: list[Completed] = field(default_factory=list)


def replay(state: State, batches: Sequence[Batch]) -> list[Completed]:
    """Each batch counts at once, as a replica."""
    completed = []
    for batch in batches:
        group = Group(state)
        analyze(group, batch)
        completed += commit(group)
    return completed


def commit(group: Group) -> list[Completed]:
    state = group.state
    for producer_id, update in group.updates.items():
        known = state.producers.get(producer_id)
        if known is None:
            state.producers[producer_id] = copy(update)
        else:
            known.take_epoch(update.epoch)
            for batch in update.batches:
                known.remember(batch)
            known.coordinator_epoch, known.timestamp = update.coordinator_epoch, update.timestamp
            known.first_offset = update.first_offset
    for first_offset, producer_id in group.started:
        state.ongoing[first_offset] = producer_id
    done = []
    for transaction in group.completed:
        others = [first for first, pid in state.ongoing.items() if pid != transaction.producer_id]
        done.append(replace(transaction, last_stable_offset=min(others, default=transaction.last_offset + 1)))
        if state.ongoing.pop(transaction.first_offset, None) is None:
            raise RefusedError("IllegalArgumentException", "")
    return done


def analyze(group: Group, batch: Batch) -> Remembered | None:
    """The batch that a client's batch repeats, if it does."""
    if batch.producer_id < 0:
        return None
    state = group.state
    known = state.producers.get(batch.producer_id)
    if group.origin == CLIENT and known is not None and known.epoch == batch.producer_epoch:
        for cached in known.batches:
            if (cached.first_sequence, cached.last_sequence) == (batch.base_sequence, last_sequence(batch)):
                return cached
    if group.origin != REPLICATION and batch.flags & TRANSACTIONAL:
        check_before(group, batch, known)
    verification = group.verification.setdefault(batch.producer_id, state.verification.get(batch.producer_id))
    fresh = copy(known) if known is not None else Producer(batch.producer_id)
    fresh.batches = []
    update = group.updates.setdefault(batch.producer_id, fresh)
    if not batch.flags & CONTROL:
        work_data(group, batch, known or Producer(batch.producer_id), update, verification)
    elif batch.records:
        work_marker(group, batch, update)
    current = state.verification.get(batch.producer_id)
    if batch.flags & TRANSACTIONAL and current is not None:
        is_next = current.supports_epoch_bump and batch.flags & CONTROL and batch.producer_epoch == current.epoch
        if not is_next:
            del state.verification[batch.producer_id]
    return None


def analyze_all(group: Group, batches: Sequence[Batch]) -> None:
    for batch in batches:
        analyze(group, batch)


def check_before(group: Group, batch: Batch, known: Producer | None) -> None:
    if known is not None and known.first_offset is not None and known.epoch == batch.producer_epoch:
        return
    if known is not None and batch.producer_epoch < known.epoch:
        raise RefusedError(
            "InvalidProducerEpochException",
            f"Epoch of producer {batch.producer_id} is {batch.producer_epoch}, which is smaller than the last seen "
            f"epoch {known.epoch}",
        )
    if not batch.flags & CONTROL and not group.is_verified(batch.producer_id):
        raise RefusedError("InvalidTxnStateException", "Record was not part of an ongoing transaction")


def work_data(group: Group, batch: Batch, known: Producer, update: Producer, verification: Verification | None) -> None:
    check_epoch(group, batch, update, -1)
    if group.origin == CLIENT:
        check_sequence(group, batch, known, update, verification)
    update.take_epoch(batch.producer_epoch)
    last_offset = batch.base_offset + batch.last_offset_delta
    update.remember(Remembered(last_sequence(batch), last_offset, batch.last_offset_delta, batch.max_timestamp))
    update.timestamp = batch.max_timestamp
    is_transactional = bool(batch.flags & TRANSACTIONAL)
    if update.first_offset is not None and not is_transactional:
        raise RefusedError(
            "InvalidTxnStateException",
            f"Expected transactional write from producer {batch.producer_id} at offset (offset={batch.base_offset}, "
            f"segment=[-1:-1]) in partition {group.state.partition}",
        )
    if update.first_offset is None and is_transactional:
        update.first_offset = batch.base_offset
        group.started.append((batch.base_offset, batch.producer_id))


def work_marker(group: Group, batch: Batch, update: Producer) -> None:
    record = batch.records[0]
    kind = struct.unpack(">hh", record.key or b"")[1]
    coordinator_epoch = struct.unpack(">hi", record.value or b"")[1]
    check_epoch(group, batch, update, max(group.version, 0))
    if update.coordinator_epoch > coordinator_epoch and group.origin != REPLICATION:
        raise RefusedError(
            "TransactionCoordinatorFencedException",
            f"Invalid coordinator epoch for producerId {batch.producer_id} at offset {batch.base_offset} in partition "
            f"{group.state.partition}: {coordinator_epoch} (zombie), {update.coordinator_epoch} (current)",
        )
    if update.first_offset is not None:
        group.completed.append(Completed(batch.producer_id, update.first_offset, batch.base_offset, kind == ABORT))
    update.take_epoch(batch.producer_epoch)
    is_appended = batch.flags & LOG_APPEND_TIME
    update.timestamp = batch.max_timestamp if is_appended else batch.base_timestamp + record.timestamp_delta
    update.coordinator_epoch, update.first_offset = coordinator_epoch, None


def check_epoch(group: Group, batch: Batch, update: Producer, version: int) -> None:
    epoch = batch.producer_epoch
    is_old = epoch <= update.epoch if version >= 2 else epoch < update.epoch
    is_retry = version >= 2 and epoch == update.epoch and (update.first_offset is None or epoch == 32767)
    if is_old and not is_retry and group.origin != REPLICATION:
        raise RefusedError(
            "InvalidProducerEpochException",
            f"Epoch of producer {batch.producer_id} at offset {batch.base_offset} in {group.state.partition} is "
            f"{epoch}, which is {'<=' if version >= 2 else '<'} the last seen epoch {update.epoch} (TV{version})",
        )


def check_sequence(
    group: Group, batch: Batch, known: Producer, update: Producer, verification: Verification | None
) -> None:
    sequence, epoch = batch.base_sequence, batch.producer_epoch
    place = f"at offset {batch.base_offset} in partition {group.state.partition}: "
    prefix = f"sequence number for producer {batch.producer_id} {place}"
    text = None
    if verification is not None and verification.supports_epoch_bump and sequence != 0 and not known.batches:
        text = (
            f"Invalid {prefix}{sequence} (incoming seq. number). Expected sequence 0 for transactions v2 idempotent "
            "producer with no existing state."
        )
    elif verification is not None and sequence > verification.lowest_sequence:
        text = (
            f"Out of order {prefix}{sequence} (incoming seq. number), {verification.lowest_sequence} (earliest seen "
            "sequence)"
        )
    elif epoch != update.epoch:
        if sequence != 0 and update.epoch != -1:
            text = (
                f"Invalid sequence number for new epoch of producer {batch.producer_id} {place}{epoch} (request "
                f"epoch), {sequence} (seq. number), {update.epoch} (current producer epoch)"
            )
    else:
        last = update.last_sequence() if update.batches else known.last_sequence() if epoch == known.epoch else -1
        follows = sequence == last + 1 or (sequence == 0 and last == INT_MAX)
        if known.epoch != -1 and not follows:
            text = f"Out of order {prefix}{sequence} (incoming seq. number), {last} (current end sequence number)"
    if text is not None:
        raise RefusedError("OutOfOrderSequenceException", text)


def last_sequence(batch: Batch) -> int:
    if batch.base_sequence == -1:
        return -1
    return (batch.base_sequence + batch.last_offset_delta) % 2**31


def rows_by_producer(producer_ids: Sequence[int]) -> dict[int, int]:
    return {producer_id: row for row, producer_id in enumerate(producer_ids)}
