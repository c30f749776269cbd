"""Frames of the records of internal topics: the bytes before the body of a key or value.

Coordinators' topics (`__consumer_offsets`, `__transaction_state`, `__share_group_state`; `CoordinatorRecordSerde`) have
keys of a record type and a body, and values of a version and a body; type and version are int16. A null value is a
tombstone. Keys have one version only. Bytes behind a body are ignored, as in Kafka.

`__cluster_metadata` and `__remote_log_metadata` (`AbstractApiMessageSerde`) have null keys. A value is a frame version
(1), a record type and a version, all unsigned varints, and then the body. A body of an unknown version is read as the
nearest known version; bytes behind the body are an error.

>>> record = read_record("cluster_metadata", bytes.fromhex("01 14 00 00"))
>>> record.message.name, record.version, record.fields
('NoOpRecord', 0, {})
"""

from __future__ import annotations

from typing import NamedTuple

from ..config.kafka_version import NEWEST, KafkaVersion
from ..errors import SchemaError
from ..messages.cursor import Cursor
from ..messages.reader import read_from
from ..messages.schema import Message, Value
from ..messages.writer import unsigned_varint, write
from . import family, record_types

_FRAME_VERSION = 1

_PARSE_ERROR = "org.apache.kafka.server.common.serialization.MetadataParseException"
_SHORT_MAX = 0x7FFF
_NEWER_MAX = 999  # a newer Kafka counts on from the known types and versions; text in their place has larger numbers


class CoordinatorKey(NamedTuple):
    """A decoded key; `message` is the schema of its `record_type`."""

    record_type: int
    message: Message
    fields: Value


class DecodedValue(NamedTuple):
    """A decoded value.

    Attributes:
        version: the written one, which the schema of a metadata record may not have.
        is_newer: it is of a version, or has tagged fields, that only a Kafka newer than any known here writes.
    """

    version: int
    message: Message
    fields: Value
    is_newer: bool = False


def read_type(key: bytes) -> int:
    """Return the record type at the start of a key; no table may have it."""
    return _read_int16(key, "key")


def read_version(value: bytes) -> int:
    """Return the version at the start of a value; the schema may not have it."""
    return _read_int16(value, "value")


def is_known_type(topic: str, record_type: int, kafka: KafkaVersion = NEWEST) -> bool:
    """Return whether the table of `topic` (`consumer_offsets`, …) has records of this type."""
    return record_type in record_types(topic, "Key", kafka)


def read_key(topic: str, key: bytes, kafka: KafkaVersion = NEWEST) -> CoordinatorKey:
    """Decode a key of `topic` as `kafka` does; raises SchemaError for an unknown record type and a broken body."""
    record_type = read_type(key)
    message = _message(topic, record_type, "Key", kafka)
    return CoordinatorKey(record_type, message, _read_body(message, record_type, key, "key"))


def read_value(topic: str, record_type: int, value: bytes, kafka: KafkaVersion = NEWEST) -> DecodedValue:
    """Decode a value of `record_type`; raises SchemaError for an unknown version and a broken body."""
    message = _message(topic, record_type, "Value", kafka)
    version = read_version(value)
    if version not in message.versions:
        raise SchemaError(
            f"Found an unknown record version {version} for {record_type} type",
            expected=f"{message.name} of version {message.versions.low} to {message.versions.high}",
            found=version,
        )
    return DecodedValue(version, message, _read_body(message, version, value, "value"))


def write_key(topic: str, record_type: int, fields: Value) -> bytes:
    """Encode a key of `topic`; raises SchemaError for an unknown record type and values that the schema refuses."""
    message = _message(topic, record_type, "Key")
    return record_type.to_bytes(2) + write(message, message.versions.high, fields)


def write_value(topic: str, record_type: int, version: int, fields: Value) -> bytes:
    """Encode a value of `record_type` in a version of it; raises SchemaError like `write_key`."""
    message = _message(topic, record_type, "Value")
    body = write(message, version, fields)  # first, as it refuses a version that has no room
    return version.to_bytes(2, signed=True) + body


