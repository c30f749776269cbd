"""What a leader makes of a batch with nothing odd about it, field by field with `struct`."""

from __future__ import annotations

import struct
from typing import NamedTuple

from tests.naive.batch import Row, scan
from tests.naive.checksum import crc32c
from tests.naive.record import BrokenRecordError, Context, read_plain

LOG_APPEND_TIME, CONTROL, MEANINGFUL = 0x08, 0x20, 0x7F
TIME_MAX = 2**62
HEADER_SIZE = 61


class Settings(NamedTuple):
    """The call, and the topic."""

    base_offset: int = 0
    leader_epoch: int = 0
    now_ms: int = 0
    is_client: bool = True
    batch_size_max: int = 2**31 - 1
    codec: int = -1
    is_log_append_time: bool = False
    timestamp_before_max_ms: int = 2**63 - 1
    timestamp_after_max_ms: int = 3_600_000
    needs_keys: bool = False


def plain_row(data: bytes, settings: Settings) -> Row | None:
    """The header of a batch that may be taken at once; None if there is anything to be said about it."""
    rows = scan(data, 0, len(data)).rows
    if len(rows) != 1 or rows[0].magic != 2 or rows[0].size != len(data):
        return None
    row = rows[0]
    codec = row.attributes & 7
    is_refused_of_clients = row.attributes & CONTROL or (row.producer_id >= 0 and row.base_sequence < 0)
    is_odd = (
        len(data) > settings.batch_size_max
        or crc32c(data[21:]) != row.crc
        or row.base_offset != 0
        or row.record_count < 1
        or row.last_offset_delta + 1 != row.record_count
        or codec > 4
        or settings.codec not in (-1, codec)
        or row.attributes & LOG_APPEND_TIME
        or (settings.is_client and is_refused_of_clients)
        or not 0 <= settings.now_ms < TIME_MAX
    )
    return None if is_odd else row


def stamped(data: bytes, stream: bytes, settings: Settings) -> bytes | None:
    """The batch as it is to be written, its records being `stream`; None as in `plain_row`."""
    row = plain_row(data, settings)
    if row is None:
        return None
    try:
        records = list(read_plain(stream, row.record_count, Context(base_timestamp=row.base_timestamp)))
    except BrokenRecordError:
        return None
    for index, record in enumerate(records):
        if record.offset != index or not -1 <= record.timestamp <= TIME_MAX:
            return None
        if record.key is None and settings.needs_keys:
            return None
        age = settings.now_ms - record.timestamp
        is_far = age > settings.timestamp_before_max_ms or -age > settings.timestamp_after_max_ms
        if is_far and record.timestamp != -1 and not settings.is_log_append_time:
            return None
    max_timestamp = settings.now_ms if settings.is_log_append_time else max(each.timestamp for each in records)
    head = struct.pack(">q", settings.base_offset) + data[8:12] + struct.pack(">i", settings.leader_epoch)
    if not settings.is_log_append_time and max_timestamp == row.max_timestamp:
        return head + data[16:]
    attributes = row.attributes & MEANINGFUL | (LOG_APPEND_TIME if settings.is_log_append_time else 0)
    checked = struct.pack(">h", attributes) + data[23:35] + struct.pack(">q", max_timestamp) + data[43:]
    return head + data[16:17] + struct.pack(">I", crc32c(checked)) + checked
