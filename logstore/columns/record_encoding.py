"""Calls of the encoding kernels: their arguments from columns, and errors from their status."""

from __future__ import annotations

import numpy as np

from ..errors import LogstoreError, UsageError
from ..kernels.encode import structs as status
from ..kernels.encode.batches import encode_batches
from ..kernels.encode.fields import SLACK_SIZE
from ..kernels.encode.measure import measure_batches
from ..kernels.encode.sizes import INT_MAX
from ..kernels.encode.structs import Encoding
from .batch_table import ByteArray, Int64Array
from .build_errors import ILLEGAL_ARGUMENT, too_large, wrong_timestamp
from .record_columns import RecordColumns

_BATCH_SIZE_MAX = 1 << 32  # larger than any batch


class RecordEncoder:
    """Encodes columns into batches, some batches at a time.

    Attributes:
        encoding: the struct of the kernels; it keeps the arrays alive.
    """

    def __init__(self, columns: RecordColumns, offset_deltas: Int64Array | None = None) -> None:
        """Take the columns; raises InvalidTimestampError for a timestamp beyond 64 bits."""
        if not -(1 << 63) <= columns.timestamp_ms < 1 << 63:
            raise wrong_timestamp(columns.timestamp_ms, 0)
        self._columns = columns
        self.encoding = encoding = Encoding()
        encoding.row_count = columns.count
        encoding.timestamp = columns.timestamp_ms
        if columns.timestamps is not None:
            encoding.has_timestamps, encoding.timestamps = 1, columns.timestamps
        if offset_deltas is not None:
            encoding.has_offset_deltas, encoding.offset_deltas = 1, offset_deltas
        for name, column in (("keys", columns.keys), ("values", columns.values), ("headers", columns.headers)):
            setattr(encoding, f"{name}_size", -1 if column is None else column.data.size)
            setattr(encoding, f"{name}_width", -1 if column is None else column.width)
            if column is not None:
                setattr(encoding, name, column.data)
            if column is not None and column.width < 0:
                setattr(encoding, f"{name}_starts", column.starts)
                setattr(encoding, f"{name}_ends", column.ends)

    def measure(self, matrix: Int64Array, row_ends: Int64Array, batch_size_max: int) -> int:
        """Measure the next batches: sizes, deltas, timestamps and counts, see `measure_batches`.

        Args:
            matrix: int64[scan.COLUMN_COUNT, capacity].
            row_ends: int64[capacity]; an input if batch_size_max is 0, else an output.
            batch_size_max: bytes.

        Returns:
            The number of batches; the capacity if there was no room for more, see `is_measured`.

        Raises:
            UsageError: a range outside of its column; offsets that do not ascend.
            InvalidTimestampError: a negative timestamp other than -1.
            RecordTooLargeError: a record or batch of more than 2147483647 bytes.
        """
        encoding = self._encoding_of(matrix, row_ends)
        encoding.batch_count, encoding.batch_size_max = 0, min(batch_size_max, _BATCH_SIZE_MAX)
        found = measure_batches(encoding)
        if found > status.BATCHES_FULL:
            raise self._error(found)
        return encoding.batch_count

    @property
    def is_measured(self) -> bool:
        """True if all rows are in measured batches."""
        return self.encoding.row == self.encoding.row_count

    def encode(
        self,
        matrix: Int64Array,
        row_ends: Int64Array,
        out_size: int,
        *,
        first_row: int = 0,
        out: ByteArray | None = None,
    ) -> ByteArray:
        """Return the bytes of consecutive measured batches, `out_size` in all.

        Args:
            matrix, row_ends: of the batches, the first of which begins with `first_row`.
            out: uint8, written to if it has SLACK_SIZE bytes more than needed.

        Raises:
            UsageError: the columns were changed since they were measured.
        """
        if out is None or out.size < out_size + SLACK_SIZE:
            out = np.empty(out_size + SLACK_SIZE, np.uint8)
        encoding = self._encoding_of(matrix, row_ends)
        encoding.batch_count, encoding.row = row_ends.size, first_row
        encoding.out, encoding.out_size_max = out, out_size
        if encode_batches(encoding) != status.OK or encoding.out_size != out_size:
            raise UsageError("The columns of a batch were changed while it was built", found=self._columns)
        return out[:out_size]

    def _encoding_of(self, matrix: Int64Array, row_ends: Int64Array) -> Encoding:
        encoding = self.encoding
        if encoding.batches is not matrix or encoding.row_ends is not row_ends:  # setting an array takes 2 µs
            encoding.batches, encoding.batch_capacity, encoding.row_ends = matrix, matrix.shape[1], row_ends
        return encoding

    def _error(self, found: int) -> LogstoreError:
        row, detail = self.encoding.row, self.encoding.detail
        if found == status.BAD_TIMESTAMP:
            return wrong_timestamp(detail, row)
        if found == status.BAD_OFFSET_DELTA:
            return UsageError(
                "Offsets must increase monotonically",
                expected=f"offset deltas that ascend from 0 to {INT_MAX}",
                found=f"{detail} of record {row}",
                java_class=ILLEGAL_ARGUMENT,
            )
        if found == status.OUT_OF_DATA:
            return UsageError(f"The key, value or headers of record {row} are not within their column's bytes")
        return too_large("record" if found == status.RECORD_TOO_LARGE else "batch", detail)
