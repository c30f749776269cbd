"""The frame of a metadata record: frame version, record type and version as unsigned varints, then the body.

`__cluster_metadata` and `__remote_log_metadata` write their record values like this
(`AbstractApiMessageSerde`); keys are null. The frame version is 1. Unlike a coordinator's record, a body of an
unknown version is read as the nearest known one, and bytes behind the body are an error.

>>> record = read_record("cluster_metadata", bytes.fromhex("01 14 00 00"))
>>> record.message.name, record.version, record.fields
('NoOpRecord', 0, {})
"""

from __future__ import annotations

from typing import NamedTuple

from logstore.errors import SchemaError
from logstore.topics.cursor import Cursor
from logstore.topics.reader import read_from
from logstore.topics.schema import Message, Value, family, record_types
from logstore.topics.writer import unsigned_varint, write

FRAME_VERSION = 1

_PARSE_ERROR = "org.apache.kafka.server.common.serialization.MetadataParseException"
_SHORT_MAX = 0x7FFF


class MetadataRecord(NamedTuple):
    """A record: its version as written, its message and the fields."""

    version: int
    message: Message
    fields: Value


def read_record(topic: str, value: bytes) -> MetadataRecord:
    """Read a framed record of `topic` (`cluster_metadata` or `remote_log_metadata`).

    Raises SchemaError for a frame that is cut or not of version 1, an unknown record type, a broken body, and
    garbage behind it.
    """
    cursor = Cursor(value)
    _check_frame_version(_read_short(cursor, "frame version"))
    record_type = _read_short(cursor, "type")
    version = cursor.version = _read_short(cursor, "version")
    message = record_types(topic).get(record_type)
    if message is None:
        raise _error(f"org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {record_type}")
    try:
        fields = read_from(cursor, message)
    except SchemaError as error:
        raise _error(f"Failed to deserialize record with type {record_type}") from error
    if cursor.remaining_bytes:
        raise _error(f"Found {cursor.remaining_bytes} byte(s) of garbage after {record_type}")
    return MetadataRecord(version, message, fields)


def write_record(topic: str, name: str, version: int, fields: Value) -> bytes:
    """A framed record of the message `name` of `topic`; raises SchemaError for what the schema refuses."""
    message = family(topic).get(name)
    if message is None or message.record_type is None:
        raise SchemaError(f"{name} is no record of {topic}", expected=", ".join(family(topic)), found=name)
    frame = unsigned_varint(FRAME_VERSION) + unsigned_varint(message.record_type) + unsigned_varint(version & 0xFFFF)
    return frame + write(message, version, fields)


def _check_frame_version(frame_version: int) -> None:
    if frame_version == 0:
        raise _error(
            "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview "
            "release of KRaft in 2.8 to newer versions are not supported."
        )
    if frame_version != FRAME_VERSION:
        raise _error(
            f"Could not deserialize metadata record due to unknown frame version {frame_version}"
            "(only frame version 1 is supported)"
        )


def _read_short(cursor: Cursor, entity: str) -> int:
    try:
        value = cursor.unsigned_varint()
    except SchemaError as error:
        raise _error(f"Error while reading {entity}") from error
    if value > _SHORT_MAX:
        raise _error(f"Value for {entity} was too large.")
    return ((value & 0xFFFF) ^ 0x8000) - 0x8000


def _error(message: str) -> SchemaError:
    return SchemaError(message, java_class=_PARSE_ERROR)
