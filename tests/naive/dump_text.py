"""The dump of v2 batches line by line, as `DumpLogSegments` puts its strings together."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import NamedTuple

from tests.naive.batch import Row
from tests.naive.java_text import decimal, java_utf8
from tests.naive.record import BrokenRecordError, Context, Record, as_long, read_plain, sequence_after

LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, DELETE_HORIZON = 8, 16, 32, 64
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
HEADER_SIZE = 61


class Options(NamedTuple):
    """What to print."""

    deep: bool = True
    contents: bool = False
    skip_metadata: bool = False


class Dump(NamedTuple):
    """The text, the offsets that do not follow each other, and what the dump died of."""

    text: bytes
    gaps: list[tuple[int, int]]
    error: str | None


def dump(data: bytes, rows: list[Row], options: Options) -> Dump:
    """Lines of these batches; `foreign_batch` stands for what is not the kernel's."""
    text: bytes = b""
    seen: list[Record] = []
    for row in rows:
        if is_foreign(data, row, options):
            text += foreign_batch(row.position)
            continue
        text += batch_line(row)
        if not options.deep:
            continue
        try:
            for record in read_plain(records_of(data, row), row.record_count, context_of(row)):
                seen.append(record)
                text += record_line(record, row.attributes, options)
        except BrokenRecordError as error:
            return Dump(text, gaps_of(seen), str(error))
    return Dump(text, gaps_of(seen), None)


def is_foreign(data: bytes, row: Row, options: Options) -> bool:
    """Whether the kernel leaves a batch out."""
    if row.attributes & 7 >= len(CODECS):
        return True
    if not options.deep:
        return False
    if row.attributes & 7 or row.record_count < 0 or row.size < HEADER_SIZE:
        return True
    if not row.attributes & CONTROL or options.skip_metadata:
        return False
    try:
        found = list(read_plain(records_of(data, row), row.record_count, context_of(row)))
    except BrokenRecordError:
        return True
    return len(found) != 1 or marker(found[0]) is None


def decoded(
    rows: list[Row],
    parts: list[tuple[int, bool, int]],
    records: list[Record],
    options: Options,
    texts: list[bytes | None],
) -> bytes:
    """Lines of batches and of decoded records; each part is a row, whether its line is printed, and its last record.

    It ends in the first half of the line of a batch with an unknown codec.
    """
    text, start = b"", 0
    for number, is_headed, end in parts:
        row = rows[number]
        if is_headed:
            if row.attributes & 7 >= len(CODECS):
                return text + batch_identity(row)
            text += batch_line(row)
        for record, own in zip(records[start:end], texts[start:end], strict=True):
            text += record_line(record, row.attributes, options, own)
        start = end
    return text


def gaps_of(records: list[Record]) -> list[tuple[int, int]]:
    """Pairs of offsets where the second does not follow the first; the dump starts as if after -1."""
    offsets = [-1, *(record.offset for record in records)]
    return [(one, next_one) for one, next_one in pairwise(offsets) if next_one != as_long(one + 1)]


def records_of(data: bytes, row: Row) -> bytes:
    return data[row.position + HEADER_SIZE : row.position + row.size]


def context_of(row: Row) -> Context:
    append_time = row.max_timestamp if row.attributes & LOG_APPEND_TIME else None
    return Context(row.base_offset, row.base_timestamp, row.base_sequence, append_time)


def foreign_batch(position: int) -> bytes:
    return b"(the batch at %d)\n" % position


def batch_line(row: Row) -> bytes:
    return batch_identity(row) + batch_place(row)


def batch_identity(row: Row) -> bytes:
    """The first half of a batch line."""
    last_sequence = -1
    if row.base_sequence != -1:
        last_sequence = sequence_after(row.base_sequence, row.last_offset_delta)
    horizon = b"OptionalLong.empty"
    if row.attributes & DELETE_HORIZON:
        horizon = b"OptionalLong[" + decimal(row.base_timestamp) + b"]"
    return _fields(
        b"baseOffset: ", row.base_offset,
        b" lastOffset: ", as_long(row.base_offset + row.last_offset_delta),
        b" count: ", row.record_count,
        b" baseSequence: ", row.base_sequence,
        b" lastSequence: ", last_sequence,
        b" producerId: ", row.producer_id,
        b" producerEpoch: ", row.producer_epoch,
        b" partitionLeaderEpoch: ", row.leader_epoch,
        b" isTransactional: ", row.attributes & TRANSACTIONAL != 0,
        b" isControl: ", row.attributes & CONTROL != 0,
        b" deleteHorizonMs: ", horizon,
    )  # fmt: skip


def batch_place(row: Row) -> bytes:
    """The second half."""
    return _fields(
        b" position: ", row.position,
        _timestamp_label(row.attributes), row.max_timestamp,
        b" size: ", row.size,
        b" magic: ", row.magic,
        b" compresscodec: ", CODECS[row.attributes & 7].encode(),
        b" crc: ", row.crc,
        b" isvalid: ", row.is_valid == 1,
        b"\n",
    )  # fmt: skip


def record_line(record: Record, attributes: int, options: Options, text: bytes | None = None) -> bytes:
    """One record of a batch with these attributes; `text` ends its line behind the metadata."""
    is_control = attributes & CONTROL != 0
    line = b"" if options.skip_metadata else _metadata(record, attributes)
    if text is not None:
        return line + text
    if is_control and line:
        line += marker(record) or b""
    if options.contents and not is_control:
        prefix = b" " if line else b"| "
        if record.key is not None:
            line += prefix + b"key: " + java_utf8(record.key)
            prefix = b" "
        if record.value is not None:
            line += prefix + b"payload: " + java_utf8(record.value)
    return line + b"\n"


def marker(record: Record) -> bytes | None:
    """What a transaction marker says; None for every other control record."""
    if record.key is None or record.value is None or len(record.key) != 4 or len(record.value) != 6:
        return None
    key_version, kind = struct.unpack(">hh", record.key)
    value_version, epoch = struct.unpack(">hi", record.value)
    if key_version != 0 or value_version != 0 or kind not in (0, 1):
        return None
    return _fields(b" endTxnMarker: ", (b"ABORT", b"COMMIT")[kind], b" coordinatorEpoch: ", epoch)


def _metadata(record: Record, attributes: int) -> bytes:
    return _fields(
        b"| offset: ", record.offset,
        _timestamp_label(attributes), record.timestamp,
        b" keySize: ", -1 if record.key is None else len(record.key),
        b" valueSize: ", -1 if record.value is None else len(record.value),
        b" sequence: ", record.sequence,
        b" headerKeys: [", b",".join(java_utf8(key) for key, _ in record.headers), b"]",
    )  # fmt: skip


def _timestamp_label(attributes: int) -> bytes:
    return b" LogAppendTime: " if attributes & LOG_APPEND_TIME else b" CreateTime: "


def _fields(*parts: bytes | int | bool) -> bytes:
    return b"".join(map(_text, parts))


def _text(part: bytes | int | bool) -> bytes:
    if isinstance(part, bytes):
        return part
    if isinstance(part, bool):
        return b"true" if part else b"false"
    return decimal(part)
