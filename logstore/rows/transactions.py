"""Rows about transactions, those that are open, and transactional ids."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from .schema import Int32, TimeMs


class TransactionRow(NamedTuple):
    """A transaction, decided or open, in one of its partitions; without a marker what that would say is null."""

    topic: Annotated[str, "name of the topic"]
    partition: Annotated[Int32, "number of the partition"]
    producer_id: Annotated[int, "of its producer"]
    producer_epoch: Annotated[Int32, "of its last data; its marker may have the next one"]
    state: Annotated[str, "open, committed or aborted"]
    first_offset: Annotated[int, "of its first record"]
    last_offset: Annotated[int, "of its last record"]
    record_count: Annotated[int, "how many records, without those that the cleaner took"]
    first_timestamp: Annotated[TimeMs | None, "of its first batch"]
    last_timestamp: Annotated[TimeMs | None, "of its last batch"]
    marker_offset: Annotated[int | None, "of its marker"]
    marker_timestamp: Annotated[TimeMs | None, "of its marker"]
    marker_epoch: Annotated[Int32 | None, "producer epoch of its marker"]
    coordinator_epoch: Annotated[Int32 | None, "of its marker"]


class CoordinatorStateRow(NamedTuple):
    """What `__transaction_state` says of the transactional id of an open transaction."""

    partition: Annotated[Int32, "number of the partition of `__transaction_state` that has the record"]
    offset: Annotated[int, "of the record"]
    state: Annotated[str, "of the transactional id, as Kafka names it"]
    producer_epoch: Annotated[Int32, "of the transactional id"]
    transaction_timeout_ms: Annotated[Int32, "its timeout"]
    transaction_start_time: Annotated[TimeMs | None, "when its transaction began"]
    partitions: Annotated[tuple[str, ...], "what its transaction wrote to"]


class OpenTransactionRow(NamedTuple):
    """An open transaction in a partition, and what becomes of it."""

    topic: Annotated[str, "name of the topic"]
    partition: Annotated[Int32, "number of the partition"]
    path: Annotated[str, "the directory"]
    transactional_id: Annotated[str | None, "of its producer"]
    producer_id: Annotated[int, "of its producer"]
    producer_epoch: Annotated[Int32, "of its producer"]
    first_offset: Annotated[int, "of its first record"]
    last_offset: Annotated[int, "of its last record"]
    record_count: Annotated[int, "how many records"]
    age_ms: Annotated[int, "how old it is, never negative"]
    age_clock: Annotated[
        str,
        "what tells its age: `coordinator`, `producer` (the timestamp of its first record), or `broker` or `file`: "
        "it is at least so old",
    ]
    coordinator: Annotated[CoordinatorStateRow | None, "what `__transaction_state` says"]
    judged_at: Annotated[TimeMs | None, "as of when it was judged: what was due later is not late; null: no file tells"]
    verdict: Annotated[str, "what becomes of it"]


class ExplanationRow(NamedTuple):
    """Why read_committed consumers of a partition get no further."""

    topic: Annotated[str, "name of the topic"]
    partition: Annotated[Int32, "number of the partition"]
    path: Annotated[str, "the directory"]
    last_stable_offset: Annotated[int, "they get what is below"]
    log_end_offset: Annotated[int, "behind the last record"]
    open_count: Annotated[Int32, "how many transactions are open"]
    why: Annotated[str, "the reason"]
    missing: Annotated[str | None, "the marker that they wait for"]
    advice: Annotated[str | None, "what to do"]
    blocking: Annotated[OpenTransactionRow | None, "the transaction that they wait for"]


class PartitionNameRow(NamedTuple):
    """A partition that a transaction wrote to."""

    topic: Annotated[str, "name of the topic"]
    partition: Annotated[Int32, "number of the partition"]


class TransactionalIdRow(NamedTuple):
    """The last state of a transactional id that has not expired, as `__transaction_state` has it."""

    transactional_id: Annotated[str, "the id"]
    producer_id: Annotated[int, "its producer id"]
    producer_epoch: Annotated[Int32, "its epoch"]
    state: Annotated[str, "as Kafka names it"]
    transaction_timeout_ms: Annotated[Int32, "its timeout"]
    partitions: Annotated[tuple[PartitionNameRow, ...], "what its transaction wrote to"]
    start_timestamp: Annotated[TimeMs | None, "when its transaction began"]
    last_update_timestamp: Annotated[TimeMs | None, "when the state changed"]
    previous_producer_id: Annotated[int, "-1 unless the producer id was replaced"]
    next_producer_id: Annotated[int, "-1 unless the producer id is being replaced"]
    next_producer_epoch: Annotated[Int32, "-1 unless the producer id is being replaced"]
    client_transaction_version: Annotated[Int32, "0 where the record does not have it"]
    offset: Annotated[int, "of the record"]
