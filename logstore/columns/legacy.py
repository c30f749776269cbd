"""Messages of magic 0 and 1 as values, plain or out of a wrapper (`AbstractLegacyRecordBatch`, `LegacyRecord`).

Like Kafka's, a message here is a view of its bytes: a length in it that cannot be right is found when it is used.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from ..codec import Decompressed, decompress
from ..codec.outcome import array_refusal
from ..errors import CorruptRecordError, InvalidRecordError, UnsupportedCompressionTypeError
from ..kernels.scan import batches as fields
from ..layout import legacy as layout
from ..layout.batch import MAGIC_V2
from ..model import Codec, TimestampType
from .batch_table import BatchTable, ByteArray
from .record_table import DECOMPRESSED_SIZE_MAX


class LegacyRecord(NamedTuple):
    """One message.

    Attributes:
        offset: absolute, once it has come out of its wrapper.
        message: uint8, from the checksum on; at least 14 bytes.
        wrapper_timestamp: milliseconds, of the wrapper of a magic 1 message.
        wrapper_timestamp_type: of the same; LOG_APPEND_TIME makes `wrapper_timestamp` that of the message.
    """

    offset: int
    message: memoryview
    wrapper_timestamp: int | None = None
    wrapper_timestamp_type: TimestampType | None = None

    @property
    def magic(self) -> int:
        """Signed byte; 0 or 1 unless damaged."""
        return _int8(self.message[layout.MESSAGE_MAGIC])

    @property
    def attributes(self) -> int:
        """Byte."""
        return self.message[layout.MESSAGE_ATTRIBUTES]

    @property
    def crc(self) -> int:
        """The stored checksum, unsigned."""
        return int.from_bytes(self.message[:4], "big")

    @property
    def is_valid(self) -> bool:
        """Whether the stored checksum is that of the message."""
        return self.crc == zlib.crc32(self.message[4:])

    @property
    def timestamp_type(self) -> TimestampType:
        """Who set the timestamp; nobody in magic 0."""
        if self.magic != 0 and self.wrapper_timestamp_type is not None:
            return self.wrapper_timestamp_type
        return layout.timestamp_type(self.magic, self.attributes)

    @property
    def timestamp(self) -> int:
        """Milliseconds; -1 in magic 0."""
        if self.magic == 0:
            return layout.NO_TIMESTAMP
        if self.wrapper_timestamp_type is TimestampType.LOG_APPEND_TIME and self.wrapper_timestamp is not None:
            return self.wrapper_timestamp
        start = layout.MESSAGE_TIMESTAMP
        return int.from_bytes(self.message[start : start + 8], "big", signed=True)

    @property
    def codec(self) -> Codec:
        """Raises UnsupportedCompressionTypeError for an id that Kafka does not know."""
        codec_id = self.attributes & layout.CODEC_MASK
        if codec_id > Codec.ZSTD:
            raise UnsupportedCompressionTypeError(f"Unknown compression type id: {codec_id}", offset=self.offset)
        return Codec(codec_id)

    @property
    def key_size(self) -> int:
        """Bytes, negative for null; raises InvalidRecordError where the message is too short to say."""
        return self._int32(self._key_size_position)

    @property
    def value_size(self) -> int:
        """Bytes, negative for null; raises InvalidRecordError where the message is too short to say."""
        return self._int32(self._value_size_position)

    @property
    def key(self) -> memoryview | None:
        """Raises InvalidRecordError if the message is shorter than its key."""
        return self._field(self._key_size_position)

    @property
    def value(self) -> memoryview | None:
        """Raises InvalidRecordError if the message is shorter than its value."""
        return self._field(self._value_size_position)

    @property
    def value_position(self) -> int:
        """Position in `message` of the first byte of the value, if it has one."""
        return self._value_size_position + 4

    @property
    def _key_size_position(self) -> int:
        return layout.MESSAGE_KEY_SIZE_V0 if self.magic == 0 else layout.MESSAGE_KEY_SIZE_V1

    @property
    def _value_size_position(self) -> int:
        return self._key_size_position + 4 + max(0, self.key_size)

    def _int32(self, position: int) -> int:
        if position > len(self.message) - 4:
            raise InvalidRecordError(None, offset=self.offset, java_class="java.lang.IndexOutOfBoundsException")
        return int.from_bytes(self.message[position : position + 4], "big", signed=True)

    def _field(self, position: int) -> memoryview | None:
        """`Utils.sizeDelimited`."""
        size = self._int32(position)
        if size < 0:
            return None
        start = position + 4
        if size > len(self.message) - start:
            raise InvalidRecordError(
                f"newLimit > capacity: ({size} > {len(self.message) - start})",
                offset=self.offset,
                java_class="java.lang.IllegalArgumentException",
            )
        return self.message[start : start + size]


def legacy_entry(data: ByteArray, table: BatchTable, row: int) -> LegacyRecord:
    """The entry of a row, which is of magic 0 or 1, as it stands in `data`: a message, or a wrapper."""
    position, size = int(table.position[row]), int(table.size[row])  # at least 26 bytes, which the scan has seen to
    entry = data[position : position + size].data
    offset = int.from_bytes(entry[: layout.SIZE], "big", signed=True)
    return LegacyRecord(offset, entry[layout.ENTRY_OVERHEAD_SIZE :])


def fill_legacy_is_valid(data: ByteArray, table: BatchTable) -> None:
    """Fill `is_valid` of the rows of magic 0 and 1, which `compute_is_valid` leaves out."""
    for row in np.flatnonzero(table.magic < MAGIC_V2).tolist():
        table.matrix[fields.IS_VALID, row] = int(legacy_entry(data, table, row).is_valid)


def valid_row_count(data: ByteArray, table: BatchTable) -> int:
    """Rows before the first batch, of any magic, whose checksum is wrong, or that is too short for its header."""
    if len(table) and int(table.is_valid.min()) == 1:
        return len(table)
    fill_legacy_is_valid(data, table)
    invalid = np.flatnonzero(table.is_valid == 0)
    return int(invalid[0]) if invalid.size else len(table)


def read_legacy_records(entry: LegacyRecord, size_max: int = DECOMPRESSED_SIZE_MAX) -> Iterator[LegacyRecord]:
    """The records of an entry: itself, or those of the message set in it (`DeepRecordsIterator`).

    All messages of a wrapper are read before the first is given out.

    Args:
        entry: of the file.
        size_max: bytes that the message set may have decompressed.

    Raises:
        UnsupportedCompressionTypeError: a codec id that Kafka does not know.
        InvalidRecordError: no wrapper can be like that; after the good ones, a message that is compressed again.
        CorruptRecordError: a message shorter than a message can be.
        DecompressionError: the stream is broken, or too large.
    """
    codec = entry.codec
    if codec is Codec.NONE:
        yield entry
        return
    inner = _unwrapped(entry, codec, size_max)
    base_offset = _base_offset(entry, inner) if entry.magic == 1 else 0
    for record in inner:
        if record.codec is not Codec.NONE:
            raise InvalidRecordError("Inner messages must not be compressed", offset=entry.offset)
        yield record._replace(offset=_int64(base_offset + record.offset))


def _unwrapped(wrapper: LegacyRecord, codec: Codec, size_max: int) -> list[LegacyRecord]:
    """The messages inside, their offsets as they are stored."""
    invalid = partial(InvalidRecordError, offset=wrapper.offset)
    if codec is Codec.ZSTD:
        raise invalid(f"Invalid wrapper compressionType found in legacy deep record iterator {wrapper.magic}")
    payload = wrapper.value
    if payload is None:
        raise invalid(f"Found invalid compressed record set with null value (magic = {wrapper.magic})")
    payload_offset = layout.ENTRY_OVERHEAD_SIZE + wrapper.value_position
    timestamp, timestamp_type = wrapper.timestamp, wrapper.timestamp_type
    records = []
    for offset, message in _entries(decompress(codec, payload, wrapper.magic, size_max, payload_offset)):
        record = LegacyRecord(offset, message)
        if record.magic == 1:
            record = record._replace(wrapper_timestamp=timestamp, wrapper_timestamp_type=timestamp_type)
        records.append(record)
    if not records:
        raise invalid("Found invalid compressed record set with no inner records")
    return records


def _entries(stream: Decompressed) -> Iterator[tuple[int, memoryview]]:
    """(offset, message) of a message set (`DataLogInputStream`); an entry that is cut short ends it."""
    data = stream.data.data
    position = 0
    while True:
        start = position + layout.ENTRY_OVERHEAD_SIZE
        if start > len(data):
            break
        offset = int.from_bytes(data[position : position + 8], "big", signed=True)
        size = int.from_bytes(data[position + 8 : start], "big", signed=True)
        if size < layout.MESSAGE_SIZE_MIN:
            raise CorruptRecordError(
                f"Record size is less than the minimum record overhead ({layout.MESSAGE_SIZE_MIN})", offset=offset
            )
        refusal = array_refusal(size)
        if refusal is not None:
            raise CorruptRecordError(refusal, offset=offset, java_class="java.lang.OutOfMemoryError")
        position = start + size
        if position > len(data):
            break
        yield offset, data[start:position]
    if stream.error is not None:
        raise stream.error


def _base_offset(wrapper: LegacyRecord, inner: list[LegacyRecord]) -> int:
    """What to add to the stored offsets of a magic 1 wrapper."""
    last_inner_offset = inner[-1].offset
    if wrapper.offset == 0:
        return 0
    if wrapper.offset < last_inner_offset:
        raise InvalidRecordError(
            f"Found invalid wrapper offset in compressed v1 message set, wrapper offset '{wrapper.offset}' is less "
            f"than the last inner message offset '{last_inner_offset}' and it is not zero.",
            offset=wrapper.offset,
        )
    return wrapper.offset - last_inner_offset


def _int8(byte: int) -> int:
    return byte - 256 if byte > 127 else byte


def _int64(number: int) -> int:
    """`number` as a Java long holds it."""
    return (number + 2**63) % 2**64 - 2**63
