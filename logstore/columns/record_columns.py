"""RecordColumns: records to be written, one column for each field, in the layout of Arrow's binary arrays.

`RecordColumns.from_records` makes them of Python objects, `any_columns` of everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import UsageError
from ..kernels.table.key_hashes import murmur2_keys
from ..layout.batch import NO_TIMESTAMP
from ..layout.record import Headers, bytes_column, headers_bytes
from .batch_table import BoolArray, ByteArray, Int64Array
from .build_errors import wrong_timestamp

#: key, value, timestamp in ms, headers as in `headers_bytes`
PythonRecord = tuple[bytes | None, bytes | None, int, Headers | bytes]


class BytesColumn:
    """Byte strings, some of them null, as ranges of one buffer; a view of the data it was made from.

    Attributes:
        data: uint8, 1-D, contiguous, may be read-only.
        width: size of every string if all are equally long and consecutive from the first byte on; else -1.
    """

    __slots__ = ("_count", "_ranges", "data", "width")

    def __init__(self, data: ByteArray, starts: Int64Array, ends: Int64Array) -> None:
        """Make string i of data[starts[i]:ends[i]], contiguous int64[n]; null if the end is before the start."""
        self._set_data(data)
        for ranges in (starts, ends):
            if ranges.dtype != np.int64 or ranges.ndim != 1 or not ranges.flags.c_contiguous:
                raise UsageError(
                    "The ranges of a column are not one array of offsets",
                    expected="a contiguous int64 array",
                    found=f"{ranges.dtype}, {ranges.ndim}-D",
                )
        if starts.size != ends.size:
            raise UsageError("A range has a start or an end but not both", expected=starts.size, found=ends.size)
        self._ranges: tuple[Int64Array, Int64Array] | None = (starts, ends)
        self._count, self.width = starts.size, -1

    def _set_data(self, data: ByteArray) -> None:
        if data.dtype != np.uint8 or data.ndim != 1 or not data.flags.c_contiguous:
            raise UsageError(
                "The bytes of a column are not one buffer",
                expected="a contiguous uint8 array",
                found=f"{data.dtype}, {data.ndim}-D",
            )
        self.data = data

    @classmethod
    def of_width(cls, data: ByteArray, count: int, width: int) -> BytesColumn:
        """Make a column of rows of `width` bytes; their ranges are computed when asked for."""
        if count * width > data.size:
            raise UsageError("Rows are not within their bytes", expected=count * width, found=data.size)
        column = cls.__new__(cls)
        column._set_data(data)
        column._ranges, column._count, column.width = None, count, width
        return column

    @property
    def starts(self) -> Int64Array:
        """int64[n], contiguous."""
        return self._known_ranges()[0]

    @property
    def ends(self) -> Int64Array:
        """int64[n], contiguous; before the start for null."""
        return self._known_ranges()[1]

    def _known_ranges(self) -> tuple[Int64Array, Int64Array]:
        if self._ranges is None:
            edges = np.arange(self._count + 1, dtype=np.int64) * self.width
            self._ranges = edges[:-1], edges[1:]
        return self._ranges

    @classmethod
    def of_offsets(cls, data: ByteArray, offsets: npt.NDArray[Any], is_null: BoolArray | None = None) -> BytesColumn:
        """Make a column of Arrow's layout: string i is data[offsets[i]:offsets[i + 1]]; int64 offsets are not copied.

        Args:
            data: uint8, 1-D, contiguous.
            offsets: integers[n + 1], ascending; encoding checks that they are within `data`.
            is_null: bool[n]; None if nothing is null.
        """
        if offsets.ndim != 1 or offsets.size < 1 or offsets.dtype.kind not in "iu":
            raise UsageError(
                "Offsets of a column are not an array of integers",
                expected="one more than there are rows",
                found=f"{offsets.dtype}, shape {offsets.shape}",
            )
        width = _width_between(offsets) if is_null is None else -1
        if width >= 0 and offsets[-1] <= data.size:
            return cls.of_width(data[int(offsets[0]) :], offsets.size - 1, width)
        whole = np.ascontiguousarray(offsets, np.int64)
        starts, ends = whole[:-1], whole[1:]
        if (ends < starts).any():
            raise UsageError("Offsets of a column do not ascend", found=f"row {int((ends < starts).argmax())}")
        if is_null is not None:
            if is_null.shape != starts.shape or is_null.dtype != np.bool_:
                raise UsageError("A null mask does not fit its column", expected=starts.shape, found=is_null.shape)
            ends = np.where(is_null, -1, ends)
        return cls(data, starts, ends)

    @classmethod
    def of_values(cls, values: Sequence[bytes | None]) -> BytesColumn:
        """Copy Python byte strings into one buffer; raises UsageError as `bytes_of`."""
        column = bytes_column(values)
        present = [b"" if value is None else value for value in column] if None in column else column
        ends = np.fromiter(accumulate(map(len, present)), np.int64, len(present))  # type: ignore[arg-type]
        starts = np.zeros(len(present), np.int64)
        starts[1:] = ends[:-1]
        if present is not column:
            ends[[value is None for value in column]] = -1
        return cls(np.frombuffer(b"".join(present), np.uint8), starts, ends)  # type: ignore[arg-type]

    def __len__(self) -> int:
        return self._count

    @property
    def is_null(self) -> BoolArray:
        """bool[n]: the null strings."""
        return self.ends < self.starts

    @property
    def sizes(self) -> Int64Array:
        """int64[n], bytes, -1 for null; raises UsageError for a range outside of the data."""
        is_null = self.is_null
        if not ((self.starts >= 0) & (self.ends <= self.data.size) | is_null).all():
            raise UsageError("A range of a column is not within its bytes", found=f"{self.data.size} bytes")
        return np.where(is_null, -1, self.ends - self.starts)

    def murmur2_hashes(self) -> Int64Array:
        """Hash each string as Java's producer (`Utils.murmur2`): int64[n], Java ints, 0 for null; raises as `sizes`."""
        self.sizes  # noqa: B018 - checks all ranges: the kernel does not
        hashes = np.empty(len(self), np.int64)
        murmur2_keys(self.data, self.starts, self.ends, len(self), hashes)
        return hashes

    def value(self, row: int) -> bytes | None:
        """Return a string, copied."""
        start, end = int(self.starts[row]), int(self.ends[row])
        return None if end < start else self.data[start:end].tobytes()

    def take(self, rows: Any) -> BytesColumn:
        """Return some rows: a slice (not copied), a bool mask or row numbers (ranges copied, bytes not)."""
        return BytesColumn(self.data, np.ascontiguousarray(self.starts[rows]), np.ascontiguousarray(self.ends[rows]))


