"""Records of many batches, of any magic and codec, in windows.

Uncompressed batches are decoded in place. Streams of compressed ones are joined into one buffer, and so are messages of
magic 0 and 1. Most batches take a fast path, many in one kernel call; the others are read one by one. A batch that
cannot be read yields `Records` with an error in its place, and reading goes on behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ..codec.streams import Places, decompress_streams
from ..errors import CorruptRecordError, LogstoreError
from ..kernels.decode import records as fields
from ..kernels.decode.batches import RECORDS_FULL, WRONG_CHECKSUM, decode_batches
from ..layout.batch import CODEC_MASK, HEADER_SIZE, MAGIC_V2
from ..model import Codec
from .batch_table import BatchTable, ByteArray, Int64Array
from .decoded_records import Records
from .legacy import LegacyRecord, legacy_entry, read_legacy_records
from .record_table import BatchRecords, RecordTable
from .window_memory import new_matrix, new_stream_buffer

RECORD_COUNT_MAX = 16_392  # of a window, about; columns of a power of two would share the cache's sets
WHOLE_RECORD_COUNT_MAX = 65_544  # of a window of whole batches: larger ones clean a log 15 % faster
WINDOW_SIZE_MAX = 4 * 1024 * 1024  # bytes of streams in a window, about
STREAMS_ENOUGH = 1024 * 1024  # bytes decompressed before their records are decoded, so that they still are in the cache
_OTHER = -1  # kind of batches that are read one by one
_POSITIONS = [fields.KEY_POSITION, fields.VALUE_POSITION, fields.HEADERS_POSITION]


def record_windows(
    data: ByteArray, batches: BatchTable, rows: Int64Array, capacity: int | None = None
) -> Iterator[Records]:
    """Yield the records of the batches of some rows, in order.

    Args:
        data: uint8, what `batches` was scanned from.
        rows: int64, ascending. Checksums are computed for uncompressed ones whose `is_valid` is
            `kernels.decode.batches.TO_CHECK`.
        capacity: records of a window on the fast path; None for `RECORD_COUNT_MAX`.
    """
    if not rows.size:
        return
    if rows[-1] - rows[0] != rows.size - 1:
        # what is left out, as markers between data, would part the others into runs of few batches
        for window in record_windows(data, batches.taken(rows), np.arange(rows.size), capacity):
            window.batches, window.batch_rows = batches, rows[window.batch_rows]
            yield window
        return
    capacity = capacity or RECORD_COUNT_MAX
    kinds = _kinds(batches)[rows]
    if (kinds == kinds[0]).all():  # as in most logs
        yield from _run_windows(data, batches, int(kinds[0]), int(rows[0]), int(rows[-1]) + 1, capacity)
        return
    for run in np.split(rows, np.flatnonzero(np.diff(kinds)) + 1):
        kind = int(kinds[run[0] - rows[0]])
        yield from _run_windows(data, batches, kind, int(run[0]), int(run[-1]) + 1, capacity)


def whole_batch_windows(data: ByteArray, batches: BatchTable, rows: Int64Array) -> Iterator[Records]:
    """Yield `record_windows` with each batch as a whole in one window; batches without records may be left out.

    Raises the error of a batch that cannot be read, with its position and offset.
    """
    parts: list[Records] = []
    for window in record_windows(data, batches, rows, WHOLE_RECORD_COUNT_MAX):
        if (error := window.error) is not None:
            row = window.batch_rows[-1]
            error.position, error.offset = int(batches.position[row]), int(batches.base_offset[row])
            raise error
        if parts and parts[-1].batch_rows[-1] != window.batch_rows[0]:
            yield _whole(parts)
            parts.clear()
        parts.append(window)
    if parts:
        yield _whole(parts)


def _whole(parts: list[Records]) -> Records:
    """Join windows, and the parts of each batch in them."""
    rows = np.concatenate([part.batch_rows for part in parts])
    ends = np.cumsum(np.concatenate([part.batch_counts for part in parts]))
    is_last = np.append(rows[1:] != rows[:-1], True)
    if is_last.all():
        return parts[0]
    return _joined(parts, parts[0].batches, rows[is_last], ends[is_last])


def _kinds(batches: BatchTable) -> Int64Array:
    """Return the codec of each batch; _OTHER for an old magic, or a stream that Kafka would not open."""
    codecs = batches.attributes & CODEC_MASK
    is_new = batches.magic >= MAGIC_V2
    if not codecs.any() and is_new.all():
        return codecs
    is_stream = (codecs <= max(Codec)) & (batches.size >= HEADER_SIZE) & (batches.record_count > 0)
    return np.where(is_new & (is_stream | (codecs == Codec.NONE)), codecs, _OTHER)


def _run_windows(
    data: ByteArray, batches: BatchTable, kind: int, row: int, row_end: int, capacity: int
) -> Iterator[Records]:
    if kind == Codec.NONE:
        bounds = batches.record_bounds(row, row_end)
        return _decoded(data, data, fields.PLAIN, bounds, batches, row, row_end, capacity)
    if kind == _OTHER:
        return _other_windows(data, batches, row, row_end)
    return _stream_windows(data, batches, Codec(kind), row, row_end, capacity)


def _stream_windows(
    data: ByteArray, batches: BatchTable, codec: Codec, row: int, row_end: int, capacity: int
) -> Iterator[Records]:
    starts, ends = batches.record_bounds(row, row_end)
    first_row = row
    while row < row_end:
        part = slice(row - first_row, None)
        buffer = new_stream_buffer()
        places = decompress_streams(codec, data, starts[part], ends[part], buffer, STREAMS_ENOUGH)
        count = places[0].size
        if not count:
            yield from _other_windows(data, batches, row, row + 1)
            row += 1
            continue
        content = buffer[: int(places[1][-1])]
        yield from _decoded(data, content, fields.STREAM, places, batches, row, row + count, capacity)
        del buffer, content  # first, so that the next one can reuse the memory
        row += count


def _decoded(
    data: ByteArray,
    content: ByteArray,
    source: int,
    places: Places,
    batches: BatchTable,
    row: int,
    row_end: int,
    capacity: int,
) -> Iterator[Records]:
    """Yield the records of some rows, as many at a time as a matrix has room for.

    Args:
        content: the bytes in which positions of records count: `data`, or streams.
        source: PLAIN or STREAM of `kernels.decode.records`.
        places: where in `content` the records of each row start and end.
    """
    first_row, (starts, ends) = row, places
    state = np.zeros(fields.STATE_COUNT, np.int64)
    record_rows = np.empty(batches.capacity + 1, np.int64)
    while row < row_end:
        matrix = new_matrix(capacity)
        rest = slice(row - first_row, None)
        status = decode_batches(
            *(content, starts[rest], ends[rest], source, batches.matrix, batches.capacity),
            *(row, row_end, state, matrix, capacity, record_rows),
        )
        stop = int(state[fields.ROW_COUNT])
        count = int(record_rows[stop])
        if count:
            batch_ends = record_rows[row + 1 : stop + 1].copy()
            yield Records(content, matrix, count, batches, np.arange(row, stop), batch_ends)
        del matrix
        if status == WRONG_CHECKSUM:
            yield Records.unreadable(batches, stop, CorruptRecordError("Record is corrupt"))
            stop += 1
        elif status != fields.OK and (status != RECORDS_FULL or stop == row):
            # a batch that is larger than a window, or fails: read alone it yields what is good of it
            yield from _other_windows(data, batches, stop, stop + 1)
            stop += 1
        row = stop


def _other_windows(data: ByteArray, batches: BatchTable, row: int, row_end: int) -> Iterator[Records]:
    parts = _Parts(batches)
    for number in range(row, row_end):
        try:
            for part in _parts_of(data, batches, number):
                if parts.is_full or not parts.takes(part):
                    yield from parts.taken()
                parts.add(part, number)
        except LogstoreError as error:
            yield from parts.taken()
            yield Records.unreadable(batches, number, error)
    yield from parts.taken()


def _parts_of(data: ByteArray, batches: BatchTable, row: int) -> Iterator[RecordTable]:
    if batches.magic[row] >= MAGIC_V2:
        yield from BatchRecords(data, batches, row).chunks()
    else:
        yield _legacy_table(list(read_legacy_records(legacy_entry(data, batches, row))))


def _legacy_table(messages: list[LegacyRecord]) -> RecordTable:
    """Return messages as records over their joined bytes."""
    matrix = np.zeros((fields.COLUMN_COUNT, len(messages)), np.int64)
    matrix[fields.SEQUENCE] = -1
    pieces: list[memoryview] = []
    end = 0
    for number, message in enumerate(messages):
        matrix[fields.OFFSET, number] = message.offset
        matrix[fields.TIMESTAMP, number] = message.timestamp
        for field, position, size in (
            (message.key, fields.KEY_POSITION, fields.KEY_SIZE),
            (message.value, fields.VALUE_POSITION, fields.VALUE_SIZE),
        ):
            matrix[position, number] = end
            matrix[size, number] = -1 if field is None else len(field)
            if field is not None:
                pieces.append(field)
                end += len(field)
        matrix[fields.HEADERS_POSITION, number] = end
    return RecordTable(np.frombuffer(b"".join(pieces), np.uint8), matrix, len(messages))


class _Parts:
    """Tables to be joined into a window: over one buffer, or each over a small one of its own."""

    def __init__(self, batches: BatchTable) -> None:
        self._batches = batches
        self._clear()

    def _clear(self) -> None:
        self._tables: list[RecordTable] = []
        self._rows: list[int] = []
        self._record_count = 0
        self._stream_size = 0

    @property
    def is_full(self) -> bool:
        return self._record_count >= RECORD_COUNT_MAX or self._stream_size >= WINDOW_SIZE_MAX

    def takes(self, table: RecordTable) -> bool:
        """Return whether the table can be joined to those that were added without copying a large buffer."""
        if not self._tables or table.data is self._tables[-1].data:
            return True
        return max(table.data.size, self._tables[0].data.size) <= WINDOW_SIZE_MAX

    def add(self, table: RecordTable, row: int) -> None:
        """Hold the table's buffer and a copy of its rows, which the decoder overwrites."""
        if not self._tables or table.data is not self._tables[-1].data:
            self._stream_size += table.data.size
        self._tables.append(RecordTable(table.data, table.matrix[:, : table.count].copy(), table.count))
        self._rows.append(row)
        self._record_count += table.count

    def taken(self) -> Iterator[Records]:
        """Yield all tables joined into one window, and drop them."""
        if self._record_count:
            ends = np.cumsum([table.count for table in self._tables])
            yield _joined(self._tables, self._batches, np.array(self._rows), ends)
        self._clear()


def _joined(
    tables: Sequence[RecordTable], batches: BatchTable, batch_rows: Int64Array, batch_ends: Int64Array
) -> Records:
    matrix = np.concatenate([table.matrix[:, : table.count] for table in tables], axis=1)
    streams = [tables[0].data]
    shift = end = column = 0
    for table in tables:
        if table.data is not streams[-1]:
            shift = end = end + streams[-1].size
            streams.append(table.data)
        matrix[_POSITIONS, column : column + table.count] += shift
        column += table.count
    data = streams[0] if len(streams) == 1 else np.concatenate(streams)
    return Records(data, matrix, matrix.shape[1], batches, batch_rows, batch_ends)
