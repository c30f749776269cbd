"""Checks of fetched batches, and the errors for bad ones, as in a consumer (`CompletedFetch`)."""

from __future__ import annotations

import zlib

import numpy as np

from ..columns.batch_table import BatchTable
from ..columns.decoded_records import Records
from ..columns.legacy import LegacyRecord, legacy_entry, read_legacy_records
from ..errors import CorruptRecordError, LogstoreError
from ..kernels.scan import batches as scan
from ..kernels.scan.crc32c import crc32c
from ..layout.batch import (
    ATTRIBUTES,
    BATCH_LENGTH,
    HEADER_SIZE,
    HEADER_UP_TO_MAGIC_SIZE,
    LENGTH_MIN,
    LOG_OVERHEAD_SIZE,
    MAGIC,
    MAGIC_V2,
)
from .read import Fetched

_MAGIC_MAX = MAGIC_V2
_KAFKA_EXCEPTION = "org.apache.kafka.common.KafkaException"
_ADVICE = "to go on, start a reader at an offset behind it; `logstore dump` shows what is there"


def first_bad_row(fetched: Fetched, table: BatchTable, first_offset: int, *, check_crc: bool) -> int:
    """Return the first row with an unknown magic or a wrong checksum; the number of rows if none is bad.

    Args:
        table: of the data of `fetched`.
        first_offset: messages before it are not checked.
        check_crc: `is_valid` is computed, and messages of magic 0 and 1 are to be checked here.
    """
    is_bad = (table.is_valid == 0) | (table.magic > _MAGIC_MAX) | (table.magic < 0)
    if check_crc:
        for row in np.flatnonzero((table.magic < MAGIC_V2) & ~is_bad).tolist():
            is_bad[row] = _first_bad_message(fetched, table, row, first_offset) is not None
    bad = np.flatnonzero(is_bad)
    return int(bad[0]) if bad.size else len(table)


def bad_batch(fetched: Fetched, table: BatchTable, row: int, offset: int) -> LogstoreError | None:
    """Return the error of the row that `first_bad_row` gave, or of what ended the table; None if it ended well.

    Args:
        offset: the next offset to be read.
    """
    if row < len(table):
        return _bad_row(fetched, table, row, offset)
    position = table.next_position
    rest_size = fetched.data.size - position
    if table.status == scan.HEADER_BEYOND_FILE:
        return _checksum_error(fetched, position, offset, "Record batch", _short_text(rest_size))
    if table.has_more or rest_size < LOG_OVERHEAD_SIZE:
        return None
    length = _int_at(fetched, position + BATCH_LENGTH, 4)
    if length < LENGTH_MIN:
        text = f"Record size {length} is less than the minimum record overhead ({LENGTH_MIN})"
        return located(CorruptRecordError(text), fetched, position, offset)
    if rest_size >= HEADER_UP_TO_MAGIC_SIZE and not 0 <= _int_at(fetched, position + MAGIC, 1) <= _MAGIC_MAX:
        return _bad_magic(fetched, _int_at(fetched, position + MAGIC, 1), position, offset)
    return None


def bad_window(fetched: Fetched, bad: Records, offset: int) -> LogstoreError:
    """Return the error of a batch whose records could not be decoded, or whose checksum turned out to be wrong."""
    table, row = bad.batches, int(bad.batch_rows[-1])
    assert bad.error is not None
    if table.is_valid[row] == 0:
        return _bad_row(fetched, table, row, offset)
    return located(bad.error, fetched, int(table.position[row]), int(table.base_offset[row]))


def _int_at(fetched: Fetched, position: int, size: int) -> int:
    return int.from_bytes(fetched.data[position : position + size].tobytes(), "big", signed=True)


def _bad_magic(fetched: Fetched, magic: int, position: int, offset: int) -> LogstoreError:
    return located(CorruptRecordError(f"Invalid magic found in record: {magic}"), fetched, position, offset)


def _bad_row(fetched: Fetched, table: BatchTable, row: int, first_offset: int) -> LogstoreError:
    offset, position, size = int(table.base_offset[row]), int(table.position[row]), int(table.size[row])
    magic = int(table.magic[row])
    if not 0 <= magic <= _MAGIC_MAX:
        return _bad_magic(fetched, magic, position, offset)
    message = _first_bad_message(fetched, table, row, first_offset) if magic < MAGIC_V2 else None
    if message is not None:
        cause = _crc_text(message.crc, zlib.crc32(message.message[4:]))
        return _checksum_error(fetched, position, message.offset, "Record", cause)
    if size < HEADER_SIZE:
        return _checksum_error(fetched, position, offset, "Record batch", _short_text(size))
    computed = crc32c(fetched.data[position + ATTRIBUTES : position + size])
    cause = _crc_text(int(table.matrix[scan.CRC, row]), computed)
    return _checksum_error(fetched, position, offset, "Record batch", cause)


def _checksum_error(fetched: Fetched, position: int, offset: int, subject: str, cause: str) -> LogstoreError:
    """Return the error in the words of `CompletedFetch.maybeEnsureValid`."""
    text = f"{subject} for partition {fetched.bounds.topic_partition} at offset {offset} is invalid, cause: {cause}"
    return located(CorruptRecordError(text, java_class=_KAFKA_EXCEPTION), fetched, position, offset)


def _short_text(size: int) -> str:
    return f"Record batch is corrupt (the size {size} is smaller than the minimum allowed overhead {HEADER_SIZE})"


def located(error: LogstoreError, fetched: Fetched, position: int, offset: int) -> LogstoreError:
    """Add its place to an error; `position` counts in the data of `fetched`."""
    error.path, error.position, error.offset = fetched.path, fetched.position + position, offset
    error.advice = error.given_advice or _ADVICE
    return error


def _first_bad_message(fetched: Fetched, table: BatchTable, row: int, first_offset: int) -> LegacyRecord | None:
    try:
        messages = read_legacy_records(legacy_entry(fetched.data, table, row))
        return next((each for each in messages if each.offset >= first_offset and not each.is_valid), None)
    except LogstoreError:
        return None  # raised when the messages are read, after the good ones


def _crc_text(stored: int, computed: int) -> str:
    return f"Record is corrupt (stored crc = {stored}, computed crc = {computed})"
