"""Records of a stream as Kafka's `PartialDefaultRecord` reads them: the size that a record gives is only bounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.naive.record import PREMATURE, REMAINING, STRUCTURE, BrokenRecordError, Context, Fields, as_long
from tests.naive.varint import EndOfBytesError, TooLongError


class Skipped(NamedTuple):
    """What is known of one record; sizes as they are stored, negative for null."""

    offset: int
    timestamp: int
    key_size: int
    value_size: int


def skip_stream(data: bytes, count: int, context: Context) -> Iterator[Skipped]:
    """The records of a decompressed stream; raises BrokenRecordError after the good ones."""
    stream = Fields(data)
    for index in range(count):
        try:
            size = stream.varint()
        except (EndOfBytesError, TooLongError) as error:
            raise BrokenRecordError(PREMATURE) from error
        if context.size_max and size < 0:
            raise BrokenRecordError(f"Invalid record size: {size} is negative.")
        if context.size_max and size > context.size_max:
            raise BrokenRecordError(
                f"Invalid record size: {size} exceeds the configured maximum record size of {context.size_max}."
            )
        try:
            record = _skip_body(stream, context)
        except (EndOfBytesError, TooLongError) as error:
            raise BrokenRecordError(STRUCTURE) from error
        if index == count - 1 and stream.remaining:
            raise BrokenRecordError(REMAINING)
        yield record


def _skip_body(stream: Fields, context: Context) -> Skipped:
    stream.take(1)
    timestamp = as_long(context.base_timestamp + stream.varlong())
    if context.log_append_time is not None:
        timestamp = context.log_append_time
    offset = as_long(context.base_offset + stream.varint())
    key_size = _skip_field(stream)
    value_size = _skip_field(stream)
    count = stream.varint()
    if count < 0:
        raise BrokenRecordError(f"Found invalid number of record headers {count}")
    for _ in range(count):
        size = stream.varint()
        if size < 0:
            raise BrokenRecordError(f"Invalid negative header key size {size}")
        _skip(stream, size)
        _skip_field(stream)
    return Skipped(offset, timestamp, key_size, value_size)


def _skip_field(stream: Fields) -> int:
    size = stream.varint()
    _skip(stream, size)
    return size


def _skip(stream: Fields, size: int) -> None:
    missing = size - stream.remaining
    if size > 0 and missing > 0:
        raise BrokenRecordError(f"Reached end of input stream before skipping all bytes. Remaining bytes:{missing}")
    stream.take(max(size, 0))
