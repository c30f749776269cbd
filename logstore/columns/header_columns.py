"""HeaderColumns: headers of many records as columns of keys and values, and their encoded form.

`columns_of_table` makes columns of records that were read, headers included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import UsageError
from ..kernels.decode import records as decode
from ..kernels.encode.fields import SLACK_SIZE
from ..kernels.table import headers as fields
from ..layout.record import Headers, header_key_bytes
from ..layout.utf8 import java_utf8
from .batch_table import ByteArray, Int64Array
from .build_errors import refused
from .record_columns import BytesColumn, RecordColumns
from .record_table import RecordTable

_HEADER_OVERHEAD_MAX = 10  # bytes of the two sizes of a header
_COUNT_SIZE_MAX = 5


@dataclass(frozen=True, slots=True, eq=False)
class HeaderColumns:
    """Headers of records.

    Attributes:
        starts, ends: int64[n], contiguous: record i has headers starts[i] to ends[i], exclusive.
        keys: UTF-8, none of them null.
        values: one for each key.
    """

    starts: Int64Array
    ends: Int64Array
    keys: BytesColumn
    values: BytesColumn

    @classmethod
    def of_lists(cls, rows: Sequence[Headers]) -> HeaderColumns:
        """Copy a list of (key, value) for each record; keys as in `headers_bytes`, and None, which `encoded` refuses.

        Raises:
            UsageError: what is no list of lists of pairs, with a key of text and bytes as the value.
        """
        try:
            pairs = [[(key, value) for key, value in headers] for headers in rows]
        except (TypeError, ValueError) as error:
            raise UsageError(
                "Headers are a list of pairs for each record",
                expected="[[(str, bytes or None), …], …]",
                found=repr(rows),
            ) from error
        counts = np.array([len(row) for row in pairs], np.int64)
        ends = np.cumsum(counts)
        keys = BytesColumn.of_values(
            [None if key is None else header_key_bytes(key) for row in pairs for key, _ in row]
        )
        values = BytesColumn.of_values([value for row in pairs for _, value in row])
        return cls(ends - counts, ends, keys, values)

    @classmethod
    def of_records(
        cls, records: RecordTable, rows: Int64Array | slice = slice(None), *, as_java: bool = True
    ) -> HeaderColumns:
        """Decode the headers of some records, not copied; `as_java` repairs broken UTF-8 in keys as Java does."""
        counts = np.ascontiguousarray(records.column(decode.HEADER_COUNT)[rows])
        ends = np.cumsum(counts)
        matrix = np.empty((fields.COLUMN_COUNT, int(ends[-1]) if ends.size else 0), np.int64)
        state = np.zeros(fields.STATE_COUNT, np.int64)
        state[fields.ROW_COUNT] = counts.size
        positions = np.ascontiguousarray(records.column(decode.HEADERS_POSITION)[rows])
        status = fields.decode_headers(
            state, records.data, records.data.size, positions, counts, matrix, matrix.shape[1]
        )
        if status != fields.OK:
            raise UsageError("The headers of a record are not where its table says", found=f"row {state[fields.ROW]}")
        keys = BytesColumn(records.data, matrix[fields.KEY_START], matrix[fields.KEY_END])
        values = BytesColumn(records.data, matrix[fields.VALUE_START], matrix[fields.VALUE_END])
        keys = _as_java(keys) if as_java and state[fields.HAS_OTHER_THAN_ASCII] else keys
        return cls(ends - counts, ends, keys, values)

    def __len__(self) -> int:
        return self.starts.size

    def encoded(self) -> BytesColumn:
        """Encode each record's headers, their count first, as `RecordColumns` needs them; UsageError for a null key."""
        room = self._room()
        offsets = np.zeros(len(self) + 1, np.int64)
        out = np.empty(room + SLACK_SIZE, np.uint8)
        state = np.zeros(fields.STATE_COUNT, np.int64)
        state[fields.ROW_COUNT] = len(self)
        state[fields.HEADER_COUNT] = len(self.keys)
        state[fields.KEY_DATA_SIZE] = self.keys.data.size
        state[fields.VALUE_DATA_SIZE] = self.values.data.size
        state[fields.OUT_CAPACITY] = room
        keys, values = ((column.data, column.starts, column.ends) for column in (self.keys, self.values))
        status = fields.encode_headers(state, self.starts, self.ends, *keys, *values, out, offsets[1:])
        if status == fields.NULL_KEY:
            raise refused("Invalid null header key found in headers", found=f"record {state[fields.ROW]}")
        if status != fields.OK:
            raise _not_there()
        return BytesColumn.of_offsets(out[: offsets[-1]], offsets)

    def _room(self) -> int:
        """Return an upper bound of the encoded size, in bytes."""
        count = len(self.keys)
        is_there = (self.starts >= 0) & (self.starts <= self.ends) & (self.ends <= count)
        if count != len(self.values) or self.starts.shape != self.ends.shape or not is_there.all():
            raise _not_there()
        sizes = self.keys.sizes + self.values.sizes + (2 + _HEADER_OVERHEAD_MAX)
        sums = np.concatenate([[0], np.cumsum(sizes)])
        return int((sums[self.ends] - sums[self.starts]).sum()) + len(self) * _COUNT_SIZE_MAX


def columns_of_table(
    records: RecordTable, rows: Int64Array | slice = slice(None), *, as_java: bool = True
) -> RecordColumns:
    """Make columns of all or some records that were read; keys and values are not copied.

    Args:
        rows: int64, row numbers, or a slice.
        as_java: as in `HeaderColumns.of_records`.
    """
    timestamps, headers = records.timestamp[rows], None
    if records.header_count[rows].any():
        headers = HeaderColumns.of_records(records, rows, as_java=as_java).encoded()
    keys = _fields(records.data, records.key_position[rows], records.key_size[rows])
    values = _fields(records.data, records.value_position[rows], records.value_size[rows])
    return RecordColumns(timestamps.size, keys, values, timestamps, headers)


def _fields(data: ByteArray, starts: Int64Array, sizes: Int64Array) -> BytesColumn:
    return BytesColumn(data, starts, starts + sizes)


def _not_there() -> UsageError:
    return UsageError("The headers of a record are not within their columns")


def _as_java(keys: BytesColumn) -> BytesColumn:
    """Return the keys as a Java string would hold them, which repairs broken UTF-8."""
    texts = (java_utf8(keys.data[start:end].tobytes()) for start, end in zip(keys.starts, keys.ends, strict=True))
    return BytesColumn.of_values([text.encode() for text in texts])
