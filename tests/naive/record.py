"""Records of a v2 batch as Kafka's `DefaultRecord` reads them, one field after the other, with its error texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tests.naive.varint import EndOfBytesError, TooLongError, read_varint, read_varlong

INT_MAX = 2**31 - 1
ARRAY_SIZE_MAX = INT_MAX - 8  # no stream has a larger record: Kafka 4.4 refuses it, 4.3 runs out of memory
STRUCTURE = "Found invalid record structure"
PREMATURE = "Incorrect declared batch size, premature EOF reached"
REMAINING = "Incorrect declared batch size, records still remaining in file"


class BrokenRecordError(Exception):
    """The message of the exception that Kafka throws."""


class Context(NamedTuple):
    """What a batch says about its records."""

    base_offset: int = 0
    base_timestamp: int = 0
    base_sequence: int = -1
    log_append_time: int | None = None
    size_max: int = 0  # of a record's body; 0: any


class Record(NamedTuple):
    """One record, its numbers absolute."""

    offset: int
    timestamp: int
    sequence: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[bytes, bytes | None]]


class Fields:
    """Reads from the front of some bytes."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0

    @property
    def remaining(self) -> int:
        return len(self.data) - self.position

    def take(self, size: int) -> bytes:
        if size > self.remaining:
            raise EndOfBytesError
        self.position += size
        return self.data[self.position - size : self.position]

    def varint(self) -> int:
        number, self.position = read_varint(self.data, self.position)
        return number

    def varlong(self) -> int:
        number, self.position = read_varlong(self.data, self.position)
        return number

    def nullable(self) -> bytes | None:
        size = self.varint()
        return None if size < 0 else self.take(size)


def read_plain(data: bytes, count: int, context: Context) -> Iterator[Record]:
    """The records of an uncompressed batch; raises BrokenRecordError after the good ones."""
    fields = Fields(data)
    for index in range(count):
        try:
            length = fields.varint()
        except EndOfBytesError as error:
            raise BrokenRecordError(PREMATURE) from error
        except TooLongError as error:
            raise BrokenRecordError(
                "Varint is too long, the most significant bit in the 5th byte is set, "
                f"converted value: {error.so_far:x}"
            ) from error
        if length > fields.remaining:
            raise BrokenRecordError(
                f"Invalid record size: expected {length} bytes in record payload, "
                f"but instead the buffer has only {fields.remaining} remaining bytes."
            )
        record = _read(fields, length, context)
        if index == count - 1 and fields.remaining:
            raise BrokenRecordError(REMAINING)
        yield record


def read_stream(data: bytes, count: int, context: Context) -> Iterator[Record]:
    """The records of a decompressed stream, each cut out before it is read."""
    stream = Fields(data)
    for index in range(count):
        try:
            length = stream.varint()
        except (EndOfBytesError, TooLongError) as error:
            raise BrokenRecordError(PREMATURE) from error
        if length < 0:
            raise BrokenRecordError(f"Invalid record size: {length} is negative.")
        if length > ARRAY_SIZE_MAX:
            raise BrokenRecordError(
                f"Invalid record size: {length} exceeds the configured maximum record size of {ARRAY_SIZE_MAX}."
            )
        if length > stream.remaining:
            raise BrokenRecordError(
                f"Invalid record size: expected {length} bytes in record payload, but the record payload reached EOF."
            )
        record = _read(Fields(stream.take(length)), length, context)
        if index == count - 1 and stream.remaining:
            raise BrokenRecordError(REMAINING)
        yield record


def sequence_after(sequence: int, increment: int) -> int:
    """`DefaultRecordBatch.incrementSequence` with Java's int arithmetic, which a negative increment derails.

    >>> sequence_after(2**31 - 1, 1), sequence_after(5, 2), sequence_after(5, -2)
    (0, 7, -2147483645)
    """
    if sequence > as_int(INT_MAX - increment):
        return as_int(increment - (INT_MAX - sequence) - 1)
    return as_int(sequence + increment)


def as_int(number: int) -> int:
    """A number in 32 bits, as Java's arithmetic leaves it."""
    return (number + 2**31) % 2**32 - 2**31


def as_long(number: int) -> int:
    """A number in 64 bits, as Java's arithmetic leaves it."""
    return (number + 2**63) % 2**64 - 2**63


def _read(fields: Fields, length: int, context: Context) -> Record:
    start = fields.position
    try:
        record = _read_body(fields, context)
    except (EndOfBytesError, TooLongError) as error:
        raise BrokenRecordError(STRUCTURE) from error
    if fields.position - start != length:
        raise BrokenRecordError(
            f"Invalid record size: expected to read {length} bytes in record payload, "
            f"but instead read {fields.position - start}"
        )
    return record


def _read_body(fields: Fields, context: Context) -> Record:
    fields.take(1)
    timestamp = as_long(context.base_timestamp + fields.varlong())
    if context.log_append_time is not None:
        timestamp = context.log_append_time
    offset_delta = fields.varint()
    sequence = -1 if context.base_sequence < 0 else sequence_after(context.base_sequence, offset_delta)
    key, value = fields.nullable(), fields.nullable()
    count = fields.varint()
    if count < 0:
        raise BrokenRecordError(f"Found invalid number of record headers {count}")
    if count > fields.remaining:
        raise BrokenRecordError(
            f"Found invalid number of record headers. {count} is larger than the remaining size of the buffer"
        )
    headers = [_read_header(fields) for _ in range(count)]
    return Record(as_long(context.base_offset + offset_delta), timestamp, sequence, key, value, headers)


def _read_header(fields: Fields) -> tuple[bytes, bytes | None]:
    size = fields.varint()
    if size < 0:
        raise BrokenRecordError(f"Invalid negative header key size {size}")
    return fields.take(size), fields.nullable()
