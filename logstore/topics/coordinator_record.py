"""Records of the coordinators' topics: keys of a type and a body, values of a version and a body.

This holds for `__consumer_offsets`, `__transaction_state` and `__share_group_state`
(`CoordinatorRecordSerde`). Type and version are an int16. A null value is a tombstone. Keys have one version
only; bytes behind a body are ignored, as Kafka does.
"""

from __future__ import annotations

from typing import NamedTuple

from logstore.errors import SchemaError
from logstore.topics.cursor import Cursor
from logstore.topics.reader import read_from
from logstore.topics.schema import Message, Value, record_types
from logstore.topics.writer import write


class CoordinatorKey(NamedTuple):
    """A key: its type, the type's message and the fields."""

    record_type: int
    message: Message
    fields: Value


class CoordinatorValue(NamedTuple):
    """A value: its version, its message and the fields."""

    version: int
    message: Message
    fields: Value


def read_type(key: bytes) -> int:
    """The record type that a key begins with; it may be one that no table knows."""
    return _read_int16(key, "key")


def read_version(value: bytes) -> int:
    """The version that a value begins with; it may be one that no table knows."""
    return _read_int16(value, "value")


def is_known_type(topic: str, record_type: int) -> bool:
    """Whether the table of `topic` (`consumer_offsets`, …) has records of this type."""
    return record_type in record_types(topic, "Key")


def read_key(topic: str, key: bytes) -> CoordinatorKey:
    """Read a key of `topic`; raises SchemaError for an unknown type and for a broken body."""
    record_type = read_type(key)
    message = _message(topic, record_type, "Key")
    return CoordinatorKey(record_type, message, _read_body(message, record_type, key, "key"))


def read_value(topic: str, record_type: int, value: bytes) -> CoordinatorValue:
    """Read the value of a `record_type`; raises SchemaError for an unknown version and a broken body."""
    message = _message(topic, record_type, "Value")
    version = read_version(value)
    if version not in message.versions:
        raise SchemaError(
            f"Found an unknown record version {version} for {record_type} type",
            expected=f"{message.name} of version {message.versions.low} to {message.versions.high}",
            found=version,
        )
    return CoordinatorValue(version, message, _read_body(message, version, value, "value"))


def write_key(topic: str, record_type: int, fields: Value) -> bytes:
    """The key of a `record_type` of `topic`; raises SchemaError for an unknown type and what the schema refuses."""
    message = _message(topic, record_type, "Key")
    return record_type.to_bytes(2) + write(message, message.versions.high, fields)


def write_value(topic: str, record_type: int, version: int, fields: Value) -> bytes:
    """The value of a `record_type` in a version of it; raises SchemaError like `write_key`."""
    message = _message(topic, record_type, "Value")
    return version.to_bytes(2, signed=True) + write(message, version, fields)


def _message(topic: str, record_type: int, suffix: str) -> Message:
    message = record_types(topic, suffix).get(record_type)
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
