"""Table `producers`: what each partition knows of its producers as of its end (`ProducerStateManager`)."""

from __future__ import annotations

from collections.abc import Iterator

from logstore.view.partition_reader import PartitionReader

from .directories import Partition
from .options import Options
from .schemas import columns_of
from .tables import Row, microseconds, partition_table

COLUMNS = columns_of(
    "topic string, partition int, producer_id long, producer_epoch int, coordinator_epoch int, "
    "last_timestamp timestamp, first_sequence int, last_sequence int, first_offset long, last_offset long, "
    "current_txn_first_offset long"
)


def _rows(partition: Partition, options: Options) -> Iterator[Row]:
    for entry in PartitionReader(partition.files.path).producers or ():
        last = entry.batches[-1] if entry.batches else None
        yield {
            "producer_id": entry.producer_id,
            "producer_epoch": entry.producer_epoch,
            "coordinator_epoch": entry.coordinator_epoch,
            "last_timestamp": microseconds(entry.last_timestamp),
            "first_sequence": None if last is None else last.first_sequence,
            "last_sequence": None if last is None else last.last_sequence,
            "first_offset": None if last is None else last.first_offset,
            "last_offset": None if last is None else last.last_offset,
            "current_txn_first_offset": entry.current_txn_first_offset,
        }


TABLE = partition_table(COLUMNS, _rows)
