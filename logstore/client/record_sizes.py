"""How large a record may be for a producer (`KafkaProducer.ensureValidRecordSize`)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..columns.record_columns import BytesColumn, RecordColumns
from ..errors import RecordTooLargeError
from ..layout.batch import HEADER_SIZE
from ..layout.record import NO_HEADERS, RECORD_OVERHEAD_SIZE, varint
from .producer_config import ProducerConfig

SIZES_OF_SIZES = 10  # of key and value, each up to five bytes

Int64Array = npt.NDArray[np.int64]


def record_size_max(config: ProducerConfig) -> int:
    """Bytes that a record may have with its batch's header."""
    size_max: int = min(config["max.request.size"], config["buffer.memory"])
    return size_max


def require_record_size(config: ProducerConfig, key_size: int, value_size: int, headers_size: int) -> None:
    """Raise RecordTooLargeError for a record that is too large for this producer.

    Args:
        key_size, value_size: bytes, -1 of null.
        headers_size: bytes with their count.
    """
    size = HEADER_SIZE + RECORD_OVERHEAD_SIZE + headers_size
    size += sum(len(varint(part)) + max(part, 0) for part in (key_size, value_size))
    text = ""
    if size > config["max.request.size"]:
        text = f"{config['max.request.size']}, which is the value of the max.request.size configuration."
    elif size > config["buffer.memory"]:
        text = "the total memory buffer you have configured with the buffer.memory configuration."
    if text:
        raise RecordTooLargeError(f"The message is {size} bytes when serialized which is larger than {text}")


def require_column_sizes(config: ProducerConfig, columns: RecordColumns) -> None:
    """The same for all rows; the largest of each column are looked at first, and then only rows that may be it."""
    if not len(columns):
        return
    parts = (columns.keys, columns.values, columns.headers)
    limit = record_size_max(config) - HEADER_SIZE - RECORD_OVERHEAD_SIZE - SIZES_OF_SIZES - len(NO_HEADERS)
    if sum(map(_largest, parts)) <= limit:
        return
    keys, values, headers = (_sizes(part, len(columns)) for part in parts)
    for row in np.flatnonzero(keys + values + headers > limit - len(parts)).tolist():
        require_record_size(config, int(keys[row]), int(values[row]), max(int(headers[row]), len(NO_HEADERS)))


def _largest(column: BytesColumn | None) -> int:
    if column is None:
        return 0
    return column.width if column.width >= 0 else max(int((column.ends - column.starts).max()), 0)


def _sizes(column: BytesColumn | None, count: int) -> Int64Array:
    return np.full(count, -1, np.int64) if column is None else column.sizes
