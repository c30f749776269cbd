"""Writer of messages by their schema, exactly as Kafka's generated `write` methods write them; undoes `reader`.

Values are those that `reader` returns. A field that the dict does not have is written with its default. SchemaError
has the message and `java_class` of Kafka's exception: for null where it is not allowed, a string of more than 32767
bytes, a value other than the default for a field that the version does not have (unless the field is ignorable), and
unknown tagged fields out of order. It is raised too for a name that the schema does not have, and a value of another
type.

>>> from logstore.topics import family
>>> message = family("consumer_offsets")["OffsetCommitValue"]
>>> write(message, 3, {"offset": 42, "leaderEpoch": 5, "metadata": "m", "commitTimestamp": 1600000000000}).hex()
'000000000000002a0000000500016d00000174876e8000'
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any

from ..errors import LogstoreError, SchemaError
from ..layout.kafka_uuid import parse_uuid
from .reader import UNKNOWN_TAGGED_FIELDS
from .schema import Field, Message, StructSpec, Value

_RUNTIME = "java.lang.RuntimeException"
_UNSUPPORTED_VERSION = "org.apache.kafka.common.errors.UnsupportedVersionException"
_NULL_POINTER = "java.lang.NullPointerException"
_SHORT_MAX = 0x7FFF
_TAG_MAX = 0x7FFFFFFF

_Write = Callable[[bytearray, Any], None]


def write(message: Message, version: int, value: Value) -> bytes:
    """Return the bytes of `value` as a `message` of `version`; raises SchemaError (see the module)."""
    if version not in message.versions:
        raise SchemaError(f"Can't write version {version} of {message.name}", java_class=_UNSUPPORTED_VERSION)
    out = bytearray()
    _root_writer(message, version)(out, value)
    return bytes(out)


def unsigned_varint(value: int) -> bytes:
    """Return `value`, 0 to 2**31 - 1, as `ByteUtils.writeUnsignedVarint` writes it.

    >>> unsigned_varint(300).hex()
    'ac02'
    """
    out = bytearray()
    _put_varint(out, value)
    return bytes(out)


@cache
def _root_writer(message: Message, version: int) -> _Write:
    return _struct_writer(message.root, version, message.is_flexible(version))


def _struct_writer(shape: StructSpec, version: int, is_flexible: bool) -> _Write:
    regular: list[tuple[str, Any, _Write]] = []
    tagged: list[tuple[int, str, Any, _Write]] = []
    absent: list[tuple[str, Any]] = []
    names = {field.name for field in shape.fields} | {UNKNOWN_TAGGED_FIELDS}
    for field in shape.fields:
        if version not in field.versions:
            if not field.is_ignorable:
                absent.append((field.name, field.default))
        elif field.tag is None:
            regular.append((field.name, field.default, _field_writer(field, version, is_flexible)))
        else:
            tagged.append((field.tag, field.name, field.default, _field_writer(field, version, is_flexible)))
    tagged.sort(key=lambda item: item[0])

    def write_struct(out: bytearray, value: Any) -> None:
        if not isinstance(value, dict) or not value.keys() <= names:
            raise _wrong_type(shape.name, value)
        for name, default in absent:
            if value.get(name, default) != default:
                raise SchemaError(
                    f"Attempted to write a non-default {name} at version {version}", java_class=_UNSUPPORTED_VERSION
                )
        for name, default, write_regular in regular:
            write_regular(out, value.get(name, default))
        unknown = value.get(UNKNOWN_TAGGED_FIELDS, ())
        if is_flexible:
            _write_tagged_fields(out, value, tagged, unknown)
        elif unknown:
            raise SchemaError(
                f"Tagged fields were set, but version {version} of this message does not support them.",
                java_class=_UNSUPPORTED_VERSION,
            )

    return write_struct


def _write_tagged_fields(
    out: bytearray, value: Value, known: list[tuple[int, str, Any, _Write]], unknown: list[tuple[int, bytes]]
) -> None:
    """Write known fields that differ from their default, and unknown fields, sorted by tag."""
    bodies: list[tuple[int, bytes]] = []
    for tag, name, default, write_field in known:
        if value.get(name, default) != default:
            body = bytearray()
            write_field(body, value[name])
            bodies.append((tag, bytes(body)))
    _check_unknown_tags({tag for tag, *_ in known}, unknown)
    bodies = sorted([*bodies, *unknown], key=lambda item: item[0])
    _put_varint(out, len(bodies))
    for tag, data in bodies:
        _put_varint(out, tag)
        _put_varint(out, len(data))
        out += data


def _check_unknown_tags(known: set[int], unknown: list[tuple[int, bytes]]) -> None:
    previous = -1
    for tag, _ in unknown:
        if tag in known:
            raise SchemaError(f"Attempted to use tag {tag} as an undefined tag.", java_class=_RUNTIME)
        if tag <= previous or tag > _TAG_MAX:
            raise SchemaError(
                f"Invalid raw tag field list: tag {tag} comes after tag {previous}, but is not higher than it.",
                java_class=_RUNTIME,
            )
        previous = tag


def _field_writer(field: Field, version: int, is_flexible: bool) -> _Write:
    if not field.is_array:
        return _value_writer(field, field.name, field.is_nullable, version, is_flexible)
    write_element = _value_writer(field, f"{field.name}Element", False, version, is_flexible)
    put_length = _put_compact_length if is_flexible else _put_int32

    def write_array(out: bytearray, value: Any) -> None:
        if value is None:
            _check_nullable(field.name, field.is_nullable)
            put_length(out, -1)
            return
        if not isinstance(value, list | tuple):
            raise _wrong_type(field.name, value)
        put_length(out, len(value))
        for element in value:
            write_element(out, element)

    return write_array


def _value_writer(field: Field, name: str, is_nullable: bool, version: int, is_flexible: bool) -> _Write:
    if field.struct is not None:
        write_struct = _struct_writer(field.struct, version, is_flexible)
        return _nullable_struct_writer(write_struct, field.tag is not None) if is_nullable else write_struct
    if field.kind == "string":
        return _string_writer(name, is_nullable, is_flexible)
    if field.kind == "bytes":
        return _bytes_writer(name, is_nullable, is_flexible)
    if field.kind == "uuid":
        return _uuid_writer(name)
    if field.kind == "bool":
        return _bool_writer(name)
    return _number_writer(name, struct.Struct(_FORMATS[field.kind]))


def _nullable_struct_writer(write_struct: _Write, is_tagged: bool) -> _Write:
    def write_nullable(out: bytearray, value: Any) -> None:
        # the mark of null is a varint 0 where the struct is a tagged field, else an int8 of -1
        out.append(1 if value is not None else 0 if is_tagged else 0xFF)
        if value is not None:
            write_struct(out, value)

    return write_nullable


def _string_writer(name: str, is_nullable: bool, is_flexible: bool) -> _Write:
    put_length = _put_compact_length if is_flexible else _put_int16

    def write_string(out: bytearray, value: Any) -> None:
        if value is None:
            _check_nullable(name, is_nullable)
            put_length(out, -1)
            return
        try:
            data = value.encode()
        except (AttributeError, UnicodeEncodeError) as error:
            raise _wrong_type(name, value) from error
        if len(data) > _SHORT_MAX:
            raise SchemaError(f"'{name}' field is too long to be serialized", java_class=_RUNTIME)
        put_length(out, len(data))
        out += data

    return write_string


def _bytes_writer(name: str, is_nullable: bool, is_flexible: bool) -> _Write:
    put_length = _put_compact_length if is_flexible else _put_int32

    def write_bytes(out: bytearray, value: Any) -> None:
        if value is None:
            _check_nullable(name, is_nullable)
            put_length(out, -1)
            return
        if not isinstance(value, bytes | bytearray | memoryview):
            raise _wrong_type(name, value)
        put_length(out, memoryview(value).nbytes)  # not its items
        out += value

    return write_bytes


def _uuid_writer(name: str) -> _Write:
    def write_uuid(out: bytearray, value: Any) -> None:
        if not isinstance(value, str):
            raise _wrong_type(name, value)
        try:
            out += parse_uuid(value)
        except LogstoreError as error:
            raise _wrong_type(name, value) from error

    return write_uuid


def _bool_writer(name: str) -> _Write:
    def write_bool(out: bytearray, value: Any) -> None:
        if not isinstance(value, bool):
            raise _wrong_type(name, value)
        out.append(value)

    return write_bool


_FORMATS = {"int8": ">b", "int16": ">h", "int32": ">i", "int64": ">q", "uint16": ">H", "float64": ">d"}


def _number_writer(name: str, packed: struct.Struct) -> _Write:
    pack = packed.pack

    def write_number(out: bytearray, value: Any) -> None:
        try:
            out += pack(value)
        except struct.error as error:
            raise _wrong_type(name, value) from error

    return write_number


def _check_nullable(name: str, is_nullable: bool) -> None:
    if not is_nullable:
        raise SchemaError(f"non-nullable field {name} must not be null", java_class=_NULL_POINTER)


def _wrong_type(name: str, value: object) -> SchemaError:
    return SchemaError(f"{name} cannot be {value!r:.80}", java_class="java.lang.IllegalArgumentException")


def _put_varint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _put_compact_length(out: bytearray, length: int) -> None:
    _put_varint(out, length + 1)


def _put_int16(out: bytearray, length: int) -> None:
    out += length.to_bytes(2, signed=True)


def _put_int32(out: bytearray, length: int) -> None:
    out += length.to_bytes(4, signed=True)
