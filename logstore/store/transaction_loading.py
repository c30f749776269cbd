"""A transaction coordinator begins: its partitions are replayed, and what was decided is finished."""

from __future__ import annotations

from ..coordinator.transaction_markers import Completion
from ..coordinator.transaction_outcome import TransactionRules
from ..coordinator.transaction_table import TransactionTable
from .coordinated_store import CoordinatedStore
from .coordinator_topic import CoordinatorTopic, log_or_none
from .replaying import ReplayedRecord, replayed
from .transaction_markers import MarkerWriter, StatePartition


def load_states(topic: CoordinatorTopic, rules: TransactionRules) -> list[StatePartition]:
    """All partitions of `__transaction_state` as their logs have them, by number; none if the topic is not there.

    Raises:
        SchemaError, LogstoreError: a record or batch that cannot be read.
    """
    return [_load(topic, number, rules) for number in range(topic.partition_count)]


def _load(topic: CoordinatorTopic, number: int, rules: TransactionRules) -> StatePartition:
    table = TransactionTable(rules, coordinator_epoch=topic.leader_epoch(number))
    last: dict[bytes, ReplayedRecord] = {}  # the last record of a key is all that counts
    for record in replayed(topic.log(number)):
        if isinstance(record, ReplayedRecord) and record.key is not None:
            last[record.key] = record
    for key, record in last.items():
        table.replay(key, record.value, offset=record.offset)
    return StatePartition(number, table)


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
