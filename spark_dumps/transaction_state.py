"""Table `transaction_state`: what the transaction coordinator last wrote of every transactional id.

By `__transaction_state`; ids that were forgotten are not there.
"""

from __future__ import annotations

from collections.abc import Iterator

from logstore.topics.transaction_state import TOPIC, TransactionMetadata, decode_key, decode_value

from .coordinator_records import coordinator_records
from .directories import Partition
from .options import Options
from .schemas import PARTITIONS, columns_of
from .tables import Row, microseconds, partition_table

COLUMNS = {
    **columns_of(
        "transactional_id string, producer_id long, producer_epoch int, state string, transaction_timeout_ms int"
    ),
    "partitions": PARTITIONS,
    **columns_of(
        "start_timestamp timestamp, last_update_timestamp timestamp, previous_producer_id long, "
        "next_producer_id long, next_producer_epoch int, client_transaction_version int, offset long"
    ),
}


def _rows(partition: Partition, options: Options) -> Iterator[Row]:
    found: dict[str, Row] = {}
    for record in coordinator_records(partition):
        transactional_id = decode_key(record.key, offset=record.offset)
        metadata = decode_value(record.value, offset=record.offset)
        if metadata is None:
            found.pop(transactional_id, None)
        else:
            found[transactional_id] = _row(transactional_id, metadata, record.offset)
    yield from found.values()


def _row(transactional_id: str, metadata: TransactionMetadata, offset: int) -> Row:
    return {
        "transactional_id": transactional_id,
        "producer_id": metadata.producer_id,
        "producer_epoch": metadata.producer_epoch,
        "state": metadata.state.name,
        "transaction_timeout_ms": metadata.transaction_timeout_ms,
        "partitions": [{"topic": topic, "partition": partition} for topic, partition in metadata.partitions],
        "start_timestamp": microseconds(metadata.start_timestamp_ms),
        "last_update_timestamp": microseconds(metadata.last_update_timestamp_ms),
        "previous_producer_id": metadata.previous_producer_id,
        "next_producer_id": metadata.next_producer_id,
        "next_producer_epoch": metadata.next_producer_epoch,
        "client_transaction_version": metadata.client_transaction_version,
        "offset": offset,
    }


TABLE = partition_table(COLUMNS, _rows, topic=TOPIC)
