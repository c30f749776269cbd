"""Messages of magic 0 and 1 as values, plain or from a wrapper (`AbstractLegacyRecordBatch`, `LegacyRecord`).

As in Kafka, a message is a view of its bytes: an impossible length in it is found when the field is used.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from ..codec import decompress
from ..config.topic import ARRAY_SIZE_MAX
from ..errors import CorruptRecordError, InvalidRecordError, UnsupportedCompressionTypeError
from ..kernels.scan import batches as fields
from ..layout import legacy as layout
from ..layout.batch import MAGIC_V2, NO_TIMESTAMP
from ..model import Codec, TimestampType
from .batch_table import BatchTable, ByteArray, compute_is_valid
from .record_table import DECOMPRESSED_SIZE_MAX, SIZE_ABOVE_MAX


class LegacyRecord(NamedTuple):
    """One message.

    Attributes:
        offset: absolute, for a message that was unwrapped.
        message: uint8, from the checksum on; at least 14 bytes.
        wrapper_timestamp: ms, of the wrapper of a magic 1 message.
        wrapper_timestamp_type: of the wrapper; LOG_APPEND_TIME makes `wrapper_timestamp` that of the message.
    """

    offset: int
    message: memoryview
    wrapper_timestamp: int | None = None
    wrapper_timestamp_type: TimestampType | None = None

    @property
    def magic(self) -> int:
        """Signed byte; 0 or 1 unless damaged."""
        byte = self.message[layout.MESSAGE_MAGIC]
        return byte - 256 if byte > 127 else byte

    @property
    def attributes(self) -> int:
        """Unsigned byte."""
        return self.message[layout.MESSAGE_ATTRIBUTES]

    @property
    def crc(self) -> int:
        """The stored checksum, unsigned."""
        return int.from_bytes(self.message[:4], "big")

    @property
    def is_valid(self) -> bool:
        """True if the stored checksum matches the message."""
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
            return NO_TIMESTAMP
        if self.wrapper_timestamp_type is TimestampType.LOG_APPEND_TIME and self.wrapper_timestamp is not None:
            return self.wrapper_timestamp
        start = layout.MESSAGE_TIMESTAMP
        return int.from_bytes(self.message[start : start + 8], "big", signed=True)

    @property
    def codec(self) -> Codec:
        """The codec; raises UnsupportedCompressionTypeError for an id unknown to Kafka."""
        codec_id = self.attributes & layout.CODEC_MASK
        if codec_id > Codec.ZSTD:
            raise UnsupportedCompressionTypeError(f"Unknown compression type id: {codec_id}", offset=self.offset)
        return Codec(codec_id)

    @property
    def key_size(self) -> int:
        """Bytes, negative for null; raises InvalidRecordError if the message is too short to hold it."""
        return self._int32(self._key_size_position)

    @property
    def value_size(self) -> int:
        """Bytes, negative for null; raises InvalidRecordError if the message is too short to hold it."""
        return self._int32(self._value_size_position)

    @property
    def key(self) -> memoryview | None:
        """The key; raises InvalidRecordError if the message ends before it does."""
        return self._field(self._key_size_position)

    @property
    def value(self) -> memoryview | None:
        """The value; raises InvalidRecordError if the message ends before it does."""
        return self._field(self._value_size_position)

    @property
    def value_position(self) -> int:
        """Position in `message` of the first byte of the value."""
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
        """Return the bytes behind a size field, None for a negative size (`Utils.sizeDelimited`)."""
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
    """Return the entry of a row of magic 0 or 1 as it stands in `data`: a message or a wrapper."""
    position, size = int(table.position[row]), int(table.size[row])  # at least 26 bytes: the scan requires them
    entry = data[position : position + size].data
    offset = int.from_bytes(entry[: layout.SIZE], "big", signed=True)
    return LegacyRecord(offset, entry[layout.ENTRY_OVERHEAD_SIZE :])


def fill_legacy_is_valid(data: ByteArray, table: BatchTable) -> None:
    """Compute `is_valid` of the rows of magic 0 and 1, which `compute_is_valid` leaves out."""
    for row in np.flatnonzero(table.magic < MAGIC_V2).tolist():
        table.matrix[fields.IS_VALID, row] = int(legacy_entry(data, table, row).is_valid)


def check_all(data: ByteArray, table: BatchTable) -> None:
    """Compute `is_valid` of all rows."""
    compute_is_valid(data, table)
    fill_legacy_is_valid(data, table)


def valid_row_count(data: ByteArray, table: BatchTable) -> int:
    """Return the number of rows before the first batch, of any magic, with a wrong checksum or a header cut short."""
    if len(table) and int(table.is_valid.min()) == 1:
        return len(table)
    fill_legacy_is_valid(data, table)
    invalid = np.flatnonzero(table.is_valid == 0)
    return int(invalid[0]) if invalid.size else len(table)


def read_legacy_records(entry: LegacyRecord, size_max: int = DECOMPRESSED_SIZE_MAX) -> Iterator[LegacyRecord]:
    """Yield the records of an entry: itself, or the messages in it (`DeepRecordsIterator`).

    All messages of a wrapper are read before the first is yielded.

    Args:
        entry: of the file.
        size_max: upper bound of the decompressed message set, in bytes.

    Raises:
        UnsupportedCompressionTypeError: a codec id unknown to Kafka.
        InvalidRecordError: an impossible wrapper, or a size that Java has no array for; behind the good messages, one
            that is compressed itself.
        CorruptRecordError: a message shorter than a message can be.
        DecompressionError: the stream is broken or too large.
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
    """Return the messages in a wrapper with their stored offsets."""
    invalid = partial(InvalidRecordError, offset=wrapper.offset)
    if wrapper.magic not in (0, 1):
        raise invalid(f"Invalid wrapper magic found in legacy deep record iterator {wrapper.magic}")
    if codec is Codec.ZSTD:
        raise invalid(f"Invalid wrapper compressionType found in legacy deep record iterator {wrapper.magic}")
    payload = wrapper.value
    if payload is None:
        raise invalid(f"Found invalid compressed record set with null value (magic = {wrapper.magic})")
    timestamp, timestamp_type = wrapper.timestamp, wrapper.timestamp_type
    records = []
    stream = decompress(codec, payload, wrapper.magic, size_max)
    if stream.error is not None:  # the last message, which cannot be read, numbers all of magic 1
        stream.error.offset = wrapper.offset
        raise stream.error
    for offset, message in _entries(stream.data.data):
        record = LegacyRecord(offset, message)
        if record.magic == 1:
            record = record._replace(wrapper_timestamp=timestamp, wrapper_timestamp_type=timestamp_type)
        records.append(record)
    if not records:
        raise invalid("Found invalid compressed record set with no inner records")
    return records


def _entries(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield (offset, message) of a message set (`DataLogInputStream`); an entry that is cut off ends it."""
    position = 0
    while True:
        start = position + layout.ENTRY_OVERHEAD_SIZE
        if start > len(data):
            return
        offset = int.from_bytes(data[position : position + 8], "big", signed=True)
        size = int.from_bytes(data[position + 8 : start], "big", signed=True)
        if size < layout.MESSAGE_SIZE_MIN:
            raise CorruptRecordError(
                f"Record size is less than the minimum record overhead ({layout.MESSAGE_SIZE_MIN})", offset=offset
            )
        if size > ARRAY_SIZE_MAX:
            raise InvalidRecordError(SIZE_ABOVE_MAX.format(detail=size, second=ARRAY_SIZE_MAX), offset=offset)
        position = start + size
        if position > len(data):
            return
        yield offset, data[start:position]


def _base_offset(wrapper: LegacyRecord, inner: list[LegacyRecord]) -> int:
    """Return what to add to the relative offsets in a magic 1 wrapper, whose own offset is the last one."""
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


def _int64(number: int) -> int:
    """Wrap a number to 64 bits, as a Java long does."""
    return (number + 2**63) % 2**64 - 2**63