def read_record(topic: str, value: bytes, kafka: KafkaVersion = NEWEST) -> DecodedValue:
    """Decode a framed record of `topic` (`cluster_metadata` or `remote_log_metadata`).

    Raises SchemaError for a frame that is cut or not of version 1, an unknown type, a broken body, and bytes behind it.
    """
    cursor = Cursor(value)
    _check_frame_version(_read_short(cursor, "frame version"))
    record_type = _read_short(cursor, "type")
    version = cursor.version = _read_short(cursor, "version")
    message = record_types(topic, kafka=kafka).get(record_type)
    if message is None:
        raise _frame_error(
            f"org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {record_type}"
        )
    try:
        fields = read_from(cursor, message)
    except SchemaError as error:
        raise _frame_error(f"Failed to deserialize record with type {record_type}") from error
    if cursor.remaining_bytes:
        raise _frame_error(f"Found {cursor.remaining_bytes} byte(s) of garbage after {record_type}")
    return DecodedValue(version, message, fields, version > message.versions.high or cursor.has_unknown_tags)


def is_newer_record(topic: str, value: bytes) -> bool:
    """Return whether a framed record is of a type or version that only a Kafka newer than any known here writes."""
    cursor = Cursor(value)
    try:
        frame_version, record_type, version = (_read_short(cursor, "frame") for _ in range(3))
    except SchemaError:
        return False
    return frame_version == _FRAME_VERSION and _is_newer(record_types(topic).get(record_type), record_type, version)


def is_newer(topic: str, key: bytes, value: bytes | None) -> bool:
    """Return whether a coordinator's record is of a type or version that only a newer Kafka knows.

    Raises SchemaError for bytes that are too few for a version, and for a broken key of a type that is known.
    """
    record_type = read_type(key)
    if is_known_type(topic, record_type):
        read_key(topic, key)
    return _is_newer(record_types(topic, "Value").get(record_type), record_type, read_version(value) if value else 0)


def _is_newer(message: Message | None, record_type: int, version: int) -> bool:
    number = record_type if message is None else version
    return (0 if message is None else message.versions.high + 1) <= number <= _NEWER_MAX


def write_record(topic: str, name: str, version: int, fields: Value) -> bytes:
    """Encode a framed record `name` of `topic`; raises SchemaError for an unknown name and refused values."""
    message = family(topic).get(name)
    if message is None or message.record_type is None:
        raise SchemaError(f"{name} is no record of {topic}", expected=", ".join(family(topic)), found=name)
    frame = unsigned_varint(_FRAME_VERSION) + unsigned_varint(message.record_type) + unsigned_varint(version & 0xFFFF)
    return frame + write(message, version, fields)


def _message(topic: str, record_type: int, suffix: str, kafka: KafkaVersion = NEWEST) -> Message:
    message = record_types(topic, suffix, kafka).get(record_type)
    if message is None:
        raise SchemaError(f"Found an unknown record type {record_type}", found=record_type)
    return message


def _read_int16(data: bytes, name: str) -> int:
    if len(data) < 2:
        raise SchemaError(f"Could not read version from {name}'s buffer.")
    return int.from_bytes(data[:2], signed=True)


def _read_body(message: Message, version: int, data: bytes, name: str) -> Value:
    try:
        return read_from(Cursor(data, version, position=2), message)
    except SchemaError as error:
        reason = "null" if error.message is None else error.message
        raise SchemaError(
            f"Could not read record with version {version} from {name}'s buffer due to: {reason}."
        ) from error


def _check_frame_version(frame_version: int) -> None:
    if frame_version == 0:
        raise _frame_error(
            "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview "
            "release of KRaft in 2.8 to newer versions are not supported."
        )
    if frame_version != _FRAME_VERSION:
        raise _frame_error(
            f"Could not deserialize metadata record due to unknown frame version {frame_version}"
            "(only frame version 1 is supported)"
        )


def _read_short(cursor: Cursor, entity: str) -> int:
    try:
        value = cursor.unsigned_varint()
    except SchemaError as error:
        raise _frame_error(f"Error while reading {entity}") from error
    if value > _SHORT_MAX:
        raise _frame_error(f"Value for {entity} was too large.")
    return ((value & 0xFFFF) ^ 0x8000) - 0x8000


def _frame_error(message: str) -> SchemaError:
    return SchemaError(message, java_class=_PARSE_ERROR)
