"""Messages of magic 0 and 1: what is read of them, and what Kafka's iterator dies of."""

from __future__ import annotations

import gzip
import struct

import numpy as np
import pytest

from logstore.columns.batch_table import BatchTable
from logstore.columns.legacy import LegacyRecord, legacy_entry, read_legacy_records
from logstore.errors import LogstoreError
from logstore.kernels.scan import batches as fields
from logstore.model import TimestampType
from tests.naive import legacy
from tests.naive.legacy import Message

SIZE_MAX = 1 << 20
ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException"
INVALID_RECORD = "org.apache.kafka.common.InvalidRecordException"
CORRUPT_RECORD = "org.apache.kafka.common.errors.CorruptRecordException"
KAFKA = "org.apache.kafka.common.KafkaException"


def records_of(entry: bytes, start: int = 0) -> list[LegacyRecord]:
    data = np.frombuffer(bytes(start) + entry, np.uint8)
    return list(read_legacy_records(legacy_entry(data, table_of(start, len(entry)), 0), SIZE_MAX))


def table_of(position: int, size: int) -> BatchTable:
    matrix = np.zeros((fields.COLUMN_COUNT, 1), np.int64)
    matrix[[fields.POSITION, fields.SIZE], 0] = position, size
    return BatchTable(matrix, 1, fields.END, position + size)


def as_message(record: LegacyRecord) -> Message:
    key, value = record.key, record.value
    return Message(
        record.offset, record.timestamp, None if key is None else bytes(key), None if value is None else bytes(value)
    )


MESSAGES = [Message(40, 1000, b"key", b"value"), Message(41, 1001, None, b""), Message(44, 1002, b"", None)]


@pytest.mark.parametrize("magic", [0, 1])
def test_a_plain_message_is_its_own_record(magic: int) -> None:
    entry = legacy.message_set(magic, MESSAGES[:1])
    (record,) = records_of(entry, start=7)
    assert [as_message(record)] == legacy.parse(entry)
    assert record.is_valid
    assert (record.key_size, record.value_size) == (3, 5)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("log_append_time", [None, 5000])
def test_a_wrapper_gives_absolute_offsets_and_its_append_time(magic: int, log_append_time: int | None) -> None:
    entry = legacy.wrapped(magic, MESSAGES, log_append_time=log_append_time)
    read = records_of(entry)
    assert [as_message(record) for record in read] == legacy.parse(entry)
    assert [record.offset for record in read] == [40, 41, 44]
    if magic == 1 and log_append_time is not None:
        assert {record.timestamp for record in read} == {5000}
        assert {record.timestamp_type for record in read} == {TimestampType.LOG_APPEND_TIME}


def test_a_wrapper_at_offset_0_keeps_the_offsets_inside() -> None:
    inner = legacy.message_set(1, [MESSAGES[0]._replace(offset=7)])
    entry = legacy.entry(0, legacy.message(1, None, gzip.compress(inner), attributes=1))
    assert [record.offset for record in records_of(entry)] == [7]


def test_a_checksum_that_is_wrong_is_told_and_nothing_else() -> None:
    entry = bytearray(legacy.message_set(1, MESSAGES[:1]))
    entry[-1] ^= 1
    (record,) = records_of(bytes(entry))
    assert not record.is_valid
    assert bytes(record.value or b"") == b"valud"


def wrapper(inner: bytes, *, offset: int = 100, magic: int = 1, codec: int = 1) -> bytes:
    return legacy.entry(offset, legacy.message(magic, None, gzip.compress(inner, mtime=0), attributes=codec))


def inner(*messages: bytes) -> bytes:
    return b"".join(legacy.entry(offset, each) for offset, each in enumerate(messages))


GOOD = legacy.message(1, b"k", b"v")


