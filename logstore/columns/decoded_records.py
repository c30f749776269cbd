"""Records: rows of a record table with the batches that they are of; one object from the kernel to the user."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from ..errors import LogstoreError
from ..kernels.decode import records as fields
from ..kernels.scan import batches as scan
from ..layout.batch import LOG_APPEND_TIME_FLAG
from ..layout.legacy import timestamp_type
from ..layout.utf8 import java_utf8
from ..model import TimestampType
from .arrow_batches import RecordBatch, record_batch
from .batch_table import BatchTable, BoolArray, ByteArray, Int64Array
from .header_columns import columns_of_table
from .record_columns import RecordColumns
from .record_table import RecordTable

NO_LEADER_EPOCH = -1
_KIND_FIELDS = [scan.MAGIC, scan.ATTRIBUTES, scan.PARTITION_LEADER_EPOCH]
T = TypeVar("T")
Headers = list[tuple[str, bytes | None]]


class Record(NamedTuple):
    """One record as Python objects (`ConsumerRecord`); timestamp in ms, header keys as text."""

    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: bytes | None
    value: bytes | None
    headers: Headers
    leader_epoch: int | None


class Records(RecordTable):
    """Some consecutive records; positions of keys and values ascend.

    Attributes:
        batches: table of their batches; positions there count in the data of the read, not in the segment.
        batch_rows: int64[m], rows of `batches`.
        batch_ends: int64[m], the record behind each batch's last one; the first batch starts at 0.
        next_offset: where a reader goes on behind them; -1 if no reader gave them.
        error: why the last of `batch_rows` cannot be read, or not to its end; its good records come before.
    """

    __slots__ = ("batch_ends", "batch_rows", "batches", "error", "next_offset")

    def __init__(
        self,
        data: ByteArray,
        matrix: Int64Array,
        count: int,
        batches: BatchTable,
        batch_rows: Int64Array,
        batch_ends: Int64Array,
        *,
        next_offset: int = -1,
        error: LogstoreError | None = None,
    ) -> None:
        super().__init__(data, matrix, count)
        self.batches, self.batch_rows, self.batch_ends = batches, batch_rows, batch_ends
        self.next_offset, self.error = next_offset, error

    def __repr__(self) -> str:
        offsets = f", offsets {self.offset[0]} to {self.offset[-1]}" if self.count else ""
        return f"<{self.count} records{offsets}>"

    @classmethod
    def unreadable(cls, batches: BatchTable, row: int, error: LogstoreError) -> Records:
        """Return no records, in the place of a batch that cannot be read to its end."""
        matrix = np.empty((fields.COLUMN_COUNT, 0), np.int64)
        return cls(np.empty(0, np.uint8), matrix, 0, batches, np.array([row]), np.zeros(1, np.int64), error=error)

    @property
    def batch_counts(self) -> Int64Array:
        """int64[m], the record count of each batch."""
        counts = self.batch_ends.copy()
        counts[1:] -= self.batch_ends[:-1]
        return counts

    @property
    def batch_starts(self) -> Int64Array:
        """int64[m], the first record of each batch."""
        return self.batch_ends - self.batch_counts

    @property
    def rows(self) -> Int64Array:
        """int64[n], the row of `batches` that each record is of."""
        return np.repeat(self.batch_rows, self.batch_counts)

    @property
    def size(self) -> int:
        """Bytes from the first key to the last headers, of at least one record."""
        return int(self.matrix[fields.HEADERS_POSITION, self.count - 1] - self.matrix[fields.KEY_POSITION, 0])

    def part(self, start: int, end: int) -> Records:
        """Return the records from row `start` to row `end`, exclusive; keys and values are not copied."""
        first, last = np.searchsorted(self.batch_ends, [start + 1, end]).tolist()
        batches = slice(first, last + 1)
        return Records(
            self.data,
            np.ascontiguousarray(self.matrix[:, start:end]),
            end - start,
            self.batches,
            self.batch_rows[batches],
            np.minimum(self.batch_ends[batches], end) - start,
            next_offset=int(self.offset[end]) if end < self.count else self.next_offset,
        )

    def select(self, is_wanted: BoolArray) -> Records:
        """Return the records of which `is_wanted`, bool[n], is true; keys and values are not copied."""
        matrix = np.ascontiguousarray(self.matrix[:, : self.count][:, is_wanted])
        counts = np.concatenate([[0], np.cumsum(is_wanted)])
        ends = counts[self.batch_ends]
        of = self.data, matrix, matrix.shape[1], self.batches, self.batch_rows, ends
        return Records(*of, next_offset=self.next_offset)

    def columns(self) -> RecordColumns:
        """Return keys, values and timestamps, not copied; and the headers, if any record has one."""
        return columns_of_table(self, as_java=False)  # a copy of the log must have the same bytes

    def to_arrow(self, *, is_view: bool = False) -> RecordBatch:
        """Return a `pyarrow.RecordBatch`; `is_view` does not copy keys and values, see `columns.arrow_batches`."""
        return record_batch(self, is_view=is_view)

    def to_records(self) -> list[Record]:
        """Return all records as Python objects, copied."""
        return list(map(Record._make, zip(*self.to_lists(), strict=True)))

    def to_lists(self) -> tuple[list[Any], ...]:
        """Return the fields of `Record` as one list each, copied."""
        data, count = self.data.data, self.count
        offsets, timestamps, _, key_starts, key_sizes, value_starts, value_sizes, _, header_counts = self.matrix[
            :, :count
        ].tolist()
        headers: list[Headers] = [[] for _ in offsets]
        if any(header_counts):
            for row in np.flatnonzero(self.header_count).tolist():
                headers[row] = [(java_utf8(key), value) for key, value in self.headers(row)]
        keys = [None if n < 0 else data[i : i + n].tobytes() for i, n in zip(key_starts, key_sizes, strict=True)]
        values = [None if n < 0 else data[i : i + n].tobytes() for i, n in zip(value_starts, value_sizes, strict=True)]
        matrix, rows = self.batches.matrix, self.batch_rows
        if rows.size == 1:  # without the arrays of the next line, which cost more than a record
            kinds = [[matrix.item(field, rows.item(0)) for field in _KIND_FIELDS]]
        else:
            kinds = matrix[_KIND_FIELDS].take(rows, axis=1).T.tolist()
        if kinds and kinds.count(kinds[0]) == len(kinds):  # as in most logs
            types, epochs = ([item] * count for item in kind_of(*kinds[0]))
        else:
            made = [kind_of(*kind) for kind in kinds]
            of_batch = np.repeat(np.arange(len(kinds)), self.batch_counts).tolist()
            types, epochs = [made[row][0] for row in of_batch], [made[row][1] for row in of_batch]
        return offsets, timestamps, types, keys, values, headers, epochs


class TailRecords:
    """Few consecutive records as Python objects, used as `Records` are; arrays would cost more than the records.

    Attributes:
        next_offset: where a reader goes on behind them.
        size: bytes of their batches.
    """

    __slots__ = ("_lists", "next_offset", "size")

    def __init__(self, lists: tuple[list[Any], ...], next_offset: int, size: int) -> None:
        self._lists, self.next_offset, self.size = lists, next_offset, size

    def __len__(self) -> int:
        return len(self._lists[0])

    @property
    def offset(self) -> list[int]:
        """Offset of each record."""
        return self._lists[0]

    def to_lists(self) -> tuple[list[Any], ...]:
        """See `Records.to_lists`."""
        return self._lists

    def part(self, start: int, end: int) -> TailRecords:
        """Return the records from row `start` to row `end`, exclusive."""
        next_offset = self.offset[end] if end < len(self) else self.next_offset
        return TailRecords(tuple(column[start:end] for column in self._lists), next_offset, self.size)


def kind_of(magic: int, attributes: int, epoch: int) -> tuple[TimestampType, int | None]:
    """Return timestamp type and leader epoch of a batch's records."""
    return timestamp_type(magic, attributes & LOG_APPEND_TIME_FLAG), None if epoch == NO_LEADER_EPOCH else epoch


def timestamp_types(batches: BatchTable) -> npt.NDArray[np.int64]:
    """Return the number of the `TimestampType` of each batch."""
    is_log_append_time = batches.attributes & LOG_APPEND_TIME_FLAG != 0
    types = np.where(is_log_append_time, int(TimestampType.LOG_APPEND_TIME), int(TimestampType.CREATE_TIME))
    return np.where(batches.magic == 0, int(TimestampType.NO_TIMESTAMP_TYPE), types)
