"""Columns of records built into v2 batches, byte for byte as Kafka's `MemoryRecordsBuilder` builds them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Unpack

import numpy as np

from ..codec import compress
from ..errors import UsageError
from ..kernels.encode.batches import write_headers
from ..kernels.encode.fields import SLACK_SIZE
from ..kernels.encode.sizes import INT_MAX
from ..kernels.scan import batches as scan
from ..layout import marker
from ..layout.batch import CODEC_MASK, HEADER_SIZE
from ..layout.record import SEQUENCE_MAX
from ..model import Codec, ControlRecordType, TimestampType
from .batch_fields import BatchFieldArguments, BatchFields
from .batch_table import Batches, BatchTable, ByteArray, Int64Array
from .build_errors import refused, too_large
from .record_columns import RecordColumns
from .record_encoding import RecordEncoder

BATCHES_AT_ONCE = 1024  # measured by one kernel call
BYTES_AT_ONCE = 1 << 20  # built before they are written, so that they still are in the cache
CACHE_LINE_SIZE = 64
_AROUND_SIZE = SLACK_SIZE + CACHE_LINE_SIZE
_HEADER_ROOM = bytes(HEADER_SIZE)


def build_batch(
    columns: RecordColumns,
    *,
    offset_deltas: Int64Array | None = None,
    **fields: Unpack[BatchFieldArguments],
) -> ByteArray:
    """Build one batch of all rows; without rows no bytes, as in Kafka.

    Args:
        offset_deltas: int64[n], relative to the base offset, ascending; None for 0, 1, 2, …
        fields: the attributes of `BatchFields`.

    Returns:
        uint8, 1-D, writable.

    Raises:
        UsageError: what `MemoryRecordsBuilder` refuses; a level that the codec does not have; a range outside of its
            column.
        InvalidTimestampError: a negative timestamp other than -1.
        RecordTooLargeError: more than 2147483647 bytes in all or in one record.
    """
    return build(columns, BatchFields(**fields), offset_deltas).data


def build(columns: RecordColumns, header: BatchFields, offset_deltas: Int64Array | None = None) -> Batches:
    """Build one batch of all rows, or none without rows; see `build_batch`."""
    if not columns.count:
        return Batches(np.zeros(0, np.uint8), BatchTable(_matrix(0, header), 0, scan.END, 0))
    if offset_deltas is not None and (offset_deltas.dtype != np.int64 or offset_deltas.shape != (columns.count,)):
        raise UsageError(
            "Offset deltas do not fit the records",
            expected=f"int64[{columns.count}]",
            found=f"{offset_deltas.dtype}{list(offset_deltas.shape)}",
        )
    offset_deltas = None if offset_deltas is None else np.ascontiguousarray(offset_deltas)
    matrix, encoder = _matrix(1, header), RecordEncoder(columns, offset_deltas)
    row_ends = np.array([columns.count], np.int64)
    encoder.measure(matrix, row_ends, 0)
    _set_header(matrix, header)
    return encode_measured(encoder, matrix, row_ends, header.level)


def build_marker(
    control_type: ControlRecordType,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp_ms: int,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
) -> ByteArray:
    """Build the batch of 78 bytes that ends a transaction (`MemoryRecords.withEndTransactionMarker`).

    Args:
        control_type: COMMIT or ABORT.

    Returns:
        uint8[78], writable.

    Raises:
        UsageError: another type, no producer id, or a number that does not fit its field.
        InvalidTimestampError: a negative timestamp other than -1.
    """
    if control_type not in (ControlRecordType.COMMIT, ControlRecordType.ABORT):
        raise refused(f"Invalid control record type for end transaction marker {control_type.name}")
    if producer_id < 0:
        raise refused("End transaction marker requires a valid producerId", producer_id)
    if not -(1 << 31) <= coordinator_epoch < 1 << 31:
        raise UsageError("coordinator_epoch has no room in a marker", found=coordinator_epoch)
    record = marker.marker_record(control_type, coordinator_epoch)
    key = record[marker.KEY_VERSION - marker.RECORD_LENGTH : marker.VALUE_SIZE - marker.RECORD_LENGTH]
    value = record[marker.VALUE_VERSION - marker.RECORD_LENGTH : marker.HEADER_COUNT - marker.RECORD_LENGTH]
    columns = RecordColumns.from_records([(key, value, timestamp_ms, ())])
    return build_batch(
        columns,
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        partition_leader_epoch=partition_leader_epoch,
        is_transactional=True,
        is_control=True,
    )


def build_batches(columns: RecordColumns, *, batch_size: int, **fields: Unpack[BatchFieldArguments]) -> Batches:
    """Build all rows into batches as a producer does (`RecordAccumulator`, `MemoryRecordsBuilder.hasRoomFor`).

    No batch is larger than `batch_size` before compression, unless its first record alone, with lengths and deltas at
    their longest, does not fit: such a batch may be as large as that.

    Args:
        batch_size: bytes before compression.
        fields: the attributes of `BatchFields`; base offset and base sequence are the first batch's.

    Raises:
        As `build_batch`; UsageError for a batch size below 1.
    """
    header = BatchFields(**fields)
    encoder, matrix, row_ends = _measured(columns, batch_size, header)
    return encode_measured(encoder, matrix, row_ends, header.level)


def build_batches_in_turn(
    columns: RecordColumns, *, batch_size: int, position: Callable[[], int], **fields: Unpack[BatchFieldArguments]
) -> tuple[Int64Array, Iterator[Batches]]:
    """Build the batches of `build_batches` uncompressed, a few at a time, in memory that is reused for the next ones.

    However many there are, they are still in the processor's cache when they are written. All rows are measured before
    the first batch is built.

    Args:
        position: returns the byte of the file at which the next part will be written. Cache lines begin in memory
            where they begin there, so that the system copies in three quarters of the time.

    Returns:
        The size of each batch, and the batches; a part must be used up before the next is requested.
    """
    header = BatchFields(**fields)
    encoder, matrix, row_ends = _measured(columns, batch_size, header)
    return matrix[scan.SIZE].copy(), _built_in_turn(encoder, matrix, row_ends, position)


def _built_in_turn(
    encoder: RecordEncoder, matrix: Int64Array, row_ends: Int64Array, position: Callable[[], int]
) -> Iterator[Batches]:
    ends = np.cumsum(matrix[scan.SIZE])
    begin, buffer = 0, np.empty(0, np.uint8)
    while begin < row_ends.size:
        start = int(ends[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(ends, start + BYTES_AT_ONCE, "right")), begin + 1)
        size = int(ends[end - 1]) - start
        if buffer.size < size + _AROUND_SIZE:
            buffer = np.empty(size + _AROUND_SIZE, np.uint8)
        part = np.ascontiguousarray(matrix[:, begin:end])
        first_row = int(row_ends[begin - 1]) if begin else 0
        out = buffer[(position() - buffer.ctypes.data) % CACHE_LINE_SIZE :]
        data = encoder.encode(part, row_ends[begin:end], size, first_row=first_row, out=out)
        yield Batches(data, BatchTable(part, end - begin, scan.END, size))
        begin = end


def encode_measured(encoder: RecordEncoder, matrix: Int64Array, row_ends: Int64Array, level: int | None) -> Batches:
    """Encode the batches whose headers are in the matrix, and compress them as their attributes say."""
    sizes = matrix[scan.SIZE]
    data = encoder.encode(matrix, row_ends, int(sizes.sum()))
    if matrix[scan.ATTRIBUTES].any() and (matrix[scan.ATTRIBUTES] & CODEC_MASK).any():
        data = _compressed(data, matrix, level)
    return Batches(data, BatchTable(matrix, matrix.shape[1], scan.END, data.size))


def _measured(
    columns: RecordColumns, batch_size: int, header: BatchFields
) -> tuple[RecordEncoder, Int64Array, Int64Array]:
    """Measure all batches; return their complete headers, and the row behind each."""
    encoder = RecordEncoder(columns)
    matrix, row_ends = _split(encoder, header, batch_size)
    row_starts = row_ends - matrix[scan.RECORD_COUNT]
    _set_header(matrix, header)
    matrix[scan.BASE_OFFSET] += row_starts
    if header.base_sequence >= 0:
        matrix[scan.BASE_SEQUENCE] = (header.base_sequence + row_starts) & SEQUENCE_MAX
    return encoder, matrix, row_ends


def _matrix(count: int, header: BatchFields) -> Int64Array:
    """Return headers of batches to be measured."""
    matrix = np.zeros((scan.COLUMN_COUNT, count), np.int64)
    matrix[scan.ATTRIBUTES] = header.attributes
    if header.delete_horizon_ms is not None:
        matrix[scan.BASE_TIMESTAMP] = header.delete_horizon_ms
    return matrix


def _set_header(matrix: Int64Array, header: BatchFields) -> None:
    """Fill in the header fields that `measure` leaves out."""
    matrix[scan.BASE_OFFSET] = header.base_offset
    matrix[scan.PARTITION_LEADER_EPOCH] = header.partition_leader_epoch
    matrix[scan.PRODUCER_ID] = header.producer_id
    matrix[scan.PRODUCER_EPOCH] = header.producer_epoch
    matrix[scan.BASE_SEQUENCE] = header.base_sequence
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        matrix[scan.MAX_TIMESTAMP] = header.log_append_time
    # the offsets of all batches together: they follow one another
    if header.base_offset + int(matrix[scan.LAST_OFFSET_DELTA].sum()) + matrix.shape[1] > 1 << 63:
        raise UsageError("There are not so many offsets left", found=f"a batch at {header.base_offset}")


def _split(encoder: RecordEncoder, header: BatchFields, batch_size: int) -> tuple[Int64Array, Int64Array]:
    """Split the rows into batches; return their measured headers, and the row behind each."""
    if batch_size < 1:
        raise UsageError("batch_size is too small", expected="at least 1", found=batch_size)
    parts: list[Int64Array] = []
    ends: list[Int64Array] = []
    while not encoder.is_measured:
        matrix, row_ends = _matrix(BATCHES_AT_ONCE, header), np.zeros(BATCHES_AT_ONCE, np.int64)
        count = encoder.measure(matrix, row_ends, batch_size)
        parts.append(matrix[:, :count])
        ends.append(row_ends[:count])
    if not parts:
        return _matrix(0, header), np.zeros(0, np.int64)
    return np.concatenate(parts, axis=1), np.concatenate(ends)


def _compressed(plain: ByteArray, matrix: Int64Array, level: int | None) -> ByteArray:
    """Compress the records of the batches; update their headers."""
    parts: list[bytes] = []
    for batch in range(matrix.shape[1]):
        start, size = int(matrix[scan.POSITION, batch]), int(matrix[scan.SIZE, batch])
        codec = Codec(int(matrix[scan.ATTRIBUTES, batch]) & CODEC_MASK)
        stream = compress(codec, plain[start + HEADER_SIZE : start + size].data, level)
        if len(stream) > INT_MAX - HEADER_SIZE:
            raise too_large("batch", HEADER_SIZE + len(stream))
        matrix[scan.SIZE, batch] = HEADER_SIZE + len(stream)
        # room for the header, which is written when all sizes are known
        parts += (_HEADER_ROOM, stream)
    return with_headers(bytearray().join(parts), matrix)


def with_headers(content: bytearray, matrix: Int64Array) -> ByteArray:
    """Write the headers of consecutive batches into `content`; fill in POSITION and CRC."""
    data = np.frombuffer(content, np.uint8)
    matrix[scan.POSITION] = np.cumsum(matrix[scan.SIZE]) - matrix[scan.SIZE]
    write_headers(data, data.size, matrix, matrix.shape[1])
    return data
