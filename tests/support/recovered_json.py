"""A recovered partition as the oracle tells it: plain values, under the names of Kafka's own classes and tools."""

from __future__ import annotations

from typing import Any

from logstore.folds.producer_state import ProducerEntry
from logstore.layout.batch import NO_SEQUENCE
from logstore.log.load.recovered import RecoveredLog, RecoveredSegment


def as_json(log: RecoveredLog) -> dict[str, Any]:
    """Return `log` as plain values, under the names of Kafka's own classes and tools."""
    return {
        "topicId": log.topic_id,
        "logStartOffset": log.log_start_offset,
        "logEndOffset": log.log_end_offset,
        "lastStableOffset": log.last_stable_offset,
        "highWatermark": log.high_watermark,
        "recoveryPoint": log.recovery_point,
        "segments": [_segment_json(segment) for segment in log.segments],
        "leaderEpochs": [list(entry) for entry in log.leader_epochs],
        "producers": [_producer_json(producer) for producer in log.producers],
        "repaired": [repair._asdict() for repair in log.repairs],
    }


def _segment_json(segment: RecoveredSegment) -> dict[str, Any]:
    return {
        "base": segment.base_offset,
        "bytes": segment.size,
        "next": segment.next_offset,
        "indexEntries": segment.index_entry_count,
        "timeIndexEntries": segment.time_index_entry_count,
        "abortedTxns": [list(transaction) for transaction in segment.aborted_transactions],
    }


def _producer_json(producer: ProducerEntry) -> dict[str, Any]:
    first_offset = producer.current_txn_first_offset
    return {
        "producerId": producer.producer_id,
        "producerEpoch": producer.producer_epoch,
        "lastSequence": producer.batches[-1].last_sequence if producer.batches else NO_SEQUENCE,
        "lastTimestamp": producer.last_timestamp,
        "coordinatorEpoch": producer.coordinator_epoch,
        "currentTxnStartOffset": -1 if first_offset is None else first_offset,
    }
