"""BatchTable: one row for each batch, one int64 column for each header field."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import CorruptRecordError, LogstoreError
from ..kernels.scan import batches as fields
from ..layout.batch import CONTROL_FLAG, HEADER_SIZE, LENGTH_MIN, MAGIC_V2

Int64Array = npt.NDArray[np.int64]
ByteArray = npt.NDArray[np.uint8]
BoolArray = npt.NDArray[np.bool_]

CHUNK_ROW_COUNT = 4096
WINDOW_SIZE = 8 * 1024 * 1024  # bytes; small enough to be in the cache for the next kernel
_GROWTH = 8


class BatchTable:
    """Batches in file order.

    Attributes:
        matrix: int64[column count, capacity], C-contiguous; row i of a column is batch i. Column numbers are the
            constants of `kernels.scan.batches`.
        count: rows in use.
        status: why the scan stopped, a status of `kernels.scan.batches`.
        next_position: byte where the scan stopped, the end of the last batch.
        bad_length: the length field that stopped it, with status LENGTH_TOO_SMALL.
    """

    __slots__ = ("bad_length", "count", "matrix", "next_position", "status")

    def __init__(self, matrix: Int64Array, count: int, status: int, next_position: int, bad_length: int = 0) -> None:
        self.matrix = matrix
        self.count = count
        self.status = status
        self.next_position = next_position
        self.bad_length = bad_length

    def __len__(self) -> int:
        return self.count

    @property
    def capacity(self) -> int:
        """The number of rows that the matrix has room for."""
        return self.matrix.shape[1]

    def column(self, field: int) -> Int64Array:
        """Return a column, int64[count], not copied."""
        return self.matrix[field, : self.count]

    position = property(lambda self: self.column(fields.POSITION), doc="Byte position of the batch.")
    size = property(lambda self: self.column(fields.SIZE), doc="Bytes of the whole batch.")
    base_offset = property(lambda self: self.column(fields.BASE_OFFSET), doc="v0/v1: offset of the last message.")
    magic = property(lambda self: self.column(fields.MAGIC), doc="Signed; below 2 is a v0/v1 entry.")
    attributes = property(lambda self: self.column(fields.ATTRIBUTES), doc="Bits as in `layout.batch`.")
    max_timestamp = property(lambda self: self.column(fields.MAX_TIMESTAMP), doc="Milliseconds; -1 none.")
    producer_id = property(lambda self: self.column(fields.PRODUCER_ID), doc="-1 none.")
    producer_epoch = property(lambda self: self.column(fields.PRODUCER_EPOCH), doc="-1 none.")
    record_count = property(lambda self: self.column(fields.RECORD_COUNT), doc="v0/v1: -1.")
    is_valid = property(lambda self: self.column(fields.IS_VALID), doc="1, 0, or -1 not computed.")

    @property
    def is_control(self) -> BoolArray:
        """bool[count]: the control batches; none of magic 0 and 1 are."""
        found: BoolArray = (self.magic >= MAGIC_V2) & (self.attributes & CONTROL_FLAG != 0)
        return found

    @property
    def has_more(self) -> bool:
        """True if the scan can go on at `next_position`."""
        return self.status == fields.MORE

    @property
    def last_offset(self) -> Int64Array:
        """int64[count], the last offset that each batch ever had; cleaning does not change it."""
        return self.base_offset + self.column(fields.LAST_OFFSET_DELTA)

    def taken(self, rows: Int64Array) -> BatchTable:
        """Return a copy of some rows (int64) as a table, for one kernel call."""
        return BatchTable(self.matrix.take(rows, axis=1), rows.size, fields.END, self.next_position)

    def record_bounds(self, row: int, row_end: int) -> tuple[Int64Array, Int64Array]:
        """Return where the records of v2 batches start and end; a damaged batch may end before it starts."""
        starts = self.position[row:row_end]
        return starts + HEADER_SIZE, starts + self.size[row:row_end]

    def row(self, index: int) -> dict[str, int]:
        """Return a batch as a dict of Python ints, under Kafka's names."""
        return {name: int(self.matrix[field, index]) for name, field in FIELD_NAMES.items()}

    def error(self, path: str, end: int, start: int = 0) -> LogstoreError | None:
        """Return what stopped a scan up to byte `end` of a file, in Kafka's words; None if it ended well or has more.

        Args:
            start: byte of the file at which the scanned data begins.
        """
        position = start + self.next_position
        if self.status == fields.LENGTH_TOO_SMALL:
            return CorruptRecordError(
                f"Found record size {self.bad_length} smaller than minimum record overhead ({LENGTH_MIN}) "
                f"in file {path}.",
                path=path,
                position=position,
                expected=f"a batch length of at least {LENGTH_MIN}",
                found=self.bad_length,
            )
        if self.status == fields.HEADER_BEYOND_FILE:
            return CorruptRecordError(
                f"Failed to load record batch at position {position} from FileRecords(size={end}, "
                f"file={path}, start=0, end={end})",
                path=path,
                position=position,
                expected=f"a header of {HEADER_SIZE} bytes",
                found="the end of the file",
                java_class="org.apache.kafka.common.KafkaException",
            )
        return None


