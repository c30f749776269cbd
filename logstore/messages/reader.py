"""Reader of messages by their schema, exactly as Kafka's generated `read` methods read them.

Values are plain Python: int, bool, float, str, bytes, list, dict, None. A uuid is the text that Kafka prints
(22 characters of URL-safe base64). A dict holds every field of the schema in its order. A field that the version
does not have, and a tagged field that is absent, has its default. Tagged fields that the schema does not know
are kept under `_unknownTaggedFields` as (tag, bytes) pairs.

The reader accepts what Kafka accepts: a version beyond the last one, bytes behind the end, a tagged field whose
size does not fit. It raises SchemaError, with the message and `java_class` of Kafka's exception, for what Kafka
refuses. Every length is compared with the bytes that are left before anything is allocated.

>>> from logstore.topics import family
>>> message = family("consumer_offsets")["OffsetCommitValue"]
>>> value = read(message, 0, bytes.fromhex("000000000000002a 0002 6d64 0000000000000007"))
>>> value["offset"], value["metadata"], value["leaderEpoch"]
(42, 'md', -1)
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from functools import cache
from struct import Struct as Packed
from typing import Any, NamedTuple

from ..errors import SchemaError
from ..layout.kafka_uuid import SIZE as UUID_SIZE
from ..layout.kafka_uuid import format_uuid
from ..layout.utf8 import java_utf8
from .cursor import Cursor, java_int, underflow
from .schema import Field, Message, StructSpec, Value

UNKNOWN_TAGGED_FIELDS = "_unknownTaggedFields"

_UNSUPPORTED_VERSION = "org.apache.kafka.common.errors.UnsupportedVersionException"
_SHORT_MAX = 0x7FFF
_TAG_COUNT_MAX, _ARRAY_SIZE_MAX = 10_000, 1_000_000

_Read = Callable[[Cursor], Any]


class _Rules(NamedTuple):
    """How a version of a message is read; see `KafkaVersion.bounds_messages` for `is_bounded`."""

    version: int
    is_flexible: bool
    is_bounded: bool


def read(message: Message, version: int, data: bytes) -> Value:
    """Read a `message` of `version` from the start of `data`; raises SchemaError (see the module)."""
    return read_from(Cursor(data, version), message)


def read_from(cursor: Cursor, message: Message) -> Value:
    """Read a `message` of `cursor.version` at the cursor, and move the cursor behind it."""
    return _root_reader(message, message.versions.nearest(cursor.version))(cursor)


@cache
def _root_reader(message: Message, version: int) -> Callable[[Cursor], Value]:
    return _struct_reader(message.root, _Rules(version, message.is_flexible(version), message.kafka.bounds_messages))


def _struct_reader(struct: StructSpec, rules: _Rules) -> Callable[[Cursor], Value]:
    version, is_flexible, is_bounded = rules
    template = {field.name: field.default for field in struct.fields}
    regular = []
    mutable_defaults = []
    tagged: dict[int, tuple[str, _Read | None]] = {}
    for field in struct.fields:
        read_field = _field_reader(field, rules) if version in field.versions else None
        if field.tag is not None:
            tagged[field.tag] = (field.name, read_field)
        if field.tag is None and read_field is not None:
            regular.append((field.name, read_field))
        elif isinstance(field.default, list | dict):
            mutable_defaults.append((field.name, field.default))
    last_version = None if struct.versions is None else struct.versions.high

    def read_struct(cursor: Cursor) -> Value:
        if last_version is not None and cursor.version > last_version:
            raise SchemaError(f"Can't read version {cursor.version} of {struct.name}", java_class=_UNSUPPORTED_VERSION)
        value = template.copy()
        # a copy: a caller may change the list that it got
        for name, default in mutable_defaults:
            value[name] = deepcopy(default)
        for name, read_regular in regular:
            value[name] = read_regular(cursor)
        if is_flexible:
            count = cursor.unsigned_varint()
            if is_bounded:
                _check_tag_count(count, cursor)
            _read_tagged_fields(cursor, value, tagged, count)
        return value

    return read_struct


def _check_tag_count(count: int, cursor: Cursor) -> None:
    if count < 0:
        raise SchemaError(f"Invalid negative number of tagged fields {count}")
    if count > cursor.remaining_bytes:
        raise SchemaError(
            f"Tried to read {count} tagged fields, but there are only {cursor.remaining_bytes} bytes remaining."
        )
    if count > _TAG_COUNT_MAX:
        raise SchemaError(
            f"Tried to read {count} tagged fields, which exceeds the maximum allowed count of {_TAG_COUNT_MAX}."
        )


def _read_tagged_fields(cursor: Cursor, value: Value, known: dict[int, tuple[str, _Read | None]], count: int) -> None:
    """Read the tagged fields behind a flexible struct into `value`; Kafka ignores the size of a known field."""
    for _ in range(count):
        tag = cursor.unsigned_varint()
        size = cursor.unsigned_varint()
        if tag not in known:
            cursor.has_unknown_tags = True
            value.setdefault(UNKNOWN_TAGGED_FIELDS, []).append((tag, cursor.array(size)))
            continue
        name, read_field = known[tag]
        if read_field is None:
            raise SchemaError(f"Tag {tag} is not valid for version {cursor.version}")
        value[name] = read_field(cursor)


def _field_reader(field: Field, rules: _Rules) -> _Read:
    if field.is_array:
        element = _value_reader(field, f"{field.name} element", False, rules)
        return _array_reader(field.name, field.is_nullable, element, rules)
    return _value_reader(field, field.name, field.is_nullable, rules)


def _value_reader(field: Field, name: str, is_nullable: bool, rules: _Rules) -> _Read:
    if field.struct is not None:
        read_struct = _struct_reader(field.struct, rules)
        return _nullable_struct_reader(read_struct, field.tag is not None) if is_nullable else read_struct
    if field.kind == "string":
        return _string_reader(name, is_nullable, rules.is_flexible)
    if field.kind == "bytes":
        return _bytes_reader(name, is_nullable, rules.is_flexible)
    return _FIXED_SIZE[field.kind]


def _nullable_struct_reader(read_struct: _Read, is_tagged: bool) -> _Read:
    def read_nullable(cursor: Cursor) -> Value | None:
        # the mark of null is a varint 0 where the struct is a tagged field, else an int8 below 0
        is_null = cursor.unsigned_varint() <= 0 if is_tagged else _read_int8(cursor) < 0
        return None if is_null else read_struct(cursor)

    return read_nullable


def _array_reader(name: str, is_nullable: bool, read_element: _Read, rules: _Rules) -> _Read:
    read_length = _read_compact_length if rules.is_flexible else _read_int32

    def read_array(cursor: Cursor) -> list[Any] | None:
        length = read_length(cursor)
        if length < 0:
            _check_nullable(name, is_nullable)
            return None
        # an element has at least one byte, so a longer array cannot be there
        if length > cursor.remaining_bytes:
            raise SchemaError(
                f"Tried to allocate a collection of size {length}, but there are only "
                f"{cursor.remaining_bytes} bytes remaining."
            )
        if rules.is_bounded and length > _ARRAY_SIZE_MAX:
            raise SchemaError(
                f"Tried to read a collection of size {length}, which exceeds the maximum allowed size of "
                f"{_ARRAY_SIZE_MAX}."
            )
        return [read_element(cursor) for _ in range(length)]

    return read_array


def _string_reader(name: str, is_nullable: bool, is_flexible: bool) -> _Read:
    read_length = _read_compact_length if is_flexible else _read_int16

    def read_string(cursor: Cursor) -> str | None:
        length = read_length(cursor)
        if length < 0:
            _check_nullable(name, is_nullable)
            return None
        if length > _SHORT_MAX:
            raise SchemaError(f"string field {name} had invalid length {length}")
        return java_utf8(cursor.array(length))

    return read_string


def _bytes_reader(name: str, is_nullable: bool, is_flexible: bool) -> _Read:
    read_length = _read_compact_length if is_flexible else _read_int32

    def read_bytes(cursor: Cursor) -> bytes | None:
        length = read_length(cursor)
        if length < 0:
            _check_nullable(name, is_nullable)
            return None
        return cursor.array(length)

    return read_bytes


def _check_nullable(name: str, is_nullable: bool) -> None:
    if not is_nullable:
        raise SchemaError(f"non-nullable field {name} was serialized as null")


def _read_compact_length(cursor: Cursor) -> int:
    return java_int(cursor.unsigned_varint() - 1)


def _number_reader(packed: Packed) -> Callable[[Cursor], Any]:
    size = packed.size
    unpack_from = packed.unpack_from

    def read_number(cursor: Cursor) -> Any:
        start = cursor.position
        if start + size > len(cursor.data):
            raise underflow()
        cursor.position = start + size
        return unpack_from(cursor.data, start)[0]

    return read_number


_read_int8 = _number_reader(Packed(">b"))
_read_int16 = _number_reader(Packed(">h"))
_read_int32 = _number_reader(Packed(">i"))


def _read_bool(cursor: Cursor) -> bool:
    return bool(_read_int8(cursor))


def _read_uuid(cursor: Cursor) -> str:
    if cursor.remaining_bytes < UUID_SIZE:
        raise underflow()
    return format_uuid(cursor.array(UUID_SIZE))


_FIXED_SIZE: dict[str, _Read] = {
    "int8": _read_int8,
    "int16": _read_int16,
    "int32": _read_int32,
    "int64": _number_reader(Packed(">q")),
    "uint16": _number_reader(Packed(">H")),
    "float64": _number_reader(Packed(">d")),
    "bool": _read_bool,
    "uuid": _read_uuid,
}
