"""Table `topics`: one row a partition: where it is, how large, and which offsets it holds."""

from __future__ import annotations

from collections.abc import Iterator

from logstore.disk.side_files import read_leader_epoch_checkpoint, read_partition_metadata
from logstore.layout import leader_epoch_checkpoint, partition_metadata

from .directories import Partition
from .options import READ_COMMITTED, Options
from .ranges import find_bounds
from .schemas import columns_of
from .tables import Row, partition_table

COLUMNS = columns_of(
    "topic string, partition int, topic_id string, path string, segment_count int, size long, log_start_offset long, "
    "log_end_offset long, last_stable_offset long, leader_epoch int"
)


def _rows(partition: Partition, options: Options) -> Iterator[Row]:
    bounds = find_bounds(partition, READ_COMMITTED)
    files = partition.files.files
    metadata = files.get(partition_metadata.FILE_NAME)
    epochs = files.get(leader_epoch_checkpoint.FILE_NAME)
    entries = [] if epochs is None else read_leader_epoch_checkpoint(epochs)
    yield {
        "topic_id": None if metadata is None else read_partition_metadata(metadata).topic_id,
        "path": partition.files.path,
        "segment_count": len(bounds.segments),
        "size": sum(segment.size for segment in bounds.segments),
        "log_start_offset": bounds.start_offset,
        "log_end_offset": bounds.log_end_offset,
        "last_stable_offset": bounds.end_offset,
        "leader_epoch": entries[-1][0] if entries else None,
    }


TABLE = partition_table(COLUMNS, _rows)