class Batches(NamedTuple):
    """Consecutive batches.

    Attributes:
        data: uint8, 1-D, contiguous.
        table: what a scan of `data` gives, checksums included.
    """

    data: ByteArray
    table: BatchTable


FIELD_NAMES = {
    "position": fields.POSITION,
    "size": fields.SIZE,
    "base_offset": fields.BASE_OFFSET,
    "partition_leader_epoch": fields.PARTITION_LEADER_EPOCH,
    "magic": fields.MAGIC,
    "crc": fields.CRC,
    "attributes": fields.ATTRIBUTES,
    "last_offset_delta": fields.LAST_OFFSET_DELTA,
    "base_timestamp": fields.BASE_TIMESTAMP,
    "max_timestamp": fields.MAX_TIMESTAMP,
    "producer_id": fields.PRODUCER_ID,
    "producer_epoch": fields.PRODUCER_EPOCH,
    "base_sequence": fields.BASE_SEQUENCE,
    "record_count": fields.RECORD_COUNT,
    "is_valid": fields.IS_VALID,
}


def scan_chunk(
    data: ByteArray,
    position: int,
    end: int,
    *,
    check_crc: bool = False,
    capacity: int = CHUNK_ROW_COUNT,
    window_size: int | None = None,
) -> BatchTable:
    """Scan the next batches: at most `capacity` rows over about `window_size` bytes (`FileLogInputStream.nextBatch`).

    While `status` is MORE, another call goes on at `next_position`.

    Args:
        data: uint8, 1-D, contiguous, may be read-only: the whole file.
        position: byte where a batch starts.
        end: byte that no batch may reach past, at most len(data).
        check_crc: compute CRC-32C into `is_valid`, a pass over all bytes.
    """
    matrix = np.empty((fields.COLUMN_COUNT, capacity), np.int64)
    result = np.zeros(fields.RESULT_COUNT, np.int64)
    status = fields.scan_batches(
        data, data.size, position, position + (window_size or WINDOW_SIZE), end, matrix, capacity, result
    )
    row_count, next_position, bad_length = result.tolist()
    table = BatchTable(matrix, row_count, status, next_position, bad_length)
    if check_crc:
        compute_is_valid(data, table)
    return table


def compute_is_valid(data: ByteArray, table: BatchTable) -> None:
    """Compute `is_valid` of the v2 rows from their CRC-32C; `data` is what the table was scanned from."""
    fields.check_batches(data, table.matrix, table.capacity, 0, table.count)


def headers(
    data: ByteArray,
    position: int = 0,
    end: int | None = None,
    *,
    capacity: int = CHUNK_ROW_COUNT,
    first_capacity: int | None = None,
    window_size: int | None = None,
    load: Callable[[int, int], None] | None = None,
) -> Iterator[BatchTable]:
    """Yield tables of the batches from `position` to `end`, without checksums: the one walk over headers.

    It ends where no batch follows; the status of the last table says why.

    Args:
        data: uint8, 1-D, contiguous, may be read-only: the whole file.
        position: byte where a batch starts.
        end: byte that no batch may reach past; by default the end of `data`.
        capacity: rows of a table.
        first_capacity: rows of the first table, for a reader that may need few; each later one has eight times as many.
        window_size: bytes of batches in a table, about; WINDOW_SIZE by default.
        load: called with each range before it is read, in order, as `LoadedFile.load`.
    """
    end = data.size if end is None else end
    row_count, window_size = first_capacity or capacity, window_size or WINDOW_SIZE
    while True:
        if load is not None:
            load(position, min(end, position + window_size + HEADER_SIZE))
        table = scan_chunk(data, position, end, capacity=row_count, window_size=window_size)
        if load is not None:
            load(position, table.next_position)  # the last batch of a window may be longer
        yield table
        if not table.has_more:
            return
        position, row_count = table.next_position, min(_GROWTH * row_count, capacity)


def scan(data: ByteArray, position: int = 0, end: int | None = None, *, check_crc: bool = False) -> BatchTable:
    """Return all batches from `position` to `end` in one table; takes 120 bytes of memory for each batch."""
    tables = []
    for table in headers(data, position, end):
        if check_crc:
            compute_is_valid(data, table)
        tables.append(table)
    last = tables[-1]
    matrix = np.concatenate([t.matrix[:, : t.count] for t in tables], axis=1)
    return BatchTable(matrix, matrix.shape[1], last.status, last.next_position, last.bad_length)
