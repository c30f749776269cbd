"""Table `group_offsets`: the offsets that consumer groups have committed, by `__consumer_offsets`, and pending ones.

A tombstone removes an offset; one in a transaction that is not decided is pending. Of commits in and outside of
transactions that of the later record counts (`OffsetMetadataManager.replayEndTransactionMarker`).
"""

from __future__ import annotations

from collections.abc import Iterator

from logstore.topics.consumer_offsets import TOPIC, CommittedOffset, OffsetKey, decode_key, decode_value

from .coordinator_records import coordinator_records
from .directories import Partition
from .options import Options
from .schemas import columns_of
from .tables import Row, microseconds, partition_table

COLUMNS = columns_of(
    "group_id string, topic string, partition int, offset long, leader_epoch int, metadata string, "
    "commit_timestamp timestamp, expire_timestamp timestamp, topic_id string, is_pending bool"
)


def _rows(partition: Partition, options: Options) -> Iterator[Row]:
    found: dict[tuple[OffsetKey, bool], tuple[int, Row]] = {}  # the record's offset with each
    for record in coordinator_records(partition):
        key = decode_key(record.key, offset=record.offset)
        if isinstance(key, OffsetKey):
            value = decode_value(key, record.value, offset=record.offset)
            place = key, record.is_pending
            if not isinstance(value, CommittedOffset):
                found.pop(place, None)
            elif place not in found or record.offset > found[place][0]:
                found[place] = record.offset, _row(key, value, is_pending=record.is_pending)
    yield from (row for _, row in found.values())


def _row(key: OffsetKey, value: CommittedOffset, *, is_pending: bool) -> Row:
    return {
        "group_id": key.group_id,
        "topic": key.topic,
        "partition": key.partition,
        "offset": value.offset,
        "leader_epoch": None if value.leader_epoch < 0 else value.leader_epoch,
        "metadata": value.metadata,
        "commit_timestamp": microseconds(value.commit_timestamp_ms),
        "expire_timestamp": microseconds(value.expire_timestamp_ms),
        "topic_id": value.topic_id,
        "is_pending": is_pending,
    }


TABLE = partition_table(COLUMNS, _rows, topic=TOPIC)
