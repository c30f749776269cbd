"""One batch of a few records, in buffers that are kept: what `build_batch` does, without the arrays that it makes.

A batch of 150 records takes 4 µs in the kernels; arrays to call them with would take 30.
"""

from __future__ import annotations

import numpy as np

from ..codec import compress
from ..kernels import encode_size, scan
from ..kernels.encode import encode_batches, write_headers
from ..kernels.encode_fields import SLACK_SIZE
from ..kernels.encode_measure import measure_batches
from ..layout.batch import HEADER_SIZE
from ..model import Codec, TimestampType
from .batch_fields import BatchFields
from .batch_table import ByteArray, Int64Array
from .record_columns import BytesColumn, RecordColumns

SIZE_MAX = 256 * 1024  # bytes before compression; the kernels keep the interpreter meanwhile
COUNT_MAX = 4096
_NO_BYTES = np.zeros(1, np.uint8)
_NO_RANGES = np.zeros(1, np.int64)
# of each column where its arrays are among the arguments: to be measured (without its bytes), to be encoded
_KEYS, _VALUES, _HEADERS = (1, 1), (3, 4), (5, 7)
_TIMESTAMPS, _OFFSET_DELTAS = (7, 10), (8, 11)


class OneBatch:
    """Room for a batch, used again for the next; for one thread at a time.

    Attributes:
        out: uint8, the bytes before compression.
    """

    __slots__ = ("_encode", "_fields", "_measure", "_row_ends", "_state", "_write_header", "out")

    def __init__(self) -> None:
        state, fields, row_ends = (np.zeros(n, np.int64) for n in (encode_size.STATE_COUNT, scan.COLUMN_COUNT, 1))
        self._state, self._fields, self._row_ends = state.data, fields.data, row_ends.data
        self.out = np.empty(SIZE_MAX + SLACK_SIZE, np.uint8)
        ranges, column = [_NO_RANGES, _NO_RANGES], [_NO_BYTES, _NO_RANGES, _NO_RANGES]
        batch = (*ranges, fields, 1, row_ends)
        self._measure = measure_batches.bound(state, *ranges, *ranges, *ranges, *batch)
        self._encode = encode_batches.bound(state, *column, *column, *column, *batch, self.out)
        self._write_header = write_headers.bound(self.out, 0, fields, 1)

    def build(
        self,
        columns: RecordColumns,
        offset_deltas: Int64Array | None,
        last_offset_delta: int | None,
        header: BatchFields,
    ) -> ByteArray | None:
        """The batch, uint8, writable; None for one that is not for here, or that is wrong: see `build_batch`.

        Args:
            columns: up to COUNT_MAX rows.
            offset_deltas: int64[n], contiguous.
        """
        size = self._plain(columns, offset_deltas, last_offset_delta, header)
        if not size:
            return None
        if header.codec is Codec.NONE:
            return self.out[:size].copy()
        stream = compress(header.codec, self.out[HEADER_SIZE:size].data, header.level)
        content = bytearray(HEADER_SIZE)
        content += stream
        data = np.frombuffer(content, np.uint8)
        self._fields[scan.SIZE] = data.size
        self._write_header.set(0, data)
        self._write_header.set(1, data.size)
        self._write_header.run()
        return data

    def _plain(
        self,
        columns: RecordColumns,
        offset_deltas: Int64Array | None,
        last_offset_delta: int | None,
        header: BatchFields,
    ) -> int:
        """Bytes of the batch that is in `out` now, not compressed; 0 as `build`."""
        state, fields = self._state, self._fields
        state[encode_size.ROW_COUNT] = columns.count
        state[encode_size.HAS_TIMESTAMPS] = columns.timestamps is not None
        state[encode_size.TIMESTAMP] = columns.timestamp_ms
        state[encode_size.HAS_OFFSET_DELTAS] = offset_deltas is not None
        state[encode_size.ROW] = state[encode_size.BATCH_COUNT] = state[encode_size.BATCH_SIZE_MAX] = 0
        fields[scan.ATTRIBUTES] = header.attributes
        fields[scan.BASE_TIMESTAMP] = header.delete_horizon_ms or 0
        self._put_column(columns.keys, _KEYS, encode_size.KEY_DATA_SIZE, encode_size.KEY_WIDTH)
        self._put_column(columns.values, _VALUES, encode_size.VALUE_DATA_SIZE, encode_size.VALUE_WIDTH)
        self._put_column(columns.headers, _HEADERS, encode_size.HEADERS_DATA_SIZE, encode_size.HEADERS_WIDTH)
        if columns.timestamps is not None:
            self._put(columns.timestamps, *_TIMESTAMPS)
        if offset_deltas is not None:
            self._put(offset_deltas, *_OFFSET_DELTAS)
        self._row_ends[0] = columns.count
        if self._measure.run() != encode_size.OK or fields[scan.SIZE] > SIZE_MAX:
            return 0
        if last_offset_delta is not None:
            fields[scan.LAST_OFFSET_DELTA] = last_offset_delta
        if header.base_offset + fields[scan.LAST_OFFSET_DELTA] >= 1 << 63:
            return 0
        fields[scan.BASE_OFFSET] = header.base_offset
        fields[scan.PARTITION_LEADER_EPOCH] = header.partition_leader_epoch
        fields[scan.PRODUCER_ID] = header.producer_id
        fields[scan.PRODUCER_EPOCH] = header.producer_epoch
        fields[scan.BASE_SEQUENCE] = header.base_sequence
        if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
            fields[scan.MAX_TIMESTAMP] = header.log_append_time
        size = fields[scan.SIZE]
        state[encode_size.OUT_CAPACITY], state[encode_size.ROW], state[encode_size.BATCH_COUNT] = size, 0, 1
        return size if self._encode.run() == encode_size.OK and state[encode_size.OUT_SIZE] == size else 0

    def _put_column(self, column: BytesColumn | None, places: tuple[int, int], size_slot: int, width_slot: int) -> None:
        if column is None:
            self._state[size_slot] = self._state[width_slot] = -1
            return
        self._state[size_slot], self._state[width_slot] = column.data.size, column.width
        measured, encoded = places
        self._encode.set(encoded, column.data)
        if column.width >= 0:
            return
        self._put(column.starts, measured, encoded + 1)
        self._put(column.ends, measured + 1, encoded + 2)

    def _put(self, array: Int64Array, measured: int, encoded: int) -> None:
        self._measure.set(measured, array)
        self._encode.set(encoded, array)