@pytest.mark.parametrize(
    ("entry", "java_class", "message"),
    [
        (
            legacy.entry(0, legacy.message(1, None, b"", attributes=7)),
            ILLEGAL_ARGUMENT,
            "Unknown compression type id: 7",
        ),
        (
            wrapper(b"")[:16] + b"\x80" + wrapper(b"")[17:],
            INVALID_RECORD,
            "Invalid wrapper magic found in legacy deep record iterator -128",
        ),
        (
            wrapper(b"", codec=4),
            INVALID_RECORD,
            "Invalid wrapper compressionType found in legacy deep record iterator 1",
        ),
        (
            legacy.entry(0, legacy.message(0, b"k", None, attributes=1)),
            INVALID_RECORD,
            "Found invalid compressed record set with null value (magic = 0)",
        ),
        (wrapper(b""), INVALID_RECORD, "Found invalid compressed record set with no inner records"),
        (wrapper(inner(GOOD)[:-1]), INVALID_RECORD, "Found invalid compressed record set with no inner records"),
        (
            wrapper(inner(GOOD, GOOD, GOOD), offset=1),
            INVALID_RECORD,
            "Found invalid wrapper offset in compressed v1 message set, wrapper offset '1' is less than the last inner "
            "message offset '2' and it is not zero.",
        ),
        (
            wrapper(struct.pack(">qi", 0, 13) + bytes(13)),
            CORRUPT_RECORD,
            "Record size is less than the minimum record overhead (14)",
        ),
        (
            wrapper(struct.pack(">qi", 0, 1 << 30)),
            INVALID_RECORD,
            "Found invalid compressed record set with no inner records",
        ),
        (
            wrapper(inner(GOOD) + struct.pack(">qi", 1, 2**31 - 1)),
            INVALID_RECORD,
            "Invalid record size: 2147483647 exceeds the configured maximum record size of 2147483639.",
        ),
        (
            wrapper(inner(GOOD))[:-1],
            KAFKA,
            "The gzip stream does not decompress beyond its byte 29: its trailer is cut off",
        ),
        (
            legacy.entry(0, legacy.message(1, None, b"nonsense", attributes=1)),
            KAFKA,
            "The gzip stream does not decompress beyond its byte 0: its header is cut off",
        ),
    ],
)
def test_a_wrapper_that_is_wrong_gives_no_record(entry: bytes, java_class: str, message: str) -> None:
    with pytest.raises(LogstoreError) as raised:
        records_of(_with_size(entry))
    assert (raised.value.java_class, raised.value.message) == (java_class, message)


def _with_size(entry: bytes) -> bytes:
    """The entry with its sizes shrunk to what is there, where the value was cut."""
    value_size = len(entry) - 12 - 22
    if entry[16] != 1 or entry[17] != 1:
        return entry
    return entry[:8] + struct.pack(">i", len(entry) - 12) + entry[12:30] + struct.pack(">i", value_size) + entry[34:]


def test_a_compressed_message_in_a_wrapper_fails_after_the_good_ones() -> None:
    entry = wrapper(inner(GOOD, legacy.message(1, None, b"", attributes=2), GOOD))
    data = np.frombuffer(entry, np.uint8)
    reader = read_legacy_records(legacy_entry(data, table_of(0, len(entry)), 0), SIZE_MAX)
    assert next(reader).offset == 98
    with pytest.raises(LogstoreError, match="Inner messages must not be compressed"):
        next(reader)


@pytest.mark.parametrize(
    ("content", "field", "java_class", "message"),
    [
        (GOOD[:16], "key_size", "java.lang.IndexOutOfBoundsException", None),
        (GOOD[:20], "value_size", "java.lang.IndexOutOfBoundsException", None),
        (GOOD[:14] + b"\x7f\xff\xff\xff" + GOOD[18:], "value_size", "java.lang.IndexOutOfBoundsException", None),
        (GOOD[:14] + b"\0\0\0\x09" + GOOD[18:], "key", ILLEGAL_ARGUMENT, "newLimit > capacity: (9 > 6)"),
        (GOOD[:-1], "value", ILLEGAL_ARGUMENT, "newLimit > capacity: (1 > 0)"),
    ],
)
def test_a_length_that_is_wrong_is_found_when_it_is_used(
    content: bytes, field: str, java_class: str, message: str | None
) -> None:
    (record,) = records_of(legacy.entry(5, content))
    with pytest.raises(LogstoreError) as raised:
        getattr(record, field)
    assert (raised.value.java_class, raised.value.message) == (java_class, message)
