"""Tables of a partition and its side files.

`topics`: one row for each partition: path, size, bounds. `producers`: the producers that a broker would know now, as it
starts: those of the newest snapshot and of all that follows, as `kafka-transactions.sh describe-producers` and
`logstore producers` have them (`ProducerStateManager`). `aborted`: the entries of the `.txnindex` files.
`index_entries`: the entries of the `.index` and `.timeindex` files, unchecked, without the zeros behind those of a
preallocated file.
"""

from __future__ import annotations

from collections.abc import Iterator

from logstore.audit.cluster import Cluster
from logstore.audit.listings import producer_row
from logstore.audit.partition import open_partition
from logstore.audit.tails import follow_tail
from logstore.columns.batch_table import Int64Array
from logstore.disk.side_files import (
    leader_epochs_of,
    read_offset_index,
    read_time_index,
    read_transaction_index,
    topic_id_of,
)
from logstore.errors import DataDirectoryError, LogstoreError
from logstore.rows.places import AbortedRow, IndexEntryRow, PartitionRow, ProducerRow

from .bounds import find_bounds
from .listed_partition import ListedPartition
from .options import READ_COMMITTED
from .schemas import columns_of
from .tables import partition_table


def _topics(partition: ListedPartition, cluster: Cluster) -> Iterator[PartitionRow]:
    bounds = find_bounds(partition, READ_COMMITTED)
    epochs = leader_epochs_of(partition.files.path)
    yield PartitionRow(
        *partition.key,
        topic_id=topic_id_of(partition.files.path),
        path=partition.files.path,
        segment_count=len(bounds.segments),
        size=sum(segment.size for segment in bounds.segments),
        log_start_offset=bounds.start_offset,
        log_end_offset=bounds.log_end_offset,
        last_stable_offset=bounds.end_offset,
        leader_epoch=epochs[-1][0] if epochs else None,
    )


TOPICS = partition_table(columns_of(PartitionRow), _topics)
PRODUCER_COLUMNS = {
    name: kind
    for name, kind in columns_of(ProducerRow).items()
    if name not in ("path", "transactional_id")  # which is in the log of another partition
}


def _producers(partition: ListedPartition, cluster: Cluster) -> Iterator[ProducerRow | LogstoreError]:
    if any(isinstance(error, DataDirectoryError) for error in partition.files.errors):
        return  # a link among the files, which a reader refuses: the task for what cannot be listed tells of it
    facts, producers = follow_tail(open_partition(partition.files.path, cluster.checkpoints), cluster)
    if facts.error is not None:
        raise facts.error
    for entry in producers.state:
        yield producer_row(partition.files, entry, None)
    yield from producers.problems


PRODUCERS = partition_table(PRODUCER_COLUMNS, _producers)


def _aborted(partition: ListedPartition, cluster: Cluster) -> Iterator[AbortedRow]:
    for segment in partition.files.segments:
        if segment.transaction_index is not None:
            index = read_transaction_index(segment.transaction_index)
            index.require_all()
            columns = index.producer_ids, index.first_offsets, index.last_offsets, index.last_stable_offsets
            for values in zip(*(column.tolist() for column in columns), strict=True):
                yield AbortedRow(*partition.key, segment.base_offset, *values)


ABORTED = partition_table(columns_of(AbortedRow), _aborted)


def _index_entries(partition: ListedPartition, cluster: Cluster) -> Iterator[IndexEntryRow]:
    for segment in partition.files.segments:
        place = *partition.key, segment.base_offset
        if segment.offset_index is not None:
            index = read_offset_index(segment.offset_index)
            for entry, values in enumerate(_pairs(index.offsets, index.positions, index.written_count)):
                yield IndexEntryRow(*place, "offset", entry, *values, None)
        if segment.time_index is not None:
            times = read_time_index(segment.time_index)
            for entry, (offset, timestamp) in enumerate(_pairs(times.offsets, times.timestamps, times.written_count)):
                yield IndexEntryRow(*place, "time", entry, offset, None, timestamp)


def _pairs(offsets: Int64Array, values: Int64Array, count: int) -> Iterator[tuple[int, int]]:
    return zip(offsets[:count].tolist(), values[:count].tolist(), strict=True)


INDEX_ENTRIES = partition_table(columns_of(IndexEntryRow), _index_entries)
