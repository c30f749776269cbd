"""Table `records`: what a consumer would be given, in the columns of Spark's Kafka source, and some more."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from .directories import chosen_partitions
from .options import Options
from .planning import plan_tasks
from .ranges import find_range
from .reading import read_records
from .schemas import HEADERS, columns_of
from .slices import SliceTask
from .tables import Table, damage_rule

KAFKA_COLUMNS = columns_of(
    "key binary, value binary, topic string, partition int, offset long, timestamp timestamp, timestampType int"
)
MORE_COLUMNS = {
    "headers": HEADERS,
    **columns_of(
        "producer_id long, producer_epoch short, sequence int, partition_leader_epoch int, is_transactional bool"
    ),
}


def _shown(options: Options) -> list[str]:
    return [*KAFKA_COLUMNS, "headers"] if options.include_headers else [*KAFKA_COLUMNS]


def plan(options: Options) -> list[InputPartition]:
    """Tasks of about 128 MiB; small partitions share one."""
    partitions = chosen_partitions(options)
    return [*plan_tasks([find_range(partition, options) for partition in partitions], options.partition_count_min)]


def read_task(task: InputPartition, options: Options, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The records of one task."""
    assert isinstance(task, SliceTask)
    for one in task.slices:
        yield from read_records(one, schema, damage_rule(options), options.producer_ids)


TABLE = Table({**KAFKA_COLUMNS, **MORE_COLUMNS}, _shown, plan, read_task)
