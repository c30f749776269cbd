"""`readStream`: the records of partitions that grow.

A checkpoint has the JSON of Spark's Kafka source, the next offset to read of each partition, and the id of each topic:
`{"orders": {"0": 42, "topicId": "…"}}`. A partition that is created later is read from its start. A topic of the same
name with another id was deleted and made anew: its offsets are others, and the records of the old one are lost.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from math import ceil, floor
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.types import StructType

from logstore.errors import UsageError
from logstore.layout.file_names import directory_name

from .bounds import PartitionBounds, PartitionRange, require_named, resolve, while_files_go
from .options import TOPIC_ID, Mode, Options, ids_in
from .planning import plan_tasks
from .pyspark_parts import prepare_worker
from .records import TABLE, read_task
from .remembered import RememberedPartitions
from .schemas import arrow_schema
from .tables import check_columns
from .versions import (
    HAS_READ_LIMITS,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
    require_read_limits,
)

Key = tuple[str, int]
OffsetsJson = dict[str, dict[str, Any]]
_LOGGER = logging.getLogger("logstore")
_GONE = "is gone, or not chosen any more"  # by other options than those that made the checkpoint


class RecordsStream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows the partitions of some directories."""

    def __init__(self, options: Options, schema: StructType) -> None:
        """Raises UsageError for a column of `schema` that table `records` does not have."""
        if options.table != "records":
            raise UsageError("a stream follows records", expected="table records", found=options.table)
        check_columns(TABLE, options, schema)
        if options.trigger_record_count_max is not None:
            require_read_limits("maxRecordsPerTrigger or maxOffsetsPerTrigger")
        self._options = options
        options.open_stores()
        self._schema = schema
        self._target: dict[Key, int] | None = None
        self._partitions = RememberedPartitions(options)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is remembered, which only the driver uses."""
        return {**self.__dict__, "_partitions": RememberedPartitions(self._options)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Open the stores in the process that goes on."""
        self.__dict__.update(state)
        self._options.open_stores()

    def initialOffset(self) -> OffsetsJson:  # noqa: N802 - Spark's name
        """Return the starting offsets of a query without a checkpoint, by `startingOffsets` or its alternatives.

        Raises:
            UnknownTopicOrPartitionError: a topic or partition that was asked for is missing; a pattern may match later.
            UsageError: a bound names a partition that is not read, or is outside its log (`failOnDataLoss`).
        """
        starting = self._options.starting
        bounds = self._partitions.bounds(may_lack=self._options.choice.pattern is not None)
        require_named(starting, bounds)
        offsets = {key: resolve(starting, one, self._options) for key, one in bounds.items()}
        found = {key: bounds[key].end_offset if offset is None else offset for key, offset in offsets.items()}
        return as_json(found, self._topic_ids(bounds))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the limit of `maxRecordsPerTrigger`, if it is given."""
        limit = self._options.trigger_record_count_max
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def latestOffset(self, start: OffsetsJson, limit: ReadLimit) -> OffsetsJson:  # noqa: N802 - Spark's name
        """Return the end of the next batch: the lowest of the logs' ends, the target of AvailableNow and the limit.

        Raises UsageError if a log ends before `start`, is gone, or is of another topic of the name (`failOnDataLoss`).
        """
        begins, known_ids = as_offsets(start), ids_in(start)
        found = self._partitions.bounds()
        ids = {**known_ids, **self._topic_ids(found)}
        for key in sorted(begins.keys() - found.keys()):
            self._report_loss(f"{directory_name(*key)} {_GONE}", begins.pop(key))
        ends = dict(begins)
        for key, bounds in found.items():
            if _is_other(known_ids, ids, key) and key in begins:
                self._report_loss(f"{directory_name(*key)} is of a new topic of the name", begins.pop(key))
            begin = begins.setdefault(key, bounds.start_offset)
            if bounds.log_end_offset < begin:
                self._report_loss(f"{directory_name(*key)} ends at offset {bounds.log_end_offset}", begin)
                begin = begins[key] = bounds.end_offset  # what is written next is new, as for the Kafka source
            end = bounds.end_offset if self._target is None else min(bounds.end_offset, self._target.get(key, 0))
            ends[key] = max(begin, end)
        return as_json(limited(begins, ends, limit.max_rows) if isinstance(limit, ReadMaxRows) else ends, ids)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Note the ends of the logs, at which the query ends."""
        self._target = {key: bounds.end_offset for key, bounds in self._partitions.bounds().items()}

    def reportLatestOffset(self) -> OffsetsJson:  # noqa: N802 - Spark's name
        """Return the ends of the logs, for the progress of the query."""
        found = self._partitions.bounds()
        return as_json({key: one.end_offset for key, one in found.items()}, self._topic_ids(found))

    def partitions(self, start: OffsetsJson, end: OffsetsJson) -> Sequence[InputPartition]:
        """Return the tasks of a batch; raise UsageError if offsets of it are gone (`failOnDataLoss`)."""
        return while_files_go(lambda: self._tasks(start, end))

    def _tasks(self, start: OffsetsJson, end: OffsetsJson) -> Sequence[InputPartition]:
        begins, ends, bounds = as_offsets(start), as_offsets(end), self._partitions.bounds()
        begin_ids, end_ids, ids = ids_in(start), ids_in(end), self._topic_ids(bounds)
        for key in sorted(begins.keys() - ends.keys()):
            self._report_loss(f"{directory_name(*key)} {_GONE}", begins[key])
        ranges = []
        for key, end_offset in sorted(ends.items()):
            begin = None if _is_other(begin_ids, end_ids, key) else begins.get(key)
            if (begin or 0) >= end_offset:
                continue
            if _is_other(end_ids, ids, key):
                self._report_loss(f"{directory_name(*key)} is of a new topic of the name", begin)
            else:
                ranges += self._range(key, bounds.get(key), begin, end_offset)
        return plan_tasks(ranges, self._options.partition_count_min)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        prepare_worker()
        return read_task(partition, self._options, arrow_schema(self._schema))

    def _range(
        self, key: Key, bounds: PartitionBounds | None, begin: int | None, end_offset: int
    ) -> list[PartitionRange]:
        """Return the part of [begin, end_offset) that the partition still has; `begin` None is its start."""
        if bounds is None:
            self._report_loss(f"{directory_name(*key)} {_GONE}", begin)
            return []
        if begin is not None and begin < bounds.start_offset:
            self._report_loss(f"{directory_name(*key)} starts at offset {bounds.start_offset}", begin)
        if end_offset > bounds.log_end_offset:
            self._report_loss(f"{directory_name(*key)} ends at offset {bounds.log_end_offset}", end_offset)
        first = max(begin or 0, bounds.start_offset)
        if first >= end_offset:
            return []
        found = PartitionRange(bounds, first, end_offset)
        if self._options.mode is Mode.FAILFAST:
            found.require_known()
        return [found]

    def _topic_ids(self, found: Mapping[Key, PartitionBounds]) -> dict[str, str]:
        """Return the ids of topics on the disk (`partition.metadata`); raise UsageError for a topic with two."""
        ids: dict[str, str] = {}
        for key, topic_id in self._partitions.topic_ids.items():
            topic, _ = key
            if ids.setdefault(topic, topic_id) != topic_id:
                raise UsageError(
                    f"{directory_name(*key)} is of another topic of the name than the partitions before it",
                    path=found[key].partition.files.path,
                    expected=f"topic id {ids[topic]}",
                    found=topic_id,
                    advice="wait until the broker has deleted the old topic, or take the copy out of the directory",
                )
        return ids

    def _report_loss(self, what: str, offset: int | None) -> None:
        if not self._options.fail_on_data_loss:
            _LOGGER.warning("Records that the query has not read may be gone: %s", what)
            return
        raise UsageError(
            f"records that the query has not read are gone: {what}",
            expected="its start" if offset is None else f"offset {offset}",
            found=what,
            advice="set failOnDataLoss to false to go on with the records that are left, or use a new checkpoint",
        )


