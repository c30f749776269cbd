"""Table `aborted`: the entries of the `.txnindex` files."""

from __future__ import annotations

from collections.abc import Iterator

from logstore.disk.side_files import read_transaction_index

from .directories import Partition
from .options import Options
from .schemas import columns_of
from .tables import Row, partition_table

COLUMNS = columns_of(
    "topic string, partition int, segment long, producer_id long, first_offset long, last_offset long, "
    "last_stable_offset long"
)


def _rows(partition: Partition, options: Options) -> Iterator[Row]:
    for segment in partition.files.segments:
        if segment.transaction_index is not None:
            index = read_transaction_index(segment.transaction_index)
            index.require_all()
            entries = zip(
                index.producer_ids.tolist(),
                index.first_offsets.tolist(),
                index.last_offsets.tolist(),
                index.last_stable_offsets.tolist(),
                strict=True,
            )
            for producer_id, first_offset, last_offset, last_stable_offset in entries:
                yield {
                    "segment": segment.base_offset,
                    "producer_id": producer_id,
                    "first_offset": first_offset,
                    "last_offset": last_offset,
                    "last_stable_offset": last_stable_offset,
                }


TABLE = partition_table(COLUMNS, _rows)
