"""Filters of a dump: by offset, time, producer, key and isolation level."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from logstore.columns.batch_table import BatchTable, BoolArray, Int64Array, headers
from logstore.columns.legacy import LegacyRecord
from logstore.columns.record_table import RecordTable
from logstore.disk import paths
from logstore.disk.index_slots import IndexSlots
from logstore.disk.loaded import open_log
from logstore.disk.names import absolute_path, file_name, parent, sibling
from logstore.errors import UsageError
from logstore.kernels.scan import batches as scan
from logstore.layout import offset_index
from logstore.layout.batch import DELETE_HORIZON_FLAG, LOG_APPEND_TIME_FLAG, MAGIC_V2
from logstore.layout.file_names import BOOTSTRAP_SNAPSHOT_NAME, LOG_SUFFIX, OFFSET_INDEX_SUFFIX, base_offset_of
from logstore.view.walk import batch_at

from .bounds import INT64_MAX, INT64_MIN, offset_bounds, time_bounds, whole_number

if TYPE_CHECKING:
    from logstore.disk.loaded import LoadedFile
    from logstore.disk.mapped import MappedFile

    from .partition_filters import ConsumedBatches

ISOLATION_LEVELS = ("read_committed", "read_uncommitted")

_SEGMENT = re.compile(rf"[0-9]{{20}}{re.escape(LOG_SUFFIX)}")


class Matches:
    """Whether any log was filtered, and whether anything in the logs passed."""

    is_asked = False
    is_any = False


@dataclass(frozen=True)
class RecordFilter:
    """The conditions of a record, all of which must hold; bounds are inclusive.

    Attributes:
        offsets: first and last offset; one below 0 is counted from the end of the partition, until `of_file`.
        timestamps_ms: first and last timestamp.
        producer_id: that of the batch; None for any.
        key: the exact bytes; None for any.
        transactional_id, isolation_level: the values of the options, from which `of_file` makes the next two.
        follows: the logs grow, and the filter is made anew for each look at one of them.
        producer_ids: those of the transactional id; None for any.
        consumed: the batches that a consumer gets; None for all.
        matches: what the filters of all files found.
        ends: offsets behind the last batch by directory, as they were when first asked for.
    """

    offsets: tuple[int, int] = (INT64_MIN, INT64_MAX)
    timestamps_ms: tuple[int, int] = (INT64_MIN, INT64_MAX)
    producer_id: int | None = None
    key: bytes | None = None
    transactional_id: str | None = None
    isolation_level: str | None = None
    follows: bool = False
    producer_ids: frozenset[int] | None = None
    consumed: ConsumedBatches | None = None
    matches: Matches = field(default_factory=Matches, compare=False)
    ends: dict[str, int] = field(default_factory=dict, compare=False)

    @classmethod
    def of_texts(
        cls,
        offset: str | None,
        time: str | None,
        producer_id: str | None,
        key: str | None,
        transactional_id: str | None,
        isolation_level: str | None,
        *,
        follows: bool,
    ) -> RecordFilter:
        """Return the filter of the values of `options.FILTER_OPTIONS`; raise UsageError for a wrong one."""
        if isolation_level not in (None, *ISOLATION_LEVELS):
            raise UsageError(
                "--isolation-level takes one of two", expected=" or ".join(ISOLATION_LEVELS), found=isolation_level
            )
        return cls(
            offsets=offset_bounds(offset),
            timestamps_ms=time_bounds(time),
            producer_id=None if producer_id is None else whole_number("producer-id", producer_id),
            key=None if key is None else key.encode("utf-8", "surrogateescape"),
            transactional_id=transactional_id,
            isolation_level=isolation_level,
            follows=follows,
        )

    def of_file(self, path: str) -> RecordFilter:
        """Return the filter of the log at `path`: with its offsets, the producer ids and the end of its partition.

        Raises UsageError if no partition or data directory around it knows them.
        """
        self.matches.is_asked = True
        offsets = self.offsets
        if any(INT64_MIN < bound < 0 for bound in offsets):
            first, last = (self._from_end(bound, path) if INT64_MIN < bound < 0 else bound for bound in offsets)
            offsets = first, last
        own = replace(self, offsets=offsets)
        if self.transactional_id is None and self.isolation_level is None:
            return own
        from .partition_filters import (
            OF_NO_PARTITION,
            batches_consumed_now,
            consumed_batches,
            producer_ids_now,
            producer_ids_of,
        )

        if file_name(path) == BOOTSTRAP_SNAPSHOT_NAME:  # it lies beside the partitions, and no producer wrote it
            nobody = None if self.transactional_id is None else frozenset[int]()
            return replace(own, producer_ids=nobody, consumed=None if self.isolation_level is None else OF_NO_PARTITION)
        producers, batches = (
            (producer_ids_now, batches_consumed_now) if self.follows else (producer_ids_of, consumed_batches)
        )
        directory = parent(absolute_path(path))
        ids = None if self.transactional_id is None else producers(parent(directory), self.transactional_id)
        consumed = None if self.isolation_level is None else batches(directory, self.isolation_level)
        return replace(own, producer_ids=ids, consumed=consumed)

    def _from_end(self, bound: int, path: str) -> int:
        """Return the offset that a bound below 0 means: -1 is the last offset of the partition."""
        directory = parent(absolute_path(path)) if path.endswith(LOG_SUFFIX) else path
        if directory not in self.ends:
            self.ends[directory] = _end_offset(path)
        return self.ends[directory] + bound

    def decided(self, tables: Iterable[BatchTable]) -> Iterator[BatchTable]:
        """Yield the tables up to the first batch that consumers may get later."""
        end_offset = None if self.consumed is None else self.consumed.end_offset
        for table in tables:
            undecided = np.flatnonzero(table.last_offset >= end_offset) if end_offset is not None else np.empty(0)
            if undecided.size:
                row = int(undecided[0])
                yield BatchTable(table.matrix, row, scan.END, int(table.position[row]))
                return
            yield table

    def holds(self, position: int, end: int) -> bool:
        """Return whether a look that stopped at `position` of `end` bytes left batches for later.

        Raises LogstoreError if nobody can tell which of them consumers get, because the log is damaged.
        """
        if self.consumed is None or self.consumed.end_offset is None or position >= end:
            return False
        if self.consumed.problem is not None:
            raise self.consumed.problem
        return True

    def rows(self, table: BatchTable, is_asking_records: bool) -> Int64Array:
        """Return the rows that may pass by their headers, int64, ascending.

        Args:
            is_asking_records: `records` follows, so that the times in the header decide nothing. The records of a
                v0/v1 entry are asked in any case, because its header says too little.
        """
        passes = (table.base_offset <= self.offsets[1]) & (table.last_offset >= self.offsets[0])
        if not is_asking_records:
            attributes, last = table.attributes, table.max_timestamp
            first = np.where(attributes & LOG_APPEND_TIME_FLAG, last, table.column(scan.BASE_TIMESTAMP))
            # a delete horizon stands in the place of the first timestamp
            passes &= (first <= self.timestamps_ms[1]) | (attributes & DELETE_HORIZON_FLAG != 0)
            passes &= last >= self.timestamps_ms[0]
        passes |= table.magic < MAGIC_V2  # the conditions below hold for these too
        if self.producer_id is not None:
            passes &= table.producer_id == self.producer_id
        if self.producer_ids is not None:
            passes &= np.isin(table.producer_id, list(self.producer_ids))
        if self.consumed is not None:
            passes &= self.consumed.rows(table)
        return np.flatnonzero(passes)

    def records(self, table: RecordTable) -> BoolArray:
        """Return which records pass, bool[count]; conditions of the batch are not asked."""
        passes: BoolArray = (table.offset >= self.offsets[0]) & (table.offset <= self.offsets[1])
        passes &= (table.timestamp >= self.timestamps_ms[0]) & (table.timestamp <= self.timestamps_ms[1])
        if self.key is not None:
            passes &= table.key_size == len(self.key)
            for index in np.flatnonzero(passes):
                passes[index] = table.key(int(index)) == self.key
        return passes

    def passes(self, record: LegacyRecord) -> bool:
        """Return whether a record of a v0/v1 entry that passes does too; raise InvalidRecordError for a bad key."""
        return (
            self.offsets[0] <= record.offset <= self.offsets[1]
            and self.timestamps_ms[0] <= record.timestamp <= self.timestamps_ms[1]
            and (self.key is None or record.key == memoryview(self.key))
        )


def part_with(offsets: tuple[int, int], log: MappedFile | LoadedFile, path: str, end: int) -> tuple[int, int]:
    """Return from which byte to which a log has these offsets, by the offset index beside it; all without a good one.

    Entries are believed where the batch is that they name.
    """
    first, last = offsets
    if not path.endswith(LOG_SUFFIX) or (first, last) == (INT64_MIN, INT64_MAX):
        return 0, end
    base_offset = base_offset_of(file_name(path))
    index_path = path.removesuffix(LOG_SUFFIX) + OFFSET_INDEX_SUFFIX
    if last < base_offset:
        return 0, 0
    if not paths.exists(index_path):
        return 0, end
    with IndexSlots(index_path, offset_index.ENTRY_DTYPE) as slots:

        def batch_of(slot: int) -> BatchTable | None:
            offset, position = slots[slot] if 0 <= slot < len(slots) else (0, end)
            table = batch_at(log, position, end) if 0 <= position < end else None
            return table if table is not None and len(table) and table.last_offset[0] == base_offset + offset else None

        # an entry has the last offset of its batch: the one that holds the last offset begins at or before its entry
        before = batch_of(slots.slot_above(0, first - base_offset) - 1)
        behind = batch_of(slots.slot_above(0, last - 1 - base_offset) + 1)
    start = 0 if before is None else int(before.position[0])
    return start, end if behind is None or behind.base_offset[0] <= last else int(behind.position[0])


def _end_offset(path: str) -> int:
    """Return the offset behind the last batch of the partition, or of the file, if it is no segment."""
    logs = [path]
    if path.endswith(LOG_SUFFIX):
        names = [entry.name for entry in paths.scan(parent(absolute_path(path))) if entry.is_file()]
        logs = [sibling(path, name) for name in names if _SEGMENT.fullmatch(name)] or logs
    end_offset = 0
    with open_log(logs[-1]) as log:
        if logs[-1].endswith(LOG_SUFFIX):
            end_offset = base_offset_of(file_name(logs[-1]))
        # the last entry of the index leads near the end
        position, _ = part_with((INT64_MAX, INT64_MAX), log, logs[-1], log.size)
        for table in headers(log.data, position, load=log.load):
            if len(table):
                end_offset = int(table.last_offset[-1]) + 1
            log.release(position, table.next_position)
            position = table.next_position
    return end_offset
