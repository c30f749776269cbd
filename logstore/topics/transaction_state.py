"""Records of `__transaction_state`: the last state of each transactional id.

>>> decode_key(bytes.fromhex("0000 0003 747831"))
'tx1'
>>> value = bytes.fromhex("0000 0000000000000007 0002 0000ea60 04 00000000 00000174876e8000 ffffffffffffffff")
>>> metadata = decode_value(value)
>>> metadata.producer_id, metadata.producer_epoch, metadata.state.name, metadata.partitions
(7, 2, 'COMPLETE_COMMIT', ())
>>> encode_value(metadata, version=0) == value
True
"""

from __future__ import annotations

import struct
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from ..errors import SchemaError
from ..messages.cursor import errors_at
from ..messages.schema import Value
from . import record_types
from .frames import (
    is_known_type,
    read_key,
    read_type,
    read_value,
    read_version,
    write_key,
    write_value,
)

TOPIC = "__transaction_state"

_TABLE = "transaction_state"
_TRANSACTION_LOG = 0
_HEAD = struct.Struct(">hqhib")  # version, producer id, epoch, timeout, state; then the partitions
_TIMES = struct.Struct(">qq")  # last update, start; then the tagged fields

# attribute: field in the table; state and partitions have another form there
_FIELDS_OF_VERSION_0 = {
    "producer_id": "producerId",
    "producer_epoch": "producerEpoch",
    "transaction_timeout_ms": "transactionTimeoutMs",
    "start_timestamp_ms": "transactionStartTimestampMs",
    "last_update_timestamp_ms": "transactionLastUpdateTimestampMs",
    "client_transaction_version": "clientTransactionVersion",
}
_FIELDS = {
    **_FIELDS_OF_VERSION_0,
    "previous_producer_id": "previousProducerId",
    "next_producer_id": "nextProducerId",
    "next_producer_epoch": "nextProducerEpoch",
}


class TransactionState(IntEnum):
    """State of a transaction (`TransactionState`); Kafka never writes DEAD and PREPARE_EPOCH_FENCE."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7


#: states without a transaction: a new one may begin, and the transactional id may expire
IDLE = frozenset({TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
#: states of a decided transaction that waits for its markers
PREPARED = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
#: state: its valid previous states (`TransactionState.VALID_PREVIOUS_STATES`)
VALID_PREVIOUS_STATES = {
    TransactionState.EMPTY: IDLE,
    TransactionState.ONGOING: IDLE | {TransactionState.ONGOING},
    TransactionState.PREPARE_COMMIT: frozenset({TransactionState.ONGOING}),
    TransactionState.PREPARE_ABORT: IDLE | {TransactionState.ONGOING},
    TransactionState.COMPLETE_COMMIT: frozenset({TransactionState.PREPARE_COMMIT}),
    TransactionState.COMPLETE_ABORT: frozenset({TransactionState.PREPARE_ABORT}),
}


class TransactionMetadata(NamedTuple):
    """The value of a record: the state of a transactional id; timestamps are ms since 1970.

    Attributes:
        partitions: (topic, partition) of what the transaction wrote to.
        start_timestamp_ms: -1 before the first transaction.
        previous_producer_id, next_producer_id, next_producer_epoch: -1 unless a producer id or epoch is replaced.
        client_transaction_version: 0 where the record does not have it.
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


#: a value in state EMPTY, whose partitions are null: a single byte
_NOTHING = TransactionMetadata(0, 0, TransactionState.EMPTY, 0, (), 0, 0, -1, -1, -1, 0)


def decode_key(key: bytes, *, offset: int | None = None) -> str:
    """Return the transactional id in the key of a record; SchemaError names `offset` for a broken one."""
    with errors_at(offset):
        transactional_id: str = read_key(_TABLE, key).fields["transactionalId"]
        return transactional_id


def decode_value(value: bytes | None, *, offset: int | None = None) -> TransactionMetadata | None:
    """Decode the value of a record; return None for a tombstone, which removes the transactional id.

    Raises SchemaError, which names `offset`, for an unknown version or state and a broken body.
    """
    if value is None:
        return None
    with errors_at(offset):
        return _metadata(read_value(_TABLE, _TRANSACTION_LOG, value).fields)


