"""Table `index_entries`: the entries of the `.index` and `.timeindex` files as they are, behind their zero tail too."""

from __future__ import annotations

from collections.abc import Iterator

from logstore.disk.side_files import read_offset_index, read_time_index

from .directories import Partition
from .options import Options
from .schemas import columns_of
from .tables import Row, partition_table

COLUMNS = columns_of(
    "topic string, partition int, segment long, index string, entry int, offset long, position long, timestamp_ms long"
)


def _rows(partition: Partition, options: Options) -> Iterator[Row]:
    for segment in partition.files.segments:
        place = {"segment": segment.base_offset}
        if segment.offset_index is not None:
            offset_index = read_offset_index(segment.offset_index)
            pairs = zip(offset_index.offsets.tolist(), offset_index.positions.tolist(), strict=True)
            for number, (offset, position) in enumerate(pairs):
                yield {**place, "index": "offset", "entry": number, "offset": offset, "position": position}
        if segment.time_index is not None:
            time_index = read_time_index(segment.time_index)
            pairs = zip(time_index.offsets.tolist(), time_index.timestamps.tolist(), strict=True)
            for number, (offset, timestamp) in enumerate(pairs):
                yield {**place, "index": "time", "entry": number, "offset": offset, "timestamp_ms": timestamp}


TABLE = partition_table(COLUMNS, _rows)
