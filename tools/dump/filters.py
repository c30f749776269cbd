"""Filters of a dump: by offset, time, producer, key and isolation level."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from logstore.columns.batch_table import BatchTable, Int64Array
from logstore.columns.legacy import LegacyRecord
from logstore.columns.record_table import RecordTable
from logstore.disk.names import absolute_path, file_name, parent
from logstore.disk.paths import exists
from logstore.disk.side_files import read_offset_index
from logstore.errors import UsageError
from logstore.kernels.scan import batches as scan
from logstore.layout.batch import DELETE_HORIZON_FLAG, LOG_APPEND_TIME_FLAG, MAGIC_V2, NO_PRODUCER_ID
from logstore.layout.file_names import BOOTSTRAP_SNAPSHOT_NAME, LOG_SUFFIX, OFFSET_INDEX_SUFFIX, base_offset_of
from logstore.layout.java_integer import parse_long
from logstore.view.walk import scan_loaded

if TYPE_CHECKING:
    from logstore.disk.loaded import LoadedFile
    from logstore.disk.mapped import MappedFile

    from .partition_filters import ConsumedBatches

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
ISOLATION_LEVELS = ("read_committed", "read_uncommitted")
BoolArray = npt.NDArray[np.bool_]

_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]+")
_MILLISECONDS_RANGE = re.compile(r"[+-]?[0-9]*:[+-]?[0-9]*")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class RecordFilter:
    """The conditions of a record, all of which must hold; bounds are inclusive.

    Attributes:
        offsets: first and last offset.
        timestamps_ms: first and last timestamp.
        producer_id: that of the batch; None for any.
        key: the exact bytes; None for any.
        transactional_id, isolation_level: the values of the options, from which `of_file` makes the next two.
        follows: the logs grow, and the filter is made anew for each look at one of them.
        producer_ids: those of the transactional id; None for any.
        consumed: the batches that a consumer gets; None for all.
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
            offsets=_bounds("offset", offset, ":", partial(_number, "offset")),
            timestamps_ms=_bounds(
                "time", time, ":" if _MILLISECONDS_RANGE.fullmatch(time or "") else "/", _timestamp_ms
            ),
            producer_id=None if producer_id is None else _number("producer-id", producer_id),
            key=None if key is None else key.encode("utf-8", "surrogateescape"),
            transactional_id=transactional_id,
            isolation_level=isolation_level,
            follows=follows,
        )

    def of_file(self, path: str) -> RecordFilter:
        """Return the filter of the log at `path`: with the producer ids and the end of its partition.

        Raises:
            UsageError: no partition or data directory around it knows them.
            DataDirectoryError: a file around it cannot be read.
        """
        if self.transactional_id is None and self.isolation_level is None:
            return self
        from .partition_filters import (
            OF_NO_PARTITION,
            batches_consumed_now,
            consumed_batches,
            producer_ids_now,
            producer_ids_of,
        )

        if file_name(path) == BOOTSTRAP_SNAPSHOT_NAME:  # it lies beside the partitions, and no producer wrote it
            nobody = None if self.transactional_id is None else frozenset[int]()
            return replace(
                self, producer_ids=nobody, consumed=None if self.isolation_level is None else OF_NO_PARTITION
            )
        producers, batches = (
            (producer_ids_now, batches_consumed_now) if self.follows else (producer_ids_of, consumed_batches)
        )
        directory = parent(absolute_path(path))
        ids = None if self.transactional_id is None else producers(parent(directory), self.transactional_id)
        consumed = None if self.isolation_level is None else batches(directory, self.isolation_level)
        return replace(self, producer_ids=ids, consumed=consumed)

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

        Raises:
            LogstoreError: nobody can tell which of them consumers get, because the log is damaged.
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
        """Return whether a v0/v1 record passes; raise InvalidRecordError if its key is needed and cannot be read."""
        return (
            self.producer_id in (None, NO_PRODUCER_ID)
            and self.producer_ids is None
            and self.offsets[0] <= record.offset <= self.offsets[1]
            and self.timestamps_ms[0] <= record.timestamp <= self.timestamps_ms[1]
            and (self.key is None or record.key == memoryview(self.key))
        )


def part_with(offsets: tuple[int, int], log: MappedFile | LoadedFile, path: str, end: int) -> tuple[int, int]:
    """Return from which byte to which a log has these offsets, by the offset index beside it; all without a good one.

    Entries are believed where the batch is that they name.
    """
    first, last = offsets
    base_offset = base_offset_of(file_name(path))
    index_path = path.removesuffix(LOG_SUFFIX) + OFFSET_INDEX_SUFFIX
    if last < base_offset:
        return 0, 0
    if not exists(index_path):
        return 0, end
    index = read_offset_index(index_path)
    known, positions = index.offsets[: index.written_count], index.positions[: index.written_count]
    if (np.diff(known) <= 0).any() or (np.diff(positions) <= 0).any():
        return 0, end

    def position_at(row: int, otherwise: int) -> int:
        if not 0 <= row < known.size or not 0 <= positions[row] < end:
            return otherwise
        table = scan_loaded(log, int(positions[row]), end, capacity=1)
        return int(positions[row]) if len(table) and table.last_offset[0] == known[row] else otherwise

    # an entry has the last offset of its batch: the one that holds the last offset begins at or before its entry
    stop = position_at(int(np.searchsorted(known, last)) + 1, end)
    return position_at(int(np.searchsorted(known, first, side="right")) - 1, 0), stop


def _bounds(option: str, text: str | None, separator: str, parse: Callable[[str], int]) -> tuple[int, int]:
    """Return the bounds of `A:B`, `A:` or `:B`; `A` alone means exactly A."""
    if text is None:
        return INT64_MIN, INT64_MAX
    first_text, found, last_text = text.partition(separator)
    if not first_text and not last_text:
        raise UsageError(
            f"--{option} needs a bound", expected=f"A{separator}B, A{separator} or {separator}B", found=text
        )
    first = parse(first_text) if first_text else INT64_MIN
    last = first if not found else parse(last_text) if last_text else INT64_MAX
    if first > last:
        raise UsageError(f"--{option} is an empty range", expected="the smaller bound first", found=text)
    return first, last


def _number(option: str, text: str) -> int:
    number = parse_long(text) if _WHOLE_NUMBER.fullmatch(text) else None  # Java takes digits of any script
    if number is None:
        raise UsageError(f"--{option} takes whole numbers of 64 bits", expected="a whole number", found=text)
    return number


def _timestamp_ms(text: str) -> int:
    if _WHOLE_NUMBER.fullmatch(text):
        return _number("time", text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(
            "--time takes milliseconds or ISO 8601",
            expected="1700000000000:1700000060000 or 2023-11-14T22:13:20Z/2023-11-14T22:14:20Z",
            found=text,
        ) from error
    return ((moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH) // timedelta(milliseconds=1)
