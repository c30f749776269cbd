"""RecordTable: one row for each record; and the decoding of a batch into tables, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..codec import decompress
from ..codec.outcome import Decompressed
from ..config.topic import ARRAY_SIZE_MAX
from ..errors import InvalidRecordError, LogstoreError, UnsupportedCompressionTypeError
from ..kernels.decode import records as fields
from ..kernels.decode.batches import begin_batch
from ..kernels.scan import batches as scan
from ..kernels.varint import read_header
from ..layout.batch import CODEC_MASK, HEADER_SIZE
from ..model import Codec, OfOneProcess
from .batch_table import BatchTable, ByteArray, Int64Array

CHUNK_ROW_COUNT = 2048
DECOMPRESSED_SIZE_MAX = 128 * 1024 * 1024  # bytes; a larger stream is refused as a decompression bomb

_PREMATURE_END = "Incorrect declared batch size, premature EOF reached"
_BAD_STRUCTURE = "Found invalid record structure"
SIZE_ABOVE_MAX = "Invalid record size: {detail} exceeds the configured maximum record size of {second}."
_MESSAGES = {
    fields.PREMATURE_END: _PREMATURE_END,
    fields.VARINT_TOO_LONG: "Varint is too long, the most significant bit in the 5th byte is set, "
    "converted value: {detail:x}",
    fields.SIZE_BEYOND_BATCH: "Invalid record size: expected {detail} bytes in record payload, but instead the "
    "buffer has only {second} remaining bytes.",
    fields.SIZE_BEYOND_STREAM: "Invalid record size: expected {detail} bytes in record payload, but the record "
    "payload reached EOF.",
    fields.BAD_STRUCTURE: _BAD_STRUCTURE,
    fields.BAD_HEADER_COUNT: "Found invalid number of record headers {detail}",
    fields.HEADER_COUNT_BEYOND_RECORD: "Found invalid number of record headers. {detail} is larger than the "
    "remaining size of the buffer",
    fields.BAD_HEADER_KEY_SIZE: "Invalid negative header key size {detail}",
    fields.SIZE_MISMATCH: "Invalid record size: expected to read {detail} bytes in record payload, but instead "
    "read {second}",
    fields.RECORDS_REMAINING: "Incorrect declared batch size, records still remaining in file",
    fields.NEGATIVE_SIZE: "Invalid record size: {detail} is negative.",
    fields.SIZE_ABOVE_MAX: SIZE_ABOVE_MAX,
    fields.LENGTH_TOO_LONG: _PREMATURE_END,
    fields.STRUCTURE_TOO_LONG: _BAD_STRUCTURE,
    fields.ENDED_IN_LENGTH: _PREMATURE_END,
    fields.ENDED_IN_STRUCTURE: _BAD_STRUCTURE,
    fields.ENDED_IN_FIELD: "Reached end of input stream before skipping all bytes. Remaining bytes:{detail}",
}
_ENDED = (fields.ENDED_IN_LENGTH, fields.ENDED_IN_STRUCTURE, fields.ENDED_IN_FIELD)


class RecordTable(OfOneProcess):
    """Records of one batch.

    Attributes:
        data: uint8, 1-D, where positions count: the mapped file or the decompressed stream.
        matrix: int64[column count, capacity]; column numbers are the constants of `kernels.decode.records`.
        count: rows in use.
    """

    __slots__ = ("count", "data", "matrix")
    _instead = "it refers to a whole segment; give what `to_arrow` or `to_records` returns"

    def __init__(self, data: ByteArray, matrix: Int64Array, count: int) -> None:
        self.data = data
        self.matrix = matrix
        self.count = count

    def __len__(self) -> int:
        return self.count

    def column(self, field: int) -> Int64Array:
        """Return a column, int64[count], not copied."""
        return self.matrix[field, : self.count]

    offset = property(lambda self: self.column(fields.OFFSET))
    timestamp = property(lambda self: self.column(fields.TIMESTAMP), doc="Milliseconds.")
    sequence = property(lambda self: self.column(fields.SEQUENCE), doc="-1 none.")
    key_position = property(lambda self: self.column(fields.KEY_POSITION), doc="In `data`; anything where null.")
    key_size = property(lambda self: self.column(fields.KEY_SIZE), doc="Bytes; -1 null.")
    value_position = property(lambda self: self.column(fields.VALUE_POSITION), doc="In `data`; anything where null.")
    value_size = property(lambda self: self.column(fields.VALUE_SIZE), doc="Bytes; -1 null.")
    header_count = property(lambda self: self.column(fields.HEADER_COUNT))

    def key(self, index: int) -> bytes | None:
        """Return the key of record `index`, copied."""
        return self._field(fields.KEY_POSITION, fields.KEY_SIZE, index)

    def value(self, index: int) -> bytes | None:
        """Return the value of record `index`, copied."""
        return self._field(fields.VALUE_POSITION, fields.VALUE_SIZE, index)

    def headers(self, index: int) -> list[tuple[bytes, bytes | None]]:
        """Return the headers of record `index` in order, keys as they are in the file."""
        data, position = self.data.data, int(self.matrix[fields.HEADERS_POSITION, index])
        headers = []
        for _ in range(int(self.matrix[fields.HEADER_COUNT, index])):
            key_size, key_end, value_size, position = read_header(data, position, len(data))
            value = None if value_size < 0 else bytes(data[position - value_size : position])
            headers.append((bytes(data[key_end - key_size : key_end]), value))
        return headers

    def _field(self, position_field: int, size_field: int, index: int) -> bytes | None:
        size = int(self.matrix[size_field, index])
        if size < 0:
            return None
        position = int(self.matrix[position_field, index])
        return self.data[position : position + size].tobytes()


class BatchRecords:
    """Records of one v2 batch, decoded in chunks.

    An uncompressed batch is decoded in place. A compressed one is decompressed, and all its records are checked before
    the first is yielded, because Kafka's iterator reads such a batch as a whole; its iterator of records of a limited
    size does not. Of a stream that does not decompress, the records before the damage are yielded.
    """

    __slots__ = ("_outcome", "data", "state")

    def __init__(
        self,
        data: ByteArray,
        table: BatchTable,
        row: int,
        *,
        record_size_max: int = 0,
        skips: bool = False,
    ) -> None:
        """Decompress the batch if need be.

        Args:
            record_size_max: bytes; a larger record of a compressed batch is an error. 0 for any size.
            skips: read of compressed records what a leader checks, offset, timestamp and sizes. As in Kafka, a record's
                length is only bounded then, so that a leader accepts records that no consumer can read.
        """
        position = int(table.matrix[scan.POSITION, row])
        size = int(table.matrix[scan.SIZE, row])
        attributes = int(table.matrix[scan.ATTRIBUTES, row])
        if size < HEADER_SIZE:
            raise InvalidRecordError(None, java_class="java.lang.IndexOutOfBoundsException", position=position)
        self.state = np.zeros(fields.STATE_COUNT, np.int64)
        self.state[fields.SIZE_MAX] = record_size_max
        self._outcome: Decompressed | None = None
        self.data = data
        start, end = position + HEADER_SIZE, position + size
        count = int(table.matrix[scan.RECORD_COUNT, row])
        codec = _codec(attributes & CODEC_MASK, position) if count != 0 else Codec.NONE
        magic = int(table.matrix[scan.MAGIC, row])
        if codec is not Codec.NONE:
            self._outcome = decompress(codec, data[start:end].data, magic, DECOMPRESSED_SIZE_MAX)
            if self._outcome.error is not None:
                self._outcome.error.position = position
            self.data = self._outcome.data
            start, end = 0, self._outcome.data.size
        if count < 0 and (self._outcome is None or self._outcome.error is None):
            raise InvalidRecordError(
                f"Found invalid record count {count} in magic v{magic} batch",
                position=position,
                offset=int(table.matrix[scan.BASE_OFFSET, row]),
            )
        source = fields.PLAIN if self._outcome is None else fields.SKIPPED_STREAM if skips else fields.STREAM
        begin_batch(table.matrix[:, row], 1, 0, start, end, source, self.state)

    def chunks(self, matrix: Int64Array | None = None) -> Iterator[RecordTable]:
        """Yield tables of at most the matrix's capacity, each overwriting the rows of the one before.

        Raises what Kafka raises for a damaged batch: after the good records of an uncompressed batch, before the first
        record of a compressed one. A stream that does not decompress raises after the records before the damage.
        """
        if matrix is None:
            matrix = np.empty((fields.COLUMN_COUNT, CHUNK_ROW_COUNT), np.int64)
        if self._outcome is None or self._outcome.error is not None or self.state[fields.SIZE_MAX] > 0:
            yield from self._decode(matrix)
            if self._outcome is not None and self._outcome.error is not None:
                raise self._outcome.error
            return
        # a first pass over a compressed batch checks it to its end; one chunk needs no second pass
        start = int(self.state[fields.NEXT_POSITION])
        chunk_count = sum(1 for _ in self._decode(matrix))
        if chunk_count == 1:
            yield RecordTable(self.data, matrix, int(self.state[fields.ROW_COUNT]))
        elif chunk_count > 1:
            self.state[fields.RECORD_INDEX], self.state[fields.NEXT_POSITION] = 0, start
            yield from self._decode(matrix)

    def _decode(self, matrix: Int64Array) -> Iterator[RecordTable]:
        state = self.state
        while state[fields.RECORD_INDEX] < state[fields.RECORD_COUNT]:
            status = fields.decode_records(self.data, state, matrix, matrix.shape[1])
            yield RecordTable(self.data, matrix, int(state[fields.ROW_COUNT]))
            if status != fields.OK:
                raise self.decode_error(status)

    def decode_error(self, status: int) -> LogstoreError:
        """Return the error of a failed decode, in Kafka's words; the stream's, if it is damaged."""
        is_end = self.state[fields.SOURCE] != fields.SKIPPED_STREAM or status in _ENDED
        if is_end and self._outcome is not None and self._outcome.error is not None:
            return self._outcome.error
        return record_error(status, self.state)


def record_error(status: int, state: Int64Array) -> LogstoreError:
    """Return the error for the status and details of a decode (`DefaultRecord`, `DefaultRecordBatch`)."""
    detail, second = int(state[fields.DETAIL]), int(state[fields.SECOND_DETAIL])
    if status == fields.SIZE_BEYOND_STREAM and detail > ARRAY_SIZE_MAX:  # no reader takes more, whatever is configured
        status, second = fields.SIZE_ABOVE_MAX, ARRAY_SIZE_MAX
    is_above_max = status == fields.SIZE_ABOVE_MAX
    java_class = "java.lang.IllegalArgumentException" if status == fields.VARINT_TOO_LONG else None
    return InvalidRecordError(
        _MESSAGES[status].format(detail=detail, second=second),
        position=int(state[fields.NEXT_POSITION]),
        advice="raise max.decompressed.message.bytes" if is_above_max and second < ARRAY_SIZE_MAX else None,
        java_class=java_class,
    )


def _codec(codec_id: int, position: int) -> Codec:
    try:
        return Codec(codec_id)
    except ValueError as error:
        raise unknown_codec(codec_id, position) from error


def unknown_codec(codec_id: int, position: int) -> UnsupportedCompressionTypeError:
    """Return the error of a codec id unknown to Kafka (`CompressionType.forId`)."""
    return UnsupportedCompressionTypeError(
        f"Unknown compression type id: {codec_id}", position=position, expected="0 to 4", found=codec_id
    )
