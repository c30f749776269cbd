"""Records of `__transaction_state`: what the transaction coordinator remembers of every transactional id.

>>> decode_key(bytes.fromhex("0000 0003 747831"))
'tx1'
>>> value = bytes.fromhex("0000 0000000000000007 0002 0000ea60 04 00000000 00000174876e8000 ffffffffffffffff")
>>> metadata = decode_value(value)
>>> metadata.producer_id, metadata.producer_epoch, metadata.state.name, metadata.partitions
(7, 2, 'COMPLETE_COMMIT', ())
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from logstore.errors import SchemaError
from logstore.topics.coordinator_record import read_key, read_value
from logstore.topics.cursor import errors_at
from logstore.topics.schema import Value

TOPIC = "__transaction_state"

_TABLE = "transaction_state"
_TRANSACTION_LOG = 0


class TransactionState(IntEnum):
    """State of a transaction (`TransactionState`); DEAD and PREPARE_EPOCH_FENCE are never written."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


@dataclass(frozen=True, slots=True)
class TransactionMetadata:
    """The value of a record: one transactional id at one moment.

    `partitions` are the (topic, partition) pairs that the transaction wrote to; timestamps are ms since 1970,
    `start_timestamp_ms` is -1 before the first transaction. `previous_producer_id`, `next_producer_id` (-1) and
    `next_producer_epoch` (-1) matter only where a producer id or epoch is being replaced;
    `client_transaction_version` is 0 where the record does not say it.
    """

    producer_id: int
    producer_epoch: int
    state: TransactionState
    transaction_timeout_ms: int
    partitions: tuple[tuple[str, int], ...]
    start_timestamp_ms: int
    last_update_timestamp_ms: int
    previous_producer_id: int
    next_producer_id: int
    next_producer_epoch: int
    client_transaction_version: int


def decode_key(key: bytes, *, offset: int | None = None) -> str:
    """The transactional id of a record.

    Raises SchemaError, which names `offset`, for an unknown record type and a broken body.
    """
    with errors_at(offset):
        transactional_id: str = read_key(_TABLE, key).fields["transactionalId"]
        return transactional_id


def decode_value(value: bytes | None, *, offset: int | None = None) -> TransactionMetadata | None:
    """The metadata of a record, None for a tombstone: the transactional id is forgotten.

    Raises SchemaError, which names `offset`, for an unknown version or state and a broken body.
    """
    if value is None:
        return None
    with errors_at(offset):
        return _metadata(read_value(_TABLE, _TRANSACTION_LOG, value).fields)


def _metadata(fields: Value) -> TransactionMetadata:
    return TransactionMetadata(
        producer_id=fields["producerId"],
        producer_epoch=fields["producerEpoch"],
        state=_state(fields["transactionStatus"]),
        transaction_timeout_ms=fields["transactionTimeoutMs"],
        partitions=tuple(
            (topic["topic"], partition)
            for topic in fields["transactionPartitions"] or ()
            for partition in topic["partitionIds"]
        ),
        start_timestamp_ms=fields["transactionStartTimestampMs"],
        last_update_timestamp_ms=fields["transactionLastUpdateTimestampMs"],
        previous_producer_id=fields["previousProducerId"],
        next_producer_id=fields["nextProducerId"],
        next_producer_epoch=fields["nextProducerEpoch"],
        client_transaction_version=fields["clientTransactionVersion"],
    )


def _state(status: int) -> TransactionState:
    if status not in TransactionState.__members__.values():
        raise SchemaError(
            f"Unknown transaction state id {status} from the transaction status message",
            found=status,
            java_class="java.lang.IllegalStateException",
        )
    return TransactionState(status)
