"""Errors for batches that a producer state refuses, in Kafka's words (`ProducerAppendInfo`, `UnifiedLog`)."""

from __future__ import annotations

from ..columns.batch_table import BatchTable
from ..errors import (
    InvalidProducerEpochError,
    InvalidTxnStateError,
    LogstoreError,
    OutOfOrderSequenceError,
    TransactionCoordinatorFencedError,
    UsageError,
)
from ..kernels.fold import producer_struct as kernel
from .producer_state import ProducerState

_EPOCH_BUMPING_VERSION = 2  # transaction version whose markers carry an increased epoch

_WORDS: dict[int, tuple[type[LogstoreError], str]] = {
    kernel.SMALLER_EPOCH: (
        InvalidProducerEpochError,
        "Epoch of producer {id} is {epoch}, which is smaller than the last seen epoch {detail}",
    ),
    kernel.NOT_VERIFIED: (InvalidTxnStateError, "Record was not part of an ongoing transaction"),
    kernel.OLD_EPOCH: (
        InvalidProducerEpochError,
        "Epoch of producer {id} at offset {offset} in {partition} is {epoch}, which is {comparison} the last seen "
        "epoch {detail} (TV{second})",
    ),
    kernel.FIRST_SEQUENCE_NOT_ZERO: (
        OutOfOrderSequenceError,
        "Invalid sequence number for producer {id} at offset {offset} in partition {partition}: {sequence} (incoming "
        "seq. number). Expected sequence 0 for transactions v2 idempotent producer with no existing state.",
    ),
    kernel.SEQUENCE_ABOVE_LOWEST: (
        OutOfOrderSequenceError,
        "Out of order sequence number for producer {id} at offset {offset} in partition {partition}: {sequence} "
        "(incoming seq. number), {detail} (earliest seen sequence)",
    ),
    kernel.NEW_EPOCH_SEQUENCE: (
        OutOfOrderSequenceError,
        "Invalid sequence number for new epoch of producer {id} at offset {offset} in partition {partition}: {epoch} "
        "(request epoch), {sequence} (seq. number), {detail} (current producer epoch)",
    ),
    kernel.SEQUENCE_GAP: (
        OutOfOrderSequenceError,
        "Out of order sequence number for producer {id} at offset {offset} in partition {partition}: {sequence} "
        "(incoming seq. number), {detail} (current end sequence number)",
    ),
    kernel.OLD_COORDINATOR_EPOCH: (
        TransactionCoordinatorFencedError,
        "Invalid coordinator epoch for producerId {id} at offset {offset} in partition {partition}: {second} "
        "(zombie), {detail} (current)",
    ),
    kernel.NOT_TRANSACTIONAL: (
        InvalidTxnStateError,
        "Expected transactional write from producer {id} at offset (offset={offset}, segment=[-1:-1]) in partition "
        "{partition}",
    ),
    kernel.NO_TRANSACTION_VERSION: (
        UsageError,
        "transactionVersion must be explicitly specified, cannot use default value TV_UNKNOWN for origin COORDINATOR",
    ),
}


def refusal(state: ProducerState, status: int, table: BatchTable | None) -> LogstoreError:
    """Return the error for a kernel status at the row where it stopped; `table` is None for `apply_updates`."""
    struct = state.buffers.struct
    if status == kernel.NOT_STARTED:
        return _not_started(state, struct.detail)
    if table is None:
        raise ValueError(f"status {status} is about a row of a table")
    batch = table.row(struct.stop_row)
    error_class, words = _WORDS[status]
    text = words.format(
        id=batch["producer_id"],
        epoch=batch["producer_epoch"],
        sequence=batch["base_sequence"],
        offset=batch["base_offset"],
        partition=state.topic_partition,
        detail=struct.detail,
        second=struct.second_detail,
        comparison="<=" if struct.second_detail >= _EPOCH_BUMPING_VERSION else "<",
    )
    error = error_class(text, position=batch["position"], offset=batch["base_offset"])
    if status == kernel.NO_TRANSACTION_VERSION:
        error.java_class = "java.lang.IllegalArgumentException"
    return error


def _not_started(state: ProducerState, number: int) -> InvalidTxnStateError:
    producer_id, first_offset, last_offset, is_aborted, _ = state.buffers.struct.completed[number].tolist()
    return InvalidTxnStateError(
        f"Attempted to complete transaction CompletedTxn[producerId={producer_id}, firstOffset={first_offset}, "
        f"lastOffset={last_offset}, isAborted={str(bool(is_aborted)).lower()}] on partition {state.topic_partition} "
        "which was not started",
        offset=last_offset,
        java_class="java.lang.IllegalArgumentException",
    )
