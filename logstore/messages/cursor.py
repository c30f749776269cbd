"""A read position in the bytes of a message: the primitives of `ByteBufferAccessor`, with its errors.

>>> cursor = Cursor(bytes.fromhex("ac02 616263"))
>>> cursor.unsigned_varint(), cursor.array(3), cursor.remaining_bytes
(300, b'abc', 0)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import SchemaError


class Cursor:
    """A position in bytes, read as `ByteBufferAccessor` does.

    Attributes:
        version: the message version asked for.
        has_unknown_tags: a tagged field was read that the schema does not have.
    """

    __slots__ = ("data", "has_unknown_tags", "position", "version")

    def __init__(self, data: bytes, version: int = 0, position: int = 0) -> None:
        self.data = data
        self.position = position
        self.version = version
        self.has_unknown_tags = False

    @property
    def remaining_bytes(self) -> int:
        """Count the bytes that are not read yet."""
        return len(self.data) - self.position

    def unsigned_varint(self) -> int:
        """Read a varint of up to five bytes as a Java int, which may be negative (`ByteUtils.readUnsignedVarint`).

        Raises SchemaError where the bytes end, and for a varint of more than five bytes.
        """
        data, start = self.data, self.position
        if start < len(data) and data[start] < 0x80:  # as nearly all are
            self.position = start + 1
            return data[start]
        result = shift = 0
        for position in range(start, start + 5):
            if position >= len(data):
                raise underflow()
            byte = data[position]
            result |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                self.position = position + 1
                return java_int(result)
        raise SchemaError(
            "Varint is too long, the most significant bit in the 5th byte is set, converted value: "
            f"{result & 0xFFFFFFFF:x}",
            java_class="java.lang.IllegalArgumentException",
        )

    def array(self, size: int) -> bytes:
        """Read `size` bytes (`readArray`); raises SchemaError for a negative size and where fewer are left."""
        # Kafka compares before it allocates: the size comes from disk.
        if size > self.remaining_bytes:
            raise SchemaError(
                f"Error reading byte array of {size} byte(s): only {self.remaining_bytes} byte(s) available"
            )
        if size < 0:
            raise SchemaError(str(size), java_class="java.lang.NegativeArraySizeException")
        start = self.position
        self.position = start + size
        return self.data[start : self.position]


@contextmanager
def errors_at(offset: int | None) -> Iterator[None]:
    """Add the record's offset to a SchemaError that the block raises."""
    try:
        yield
    except SchemaError as error:
        error.offset = offset
        raise


def java_int(value: int) -> int:
    """Return the lower 32 bits of `value` as a signed int."""
    return ((value & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000


def underflow() -> SchemaError:
    """Return the error of a read beyond the end; Java's exception has no message."""
    return SchemaError(None, java_class="java.nio.BufferUnderflowException")