class RecordsStreamWithoutLimits(RecordsStream):
    """Follows the partitions for Spark 4.0 and 4.1, which ask for the end of a batch without telling its start.

    The start is the end of the batch before; the first batch after a restart has none. What a new batch has lost is
    found when the batch is planned.
    """

    _start: OffsetsJson | None = None

    def initialOffset(self) -> OffsetsJson:  # noqa: N802 - Spark's name
        """Return the starting offsets, and keep them; see `RecordsStream`."""
        self._start = super().initialOffset()
        return self._start

    def latestOffset(self) -> OffsetsJson:  # type: ignore[override]  # noqa: N802 - Spark's name
        """Return the end of the next batch: the logs' ends."""
        return super().latestOffset(self._start or {}, ReadAllAvailable())

    def partitions(self, start: OffsetsJson, end: OffsetsJson) -> Sequence[InputPartition]:
        """Return the tasks of a batch, whose end is the start of the next; raises as `RecordsStream`."""
        begins, ends, begin_ids, end_ids = as_offsets(start), as_offsets(end), ids_in(start), ids_in(end)
        for key in sorted(begins.keys() & ends.keys()):
            if _is_other(begin_ids, end_ids, key):
                self._report_loss(f"{directory_name(*key)} is of a new topic of the name", begins[key])
            elif ends[key] < begins[key]:
                self._report_loss(f"{directory_name(*key)} ends at offset {ends[key]}", begins[key])
        tasks = super().partitions(start, end)
        self._start = end
        return tasks


def make_stream(options: Options, schema: StructType) -> RecordsStream:
    """Return the reader of a stream for this Spark; raises as `RecordsStream`."""
    return (RecordsStream if HAS_READ_LIMITS else RecordsStreamWithoutLimits)(options, schema)


def _is_other(before: Mapping[str, str], after: Mapping[str, str], key: Key) -> bool:
    """Return whether the topic is known to be another one of the name."""
    topic, _ = key
    return topic in before and topic in after and before[topic] != after[topic]


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


def as_json(offsets: Mapping[Key, int], topic_ids: Mapping[str, str] | None = None) -> OffsetsJson:
    """Return `{"orders": {"0": 42, "topicId": "…"}}`, sorted, because Spark compares the texts."""
    found: OffsetsJson = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    for topic, topic_id in (topic_ids or {}).items():
        if topic in found:
            found[topic][TOPIC_ID] = topic_id
    return found


def as_offsets(offsets: OffsetsJson) -> dict[Key, int]:
    """Return offsets by (topic, partition); undoes `as_json`."""
    return {
        (topic, int(partition)): offset
        for topic, by_partition in offsets.items()
        for partition, offset in by_partition.items()
        if partition != TOPIC_ID
    }
