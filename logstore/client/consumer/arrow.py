"""Records of several partitions as one Arrow table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...columns.arrow_batches import record_schema
from ...errors import LogstoreError, OffsetOutOfRangeError
from ...model import TopicPartition
from .config import ConsumerConfig
from .fetcher import Fetcher
from .positions import Positions
from .records import NextOffsets


def read_table(positions: Positions, config: ConsumerConfig, fetcher: Fetcher) -> tuple[Any, NextOffsets]:
    """Return the records from the positions on, up to about `fetch.max.bytes`, and the positions behind them.

    Raises:
        LogstoreError: as `Consumer.poll`. What was read before is returned first, and the error comes the next time.
    """
    import pyarrow as pa

    names = pa.array(sorted({partition.topic for partition in positions}), pa.string())
    topic = pa.field("topic", pa.dictionary(pa.int32(), pa.string()), nullable=False)
    schema = pa.schema([topic, pa.field("partition", pa.int32(), nullable=False), *record_schema()])
    batches: list[Any] = []
    moved: NextOffsets = {}
    size = 0
    try:
        for partition, batch in _batches(positions, config, fetcher, moved):
            name, number = names.index(partition.topic).cast(pa.int32()), pa.scalar(partition.partition, pa.int32())
            topics = pa.DictionaryArray.from_arrays(pa.repeat(name, len(batch)), names)
            columns = [topics, pa.repeat(number, len(batch)), *batch.columns]
            batches.append(pa.record_batch(columns, schema=schema))
            size += batch.nbytes
            if size >= config["fetch.max.bytes"]:
                break
    except LogstoreError:
        if not batches:
            raise
    return pa.Table.from_batches(batches, schema), moved


def _batches(
    positions: Positions, config: ConsumerConfig, fetcher: Fetcher, moved: NextOffsets
) -> Iterator[tuple[TopicPartition, Any]]:
    """Record batches, each partition's in order; `moved` gets the position behind each."""
    for partition, position, log in fetcher.ready(moved):
        reader = log.records(position, isolation=positions.isolation, check_crc=config["check.crcs"])
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
