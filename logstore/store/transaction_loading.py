"""A transaction coordinator begins: its partitions are replayed, and what was decided is finished."""

from __future__ import annotations

import logging

from ..coordinator.transaction_markers import Completion
from ..coordinator.transaction_outcome import TransactionRules
from ..coordinator.transaction_table import TransactionTable
from ..log.partition_log import PartitionLog
from ..topics.transaction_state import unknown_version
from .coordinated_store import CoordinatedStore
from .coordinator_topic import CoordinatorTopic, log_or_none
from .replaying import ReplayedRecord, errors_of, replayed
from .transaction_markers import MarkerWriter, StatePartition

_LOGGER = logging.getLogger("logstore")


def load_states(topic: CoordinatorTopic, rules: TransactionRules) -> list[StatePartition]:
    """All partitions of `__transaction_state` as their logs have them, by number; none if the topic is not there.

    Records that only a newer Kafka can read are passed over, as `TransactionStateManager` does. Where one is damaged a
    broker goes on without what comes behind it, and forgets whom it has fenced; here nothing is opened then.

    Raises:
        SchemaError, LogstoreError: a record or batch that cannot be read, with its path and offset.
    """
    return [_load(topic, number, rules) for number in range(topic.partition_count)]


def _load(topic: CoordinatorTopic, number: int, rules: TransactionRules) -> StatePartition:
    table, log = TransactionTable(rules, coordinator_epoch=topic.leader_epoch(number)), topic.log(number)
    for key, record in _last_records(log).items():
        with errors_of(log, record.offset):
            table.replay(key, record.value)
    return StatePartition(number, table)


def _last_records(log: PartitionLog) -> dict[bytes, ReplayedRecord]:
    """The last record of each key, which is all that counts."""
    last: dict[bytes, ReplayedRecord] = {}
    passed_over: set[tuple[str, int]] = set()
    for record in replayed(log):
        if isinstance(record, ReplayedRecord) and record.key is not None:
            with errors_of(log, record.offset):
                unknown = unknown_version(record.key, record.value)
            if unknown is None:
                last[record.key] = record
            else:
                passed_over.add(unknown)
    for what, version in sorted(passed_over):
        _LOGGER.warning(
            "Unknown message %s with version %d while loading transaction state from %s. Ignoring it. "
            "It could be a left over from an aborted upgrade.",
            *(what, version, log.directory.path),
        )
    return last


def resume(store: CoordinatedStore, state: StatePartition, markers: MarkerWriter) -> None:
    """Finish the transactions that were decided before (`loadTransactionsForTxnTopicPartition`)."""
    with state.lock:
        unfinished = state.table.unfinished(now_ms=store.now_ms())
    for completion in unfinished:
        _pass_over_later(store, state, completion)
        markers.complete(state, completion)


def _pass_over_later(store: CoordinatedStore, state: StatePartition, completion: Completion) -> None:
    """Partitions that have data of a later transaction of the producer had the marker already.

    That is so where a power failure took the record of the completion, and left what came after it.
    """
    marker = completion.marker
    for topic, number in marker.partitions:
        log = log_or_none(store, topic, number)
        if log is None:
            continue
        with log.lock:
            entry = log.producers.state.get(marker.producer_id)
        if entry is None:
            continue
        is_open_later = marker.transaction_version >= 2 and entry.current_txn_first_offset is not None
        if entry.producer_epoch > marker.producer_epoch or (
            is_open_later and entry.producer_epoch == marker.producer_epoch
        ):
            with state.lock:
                state.table.marker_written(completion, (topic, number))