@dataclass(frozen=True, slots=True, eq=False)
class RecordColumns:
    """Records to be written.

    Attributes:
        count: rows.
        keys, values: None makes all null, which is not the same as empty.
        timestamps: int64[count], ms since 1970, contiguous; None gives every record `timestamp_ms`.
        headers: encoded headers of each row, their count first (`headers_bytes`, `encode_headers`); None if no row has
            any.
        timestamp_ms: of every record, without `timestamps`; -1 for none.
    """

    count: int
    keys: BytesColumn | None = None
    values: BytesColumn | None = None
    timestamps: Int64Array | None = None
    headers: BytesColumn | None = None
    timestamp_ms: int = NO_TIMESTAMP

    def __post_init__(self) -> None:
        for name in ("keys", "values", "timestamps", "headers"):
            column = getattr(self, name)
            if column is not None and len(column) != self.count:
                raise UsageError(f"The {name} are not as many as the records", expected=self.count, found=len(column))
        times = self.timestamps
        if times is not None and (times.dtype != np.int64 or times.ndim != 1 or not times.flags.c_contiguous):
            raise UsageError(
                "The timestamps are not milliseconds since 1970",
                expected="a contiguous int64 array",
                found=f"{times.dtype}, {times.ndim}-D",
            )

    @classmethod
    def from_records(cls, records: Iterable[PythonRecord]) -> RecordColumns:
        """Copy (key, value, timestamp in ms, headers) of each record; headers as in `headers_bytes`.

        Raises:
            InvalidTimestampError: a timestamp beyond 64 bits.
            UsageError: a header key that is not valid Unicode.
        """
        rows = list(records)
        if not rows:
            return cls(0)
        keys, values, timestamps, headers = zip(*rows, strict=True)
        return cls(
            len(rows),
            _column(keys),
            _column(values),
            _timestamps(timestamps),
            BytesColumn.of_values([headers_bytes(each) for each in headers]) if any(headers) else None,
        )

    def __len__(self) -> int:
        return self.count

    def take(self, rows: slice | BoolArray | Int64Array) -> RecordColumns:
        """Return some rows; the bytes are not copied."""
        keys, values, headers = (None if c is None else c.take(rows) for c in (self.keys, self.values, self.headers))
        timestamps = None if self.timestamps is None else np.ascontiguousarray(self.timestamps[rows])
        count = len(range(*rows.indices(self.count))) if isinstance(rows, slice) else np.arange(self.count)[rows].size
        return RecordColumns(count, keys, values, timestamps, headers, self.timestamp_ms)

    def stamped(self, timestamp_ms: int) -> RecordColumns:
        """Return the columns, stamped if they have no timestamps, as a producer stamps its records."""
        if self.timestamps is not None or self.timestamp_ms != NO_TIMESTAMP:
            return self
        return replace(self, timestamp_ms=timestamp_ms)


def _width_between(offsets: npt.NDArray[Any]) -> int:
    """Return the bytes from each offset to the next if they are all the same; else -1."""
    count = offsets.size - 1
    if count < 1 or offsets[0] < 0 or offsets[1] < offsets[0]:
        return -1
    width = int(offsets[1]) - int(offsets[0])
    if int(offsets[-1]) - int(offsets[0]) != count * width:
        return -1
    return width if (offsets[1:] - offsets[:-1] == width).all() else -1


def _timestamps(values: Sequence[int]) -> Int64Array:
    try:
        return np.fromiter(values, np.int64, len(values))
    except OverflowError:
        row = next(row for row, value in enumerate(values) if not -(1 << 63) <= value < 1 << 63)
        raise wrong_timestamp(values[row], row) from None


def _column(values: Sequence[bytes | None]) -> BytesColumn | None:
    return None if all(value is None for value in values) else BytesColumn.of_values(values)
