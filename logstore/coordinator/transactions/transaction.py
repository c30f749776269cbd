"""The state of one transactional id in its coordinator, and its record (`TransactionMetadata`).

>>> transaction = new_transaction("billing", producer_id=4000, timeout_ms=60000, now_ms=1600000000000)
>>> transaction.state.name, transaction.producer_epoch, transaction.partitions
('EMPTY', -1, frozenset())
>>> key, value = log_record(transaction, version=1)
>>> from_record(key, value) == transaction
True
"""

from __future__ import annotations

from functools import lru_cache
from itertools import starmap
from typing import NamedTuple

from ...layout.batch import NO_PRODUCER_ID
from ...layout.record import PRODUCER_EPOCH_MAX
from ...model import TopicPartition
from ...topics.transaction_state import (
    TransactionMetadata,
    TransactionState,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)

_key_of = lru_cache(maxsize=1024)(encode_key)  # the three records of a transaction have the same key

NO_PRODUCER_EPOCH = -1
NO_TIMESTAMP = -1
#: the last epoch of a client; the next one is kept for fencing and for markers
LAST_CLIENT_EPOCH = PRODUCER_EPOCH_MAX - 1
#: the timeout of transactions that an outside coordinator decides (KIP-939): never
TWO_PHASE_COMMIT_TIMEOUT_MS = 0x7FFFFFFF


class Transaction(NamedTuple):
    """The state of one transactional id; timestamps are ms since 1970.

    A tuple, because every transaction copies it several times, and copying a dataclass takes five times as long.

    Attributes:
        previous_producer_id: the producer id before the last transition.
        next_producer_id: replaces a producer id whose epochs are used up, when the transaction completes.
        last_producer_epoch: the epoch before the last bump, which a retry of that request has; in memory only.
        client_transaction_version: that of the last request.
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int
    state: TransactionState
    timeout_ms: int
    partitions: frozenset[TopicPartition] = frozenset()
    start_timestamp_ms: int = NO_TIMESTAMP
    last_update_timestamp_ms: int = NO_TIMESTAMP
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    client_transaction_version: int = 0

    @property
    def is_two_phase_commit(self) -> bool:
        """Return whether an outside coordinator decides the transaction, so that it never times out."""
        return self.timeout_ms == TWO_PHASE_COMMIT_TIMEOUT_MS


def is_epoch_exhausted(producer_epoch: int) -> bool:
    """Return whether an epoch is the last of a client or above it, so that the next one needs another producer id."""
    return producer_epoch >= LAST_CLIENT_EPOCH


def new_transaction(transactional_id: str, *, producer_id: int, timeout_ms: int, now_ms: int) -> Transaction:
    """Return the state of a new transactional id; it has no epoch yet."""
    return Transaction(
        transactional_id,
        producer_id,
        NO_PRODUCER_EPOCH,
        TransactionState.EMPTY,
        timeout_ms,
        last_update_timestamp_ms=now_ms,
    )


def log_record(transaction: Transaction, *, version: int) -> tuple[bytes, bytes]:
    """Return key and value of the record; partitions are sorted.

    `version` is 1 where the feature `transaction.version` is 1 or more, else 0. Raises SchemaError for a field that
    this version does not have.
    """
    metadata = TransactionMetadata(
        producer_id=transaction.producer_id,
        producer_epoch=transaction.producer_epoch,
        state=transaction.state,
        transaction_timeout_ms=transaction.timeout_ms,
        partitions=tuple(sorted(transaction.partitions)),
        start_timestamp_ms=transaction.start_timestamp_ms,
        last_update_timestamp_ms=transaction.last_update_timestamp_ms,
        previous_producer_id=transaction.previous_producer_id,
        next_producer_id=transaction.next_producer_id,
        next_producer_epoch=NO_PRODUCER_EPOCH,
        client_transaction_version=transaction.client_transaction_version,
    )
    return _key_of(transaction.transactional_id), encode_value(metadata, version=version)


def from_record(key: bytes, value: bytes) -> Transaction:
    """Return the state in a record, which is no tombstone; raises SchemaError."""
    metadata = decode_value(value)
    assert metadata is not None
    return Transaction(
        transactional_id=decode_key(key),
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        state=metadata.state,
        timeout_ms=metadata.transaction_timeout_ms,
        partitions=frozenset(starmap(TopicPartition, metadata.partitions if metadata.state else ())),
        start_timestamp_ms=metadata.start_timestamp_ms,
        last_update_timestamp_ms=metadata.last_update_timestamp_ms,
        previous_producer_id=metadata.previous_producer_id,
        next_producer_id=metadata.next_producer_id,
        client_transaction_version=metadata.client_transaction_version,
    )
