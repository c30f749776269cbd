"""Records of several partitions as one Arrow table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..columns.arrow_batches import record_schema
from ..errors import LogstoreError, OffsetOutOfRangeError
from ..model import TopicPartition
from ..store.store import Store
from .fetching import FetchSettings
from .positions import Positions
from .record_fetcher import Offsets


def read_table(
    store: Store, positions: Positions, partitions: list[TopicPartition], settings: FetchSettings, size_max: int
) -> tuple[Any, Offsets]:
    """The records from the positions on, chunk by chunk, until they have `size_max` bytes; and the positions behind.

    Raises:
        LogstoreError: as `Consumer.poll`. What was read before is given first, and the error comes the next time.
    """
    import pyarrow as pa

    topic = pa.field("topic", pa.dictionary(pa.int32(), pa.string()), nullable=False)
    schema = pa.schema([topic, pa.field("partition", pa.int32(), nullable=False), *record_schema()])
    names = pa.array(sorted({partition.topic for partition in partitions}), pa.string())
    batches: list[Any] = []
    moved: Offsets = {}
    size = 0
    try:
        for partition, batch in _batches(store, positions, partitions, settings, moved):
            name, number = names.index(partition.topic).cast(pa.int32()), pa.scalar(partition.partition, pa.int32())
            topics = pa.DictionaryArray.from_arrays(pa.repeat(name, len(batch)), names)
            columns = [topics, pa.repeat(number, len(batch)), *batch.columns]
            batches.append(pa.record_batch(columns, schema=schema))
            size += batch.nbytes
            if size >= size_max:
                break
    except LogstoreError:
        if not batches:
            raise
    return pa.Table.from_batches(batches, schema), moved


def _batches(
    store: Store,
    positions: Positions,
    partitions: list[TopicPartition],
    settings: FetchSettings,
    moved: Offsets,
) -> Iterator[tuple[TopicPartition, Any]]:
    """Record batches, each partition's in order; `moved` has the position behind each."""
    for partition in partitions:
        position = positions.get(partition)
        assert position is not None
        log = store.log(*partition)
        reader = log.records(position, isolation=settings.isolation, check_crc=settings.check_crc)
        try:
            for chunk in reader.chunks():
                batch = chunk.to_arrow()
                moved[partition] = chunk.next_offset
                yield partition, batch
        except OffsetOutOfRangeError:
            moved.pop(partition, None)
            positions.out_of_range(partition, position)
            continue
        moved[partition] = reader.position
