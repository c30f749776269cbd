"""Wrappers of magic 0 and 1 that no recorded dump holds."""

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
INVALID_RECORD = "org.apache.kafka.common.InvalidRecordException"


def records_of(entry: bytes) -> list[LegacyRecord]:
    matrix = np.zeros((fields.COLUMN_COUNT, 1), np.int64)
    matrix[fields.SIZE, 0] = len(entry)
    table = BatchTable(matrix, 1, fields.END, len(entry))
    return list(read_legacy_records(legacy_entry(np.frombuffer(entry, np.uint8), table, 0), SIZE_MAX))


def wrapper(inner: bytes, *, offset: int = 100) -> bytes:
    return legacy.entry(offset, legacy.message(1, None, gzip.compress(inner, mtime=0), attributes=1))


def inner(*messages: bytes) -> bytes:
    return b"".join(legacy.entry(offset, each) for offset, each in enumerate(messages))


GOOD = legacy.message(1, b"k", b"v")


def test_the_append_time_of_a_wrapper_is_that_of_its_records() -> None:
    messages = [Message(40, 1000, b"key", b"value"), Message(44, 1002, b"", None)]
    read = records_of(legacy.wrapped(1, messages, log_append_time=5000))
    appended = (5000, TimestampType.LOG_APPEND_TIME)
    assert [(each.offset, each.timestamp, each.timestamp_type) for each in read] == [(40, *appended), (44, *appended)]


def test_a_wrapper_at_offset_0_keeps_the_offsets_inside() -> None:
    entry = wrapper(legacy.message_set(1, [Message(7, 1000, b"key", b"value")]), offset=0)
    assert [record.offset for record in records_of(entry)] == [7]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        (
            wrapper(b"")[:16] + b"\x80" + wrapper(b"")[17:],
            "Invalid wrapper magic found in legacy deep record iterator -128",
        ),
        (
            wrapper(inner(GOOD, GOOD, GOOD), offset=1),
            "Found invalid wrapper offset in compressed v1 message set, wrapper offset '1' is less than the last inner "
            "message offset '2' and it is not zero.",
        ),
        (
            wrapper(inner(GOOD) + struct.pack(">qi", 1, 2**31 - 1)),
            "Invalid record size: 2147483647 exceeds the configured maximum record size of 2147483639.",
        ),
    ],
    ids=["magic", "offset", "size inside"],
)
def test_a_wrapper_that_is_wrong_gives_no_record(entry: bytes, message: str) -> None:
    with pytest.raises(LogstoreError) as raised:
        records_of(entry)
    assert (raised.value.java_class, raised.value.message) == (INVALID_RECORD, message)
