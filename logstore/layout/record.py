"""Record in a batch of magic 2 (`DefaultRecord`); with varints most need less than ten bytes besides key and value.

    record  = length:varint attributes:int8 timestampDelta:varlong offsetDelta:varint
              key:field value:field headerCount:varint header*
    field   = size:varint byte*size            size -1 = null, which is not the empty field of size 0
    header  = keySize:varint UTF-8*keySize value:field                         keySize is never negative

`length` counts what follows it. Varints are zigzag (0, -1, 1, -2 → 0, 1, 2, 3), then base 128 with the low seven bits
first; at most 5 bytes (varint) or 10 (varlong). offset = baseOffset + offsetDelta. timestamp = baseTimestamp +
timestampDelta, or the batch's maxTimestamp for every record when the timestamp type is LogAppendTime. sequence =
baseSequence + offsetDelta, where 0 follows 2147483647. Deltas may be negative after cleaning.

`k1 -> v1` at deltas 0, in 11 bytes:

>>> list(bytes.fromhex("14000000046b3104763100"))[:5]    # length 10, attributes, two deltas, key size 2
[20, 0, 0, 0, 4]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, cast

from ..errors import UsageError

PRODUCER_EPOCH_MAX = 2**15 - 1
SEQUENCE_MAX = 2**31 - 1
NO_HEADERS = b"\x00"
RECORD_OVERHEAD_SIZE = 21  # length, attributes and deltas at their longest; `DefaultRecord.MAX_RECORD_OVERHEAD`


Headers = Sequence[tuple[str | bytes, bytes | None]]


class EncodedHeaders(tuple[bytes, ...]):
    """Headers of several records, each as `encode_headers` returns them, or empty; they are written unchanged."""

    __slots__ = ()


def varint(value: int) -> bytes:
    """Return the zigzag varint of a signed number of up to 64 bits.

    >>> varint(-1), varint(10), varint(64)
    (b'\\x01', b'\\x14', b'\\x80\\x01')
    """
    if -1 <= value < _SMALL_END:
        return _SMALL[value]
    return _varint(value)


def _varint(value: int) -> bytes:
    rest = (value << 1) ^ (value >> 63)
    encoded = bytearray()
    while rest > 127:
        encoded.append(rest & 127 | 128)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


_SMALL_END = 4096
_SMALL = [_varint(value) for value in range(_SMALL_END)]
_SMALL.append(_varint(-1))  # at the end, where the index -1 finds it


def bytes_of(data: Any) -> bytes:
    """Return bytes-like data as bytes that nobody can change; a memoryview of wider items gives all their bytes.

    Everything that becomes part of a record comes through here: the `len` of another buffer need not be its size.

    Raises:
        UsageError: it is something else, such as text or an array, whose bytes are the program's to choose.
    """
    if type(data) is bytes:
        return data
    if isinstance(data, bytes | bytearray | memoryview):
        try:
            return memoryview(data).tobytes()  # `bytes(data)` would ask a subclass
        except ValueError as error:  # it was released
            raise UsageError("A memoryview cannot be read", found=str(error)) from error
    advice = "encode the text" if isinstance(data, str) else "give the bytes of an array with its `tobytes()`"
    raise UsageError(
        "Keys, values and headers are bytes",
        expected="bytes, bytearray or memoryview",
        found=type(data).__name__,
        advice=advice,
    )


def bytes_column(values: Iterable[Any]) -> tuple[bytes | None, ...]:
    """Return keys or values as a tuple of exact bytes and None, which no other thread can change; see `bytes_of`."""
    column = tuple(values)
    if len(column) == 1 and type(column[0]) is bytes:  # the usual call; the next line would take it half a microsecond
        return column
    if list(map(type, column)).count(bytes) == len(column):
        return column
    return tuple([None if data is None else bytes_of(data) for data in column])


def header_key_bytes(key: str | bytes) -> bytes:
    """Return the bytes of a header's key.

    Raises:
        UsageError: text with half of a surrogate pair, which Java would write as a question mark; neither text nor
            bytes.
    """
    try:
        return str.encode(key) if isinstance(key, str) else bytes_of(key)
    except UnicodeEncodeError as error:
        raise UsageError("A header key is not Unicode text", found=repr(key)) from error
    except UsageError as error:
        raise UsageError("A header key is text", expected="str or bytes", found=repr(key)) from error


def _field(data: bytes) -> bytes:
    return varint(len(data)) + data


@lru_cache(maxsize=1024)
def _text_field(text: str) -> bytes:
    """Return a header's key with its size; cached, as programs use few different keys."""
    return _field(header_key_bytes(text))


def headers_bytes(headers: Headers | bytes) -> bytes:
    """Return a record's encoded headers; bytes are what `encode_headers` returned, or empty. Raises as it does."""
    if not headers:
        return NO_HEADERS
    return headers if type(headers) is bytes else encode_headers(cast("Headers", headers))


def encode_headers(headers: Headers) -> bytes:
    """Encode headers with their count; keys are text, or bytes that are written unchanged.

    Raises:
        UsageError: a header that is no pair of a key and bytes; as `header_key_bytes`.
    """
    try:
        pairs = tuple(headers)  # nobody can change it
        parts = [varint(len(pairs))]
        for key, value in pairs:
            parts.append(_text_field(key) if type(key) is str else _field(header_key_bytes(key)))
            if value is not None and type(value) is not bytes:
                value = bytes_of(value)
            size = -1 if value is None else len(value)
            parts.append(_SMALL[size] if size < _SMALL_END else _varint(size))
            if value:
                parts.append(value)
        return b"".join(parts)
    except UsageError:
        raise
    except (TypeError, ValueError) as error:
        raise UsageError(
            "Headers are pairs of a key and bytes", expected="[(str, bytes or None), …]", found=repr(headers)
        ) from error
