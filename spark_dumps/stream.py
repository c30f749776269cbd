"""`readStream`: the records of partitions that grow.

A checkpoint has the JSON of Spark's Kafka source: `{"orders": {"0": 42}}`, the next offset to read of each partition. A
partition that is created later is read from its start.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, floor
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from logstore.errors import UsageError
from logstore.layout.file_names import directory_name
from logstore.view.partition_reader import PartitionReader

from .bounds import PartitionBounds, PartitionRange, find_bounds, resolve
from .directories import chosen_partitions
from .options import Options
from .planning import plan_tasks
from .pyspark_parts import leave_out_broken_pipes
from .records import TABLE, read_task
from .schemas import arrow_schema
from .tables import check_columns

Key = tuple[str, int]
OffsetsJson = dict[str, dict[str, int]]


class RecordsStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows the partitions of some directories."""

    def __init__(self, options: Options, schema: StructType) -> None:
        """Raises UsageError for a column of `schema` that table `records` does not have."""
        if options.table != "records":
            raise UsageError("a stream follows records", expected="table records", found=options.table)
        check_columns(TABLE, options, schema)
        self._options = options
        self._schema = schema
        self._target: dict[Key, int] | None = None
        self._readers: dict[str, PartitionReader] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the readers, which only the driver uses."""
        return {**self.__dict__, "_readers": {}}

    def initialOffset(self) -> OffsetsJson:  # noqa: N802 - Spark's name
        """Return the starting offsets of a query without a checkpoint, by `startingOffsets` or its alternatives."""
        starting = self._options.starting
        found = {key: resolve(starting, one, self._options, is_start=True) for key, one in self._bounds().items()}
        return as_json(found)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the limit of `maxRecordsPerTrigger`, if it is given."""
        limit = self._options.trigger_record_count_max
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def latestOffset(self, start: OffsetsJson, limit: ReadLimit) -> OffsetsJson:  # noqa: N802 - Spark's name
        """Return the end of the next batch: the lowest of the logs' ends, the target of AvailableNow and the limit.

        Raises:
            UsageError: a log ends before `start` (`failOnDataLoss`).
        """
        begins = as_offsets(start)
        ends = dict(begins)
        for key, bounds in self._bounds().items():
            begin = begins.setdefault(key, bounds.start_offset)
            if bounds.log_end_offset < begin:
                self._report_loss(f"{directory_name(*key)} ends at offset {bounds.log_end_offset}", begin)
            end = bounds.end_offset if self._target is None else min(bounds.end_offset, self._target.get(key, 0))
            ends[key] = max(begin, end)
        return as_json(limited(begins, ends, limit.max_rows) if isinstance(limit, ReadMaxRows) else ends)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Note the ends of the logs, at which the query ends."""
        self._target = {key: bounds.end_offset for key, bounds in self._bounds().items()}

    def reportLatestOffset(self) -> OffsetsJson:  # noqa: N802 - Spark's name
        """Return the ends of the logs, for the progress of the query."""
        return as_json({key: bounds.end_offset for key, bounds in self._bounds().items()})

    def partitions(self, start: OffsetsJson, end: OffsetsJson) -> Sequence[InputPartition]:
        """Return the tasks of a batch.

        Raises:
            UsageError: offsets of the batch are gone (`failOnDataLoss`).
        """
        begins, bounds = as_offsets(start), self._bounds()
        ranges = []
        for key, end_offset in sorted(as_offsets(end).items()):
            if begins.get(key, 0) < end_offset:
                ranges += self._range(key, bounds.get(key), begins.get(key), end_offset)
        return plan_tasks(ranges, self._options.partition_count_min)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the records of a task."""
        leave_out_broken_pipes()
        return read_task(partition, self._options, arrow_schema(self._schema))

    def _range(
        self, key: Key, bounds: PartitionBounds | None, begin: int | None, end_offset: int
    ) -> list[PartitionRange]:
        """Return the part of [begin, end_offset) that the partition still has; `begin` None is its start."""
        if bounds is None:
            self._report_loss(f"{directory_name(*key)} is gone", begin)
            return []
        if begin is not None and begin < bounds.start_offset:
            self._report_loss(f"{directory_name(*key)} starts at offset {bounds.start_offset}", begin)
        if end_offset > bounds.log_end_offset:
            self._report_loss(f"{directory_name(*key)} ends at offset {bounds.log_end_offset}", end_offset)
        first = max(begin or 0, bounds.start_offset)
        return [bounds.range(first, end_offset, self._options.mode)] if first < end_offset else []

    def _bounds(self) -> dict[Key, PartitionBounds]:
        """Return the current bounds of all partitions."""
        found = {}
        for partition in chosen_partitions(self._options):
            found[partition.key] = find_bounds(partition, self._options.isolation_level, self._readers)
        return found

    def _report_loss(self, what: str, offset: int | None) -> None:
        if self._options.fail_on_data_loss:
            raise UsageError(
                f"records that the query has not read are gone: {what}",
                expected="its start" if offset is None else f"offset {offset}",
                found=what,
                advice="set failOnDataLoss to false to go on with the records that are left, or use a new checkpoint",
            )


def limited(begins: Mapping[Key, int], ends: Mapping[Key, int], limit: int) -> dict[Key, int]:
    """Return ends about `limit` offsets away, in proportion to what each partition has (`KafkaMicroBatchStream`).

    >>> limited({("t", 0): 0, ("t", 1): 0}, {("t", 0): 300, ("t", 1): 100}, 100)
    {('t', 0): 75, ('t', 1): 25}
    """
    total = sum(ends[key] - begins[key] for key in ends)
    if total <= limit:
        return dict(ends)
    shares = {key: limit * (end - begins[key]) / total for key, end in ends.items()}
    return {key: begins[key] + (ceil(share) if share < 1 else floor(share)) for key, share in shares.items()}


def as_json(offsets: Mapping[Key, int]) -> OffsetsJson:
    """Return `{"orders": {"0": 42}}`, sorted, because Spark compares the texts."""
    found: OffsetsJson = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def as_offsets(offsets: OffsetsJson) -> dict[Key, int]:
    """Return offsets by (topic, partition); undoes `as_json`."""
    return {
        (topic, int(partition)): offset
        for topic, by_partition in offsets.items()
        for partition, offset in by_partition.items()
    }