def unknown_version(key: bytes, value: bytes | None) -> tuple[str, int] | None:
    """Return "key" or "value" and its version if only a newer Kafka can read it; None if all can be read.

    A broker skips such records (`UnknownKeyVersion` and `UnknownValueVersion` of `TransactionLog`). Raises
    SchemaError for bytes that are too few for a version.

    >>> unknown_version(bytes.fromhex("0001 0003 747831"), None)
    ('key', 1)
    """
    if not is_known_type(_TABLE, record_type := read_type(key)):
        return "key", record_type
    if value is None:
        return None
    version = read_version(value)
    return None if version in record_types(_TABLE, "Value")[record_type].versions else ("value", version)


def encode_key(transactional_id: str) -> bytes:
    """Encode the key of a transactional id's records.

    >>> encode_key("tx1").hex()
    '00000003747831'
    """
    return write_key(_TABLE, _TRANSACTION_LOG, {"transactionalId": transactional_id})


def encode_value(metadata: TransactionMetadata, *, version: int = 1) -> bytes:
    """Encode the value of a record as `TransactionLog.valueToBytes` does, in `version` 0 or 1.

    Kafka writes version 1 where the feature `transaction.version` is 1 or more. Version 0 has no previous and no next
    producer id, and its `client_transaction_version` is 0. Partitions are grouped by topic; topics and partitions keep
    their order. Raises SchemaError for partitions in state EMPTY and values that the schema refuses.
    """
    if metadata.state == TransactionState.EMPTY and metadata.partitions:
        raise SchemaError(
            f"Transaction is not expected to have any partitions since its state is Empty: {metadata}",
            java_class="java.lang.IllegalStateException",
        )
    if version != 1:
        return _written(metadata, version)
    # Every transaction logs three of these. `struct` takes 1 µs, the schema 10; it writes only the parts that seldom
    # change, which are cached.
    try:
        head = _HEAD.pack(
            version,
            metadata.producer_id,
            metadata.producer_epoch,
            metadata.transaction_timeout_ms,
            metadata.state,
        )
        times = _TIMES.pack(metadata.last_update_timestamp_ms, metadata.start_timestamp_ms)
    except struct.error:
        return _written(metadata, version)  # which says what is wrong
    partitions = _partitions_bytes(metadata.partitions if metadata.state else None)
    return b"".join((head, partitions, times, _tagged_bytes(*metadata[7:])))


@lru_cache(maxsize=1024)
def _partitions_bytes(partitions: tuple[tuple[str, int], ...] | None) -> bytes:
    """Return the bytes of the partitions in a value of version 1, as the schema writes them; None is null."""
    metadata = _NOTHING
    if partitions is not None:
        metadata = _NOTHING._replace(state=TransactionState.ONGOING, partitions=partitions)
    value = _written(metadata, 1)
    return value[_HEAD.size : len(value) - _TIMES.size - len(_tagged_bytes(*_NOTHING[7:]))]


@lru_cache(maxsize=1024)
def _tagged_bytes(
    previous_producer_id: int, next_producer_id: int, next_producer_epoch: int, client_transaction_version: int
) -> bytes:
    """Return the tagged fields at the end of a value of version 1, as the schema writes them."""
    tagged = previous_producer_id, next_producer_id, next_producer_epoch, client_transaction_version
    return _written(TransactionMetadata(*_NOTHING[:7], *tagged), 1)[_HEAD.size + 1 + _TIMES.size :]


def _written(metadata: TransactionMetadata, version: int) -> bytes:
    names = _FIELDS if version >= 1 else _FIELDS_OF_VERSION_0
    fields: Value = {field_name: getattr(metadata, name) for name, field_name in names.items()}
    fields["transactionStatus"] = metadata.state.value
    fields["transactionPartitions"] = _topics(metadata.partitions) if metadata.state else None
    return write_value(_TABLE, _TRANSACTION_LOG, version, fields)


def _topics(partitions: tuple[tuple[str, int], ...]) -> list[Value]:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return [{"topic": topic, "partitionIds": partition_ids} for topic, partition_ids in topics.items()]


def _metadata(fields: Value) -> TransactionMetadata:
    partitions = tuple(
        (topic["topic"], partition)
        for topic in fields["transactionPartitions"] or ()
        for partition in topic["partitionIds"]
    )
    values = {name: fields[field_name] for name, field_name in _FIELDS.items()}
    return TransactionMetadata(**values, state=_state(fields["transactionStatus"]), partitions=partitions)


def _state(status: int) -> TransactionState:
    if status not in TransactionState.__members__.values():
        raise SchemaError(
            f"Unknown transaction state id {status} from the transaction status message",
            found=status,
            java_class="java.lang.IllegalStateException",
        )
    return TransactionState(status)
