"""The calls of the encoding kernels for some columns: what they are given, and what their status means."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import LogstoreError, UsageError
from ..jit.kernel import INTERPRETED
from ..jit.structs import address_of
from ..kernels import encode_size as fields
from ..kernels.encode import encode_batches
from ..kernels.encode_fields import SLACK_SIZE
from ..kernels.encode_measure import measure_batches
from .batch_table import ByteArray, Int64Array
from .build_errors import too_large, wrong_offset_delta, wrong_timestamp
from .record_columns import BytesColumn, RecordColumns

_NO_BYTES = np.zeros(1, np.uint8)
_NO_RANGES = np.zeros(1, np.int64)


def _argument(array: Any) -> Any:
    """What a kernel is given for an array that stays where it is: asking for its address each time is slow."""
    return array if INTERPRETED else address_of("u8*" if array.dtype == np.uint8 else "i64*", array)


_NONE = [_argument(each) for each in (_NO_BYTES, _NO_RANGES, _NO_RANGES)]


class RecordEncoder:
    """Columns on their way to batches.

    Attributes:
        state: int64, see `kernels.encode_size`.
        to_measure, to_encode: what both kernels are given first.
    """

    def __init__(self, columns: RecordColumns, offset_deltas: Int64Array | None = None) -> None:
        self._columns = columns
        self._offset_deltas = offset_deltas
        self.state = np.zeros(fields.STATE_COUNT, np.int64)
        self.state[fields.ROW_COUNT] = columns.count
        self.state[fields.HAS_TIMESTAMPS] = columns.timestamps is not None
        self.state[fields.TIMESTAMP] = columns.timestamp_ms
        self.state[fields.HAS_OFFSET_DELTAS] = offset_deltas is not None
        keys = self._column(columns.keys, fields.KEY_DATA_SIZE, fields.KEY_WIDTH)
        values = self._column(columns.values, fields.VALUE_DATA_SIZE, fields.VALUE_WIDTH)
        headers = self._column(columns.headers, fields.HEADERS_DATA_SIZE, fields.HEADERS_WIDTH)
        rows = [_NONE[1] if each is None else _argument(each) for each in (columns.timestamps, offset_deltas)]
        self.to_measure = [_argument(self.state), *keys[1:], *values[1:], *headers[1:], *rows]
        self.to_encode = [_argument(self.state), *keys, *values, *headers, *rows]

    def _column(self, column: BytesColumn | None, size_slot: int, width_slot: int) -> list[Any]:
        if column is None:
            self.state[[size_slot, width_slot]] = -1
            return _NONE
        self.state[[size_slot, width_slot]] = column.data.size, column.width
        ranges = (_NO_RANGES, _NO_RANGES) if column.width >= 0 else (column.starts, column.ends)
        return [_argument(each) for each in (column.data, *ranges)]

    def measure(self, matrix: Int64Array, row_ends: Int64Array, batch_size_max: int) -> bool:
        """Fill in the next batches' sizes, deltas, timestamps and counts, see `measure_batches`.

        Args:
            matrix: int64[scan.COLUMN_COUNT, capacity].
            row_ends: int64[capacity]; in when batch_size_max is 0, else out.
            batch_size_max: bytes.

        Returns:
            False when there was no room for all rows; state[BATCH_COUNT] batches are there.

        Raises:
            UsageError: a range that is not within the column's bytes; offsets that do not ascend.
            InvalidTimestampError: a negative timestamp other than -1.
            RecordTooLargeError: a record or batch of more than 2147483647 bytes.
        """
        self.state[fields.BATCH_SIZE_MAX] = batch_size_max
        status = measure_batches(*self.to_measure, matrix, matrix.shape[1], row_ends)
        if status > fields.BATCHES_FULL:
            raise self._error(status)
        return status == fields.OK

    def encode(
        self,
        matrix: Int64Array,
        row_ends: Int64Array,
        out_size: int,
        *,
        first_row: int = 0,
        out: ByteArray | None = None,
    ) -> ByteArray:
        """The bytes of batches that were measured, `out_size` in all, behind one another.

        Args:
            matrix, row_ends: of the batches, the first of which begins with `first_row`.
            out: uint8, to write into if it has SLACK_SIZE bytes more than are needed.

        Raises:
            UsageError: the columns were changed meanwhile.
        """
        if out is None or out.size < out_size + SLACK_SIZE:
            out = np.empty(out_size + SLACK_SIZE, np.uint8)
        self.state[fields.OUT_CAPACITY] = out_size
        self.state[fields.ROW] = first_row
        self.state[fields.BATCH_COUNT] = row_ends.size
        status = encode_batches(*self.to_encode, matrix, matrix.shape[1], row_ends, out)
        if status != fields.OK or self.state[fields.OUT_SIZE] != out_size:
            raise UsageError("The columns of a batch were changed while it was built", found=self._columns)
        return out[:out_size]

    def _error(self, status: int) -> LogstoreError:
        row, detail = int(self.state[fields.ROW]), int(self.state[fields.DETAIL])
        if status == fields.BAD_TIMESTAMP:
            return wrong_timestamp(detail, row)
        if status == fields.BAD_OFFSET_DELTA:
            return wrong_offset_delta(detail, row)
        if status == fields.OUT_OF_DATA:
            return UsageError(f"The key, value or headers of record {row} are not within their column's bytes")
        return too_large("record" if status == fields.RECORD_TOO_LARGE else "batch", detail)
