"""What the dump prints of a record's key and value: the `MessageParser`s and `Decoder`s of DumpLogSegments.

A parser takes (offset, key, value) and gives (text of the key or None, text of the payload or None). What the
real tool prints as an error in the place of a record is text here too; what it dies of is raised as a
LogstoreError.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable

from logstore.errors import LogstoreError, SchemaError
from logstore.layout.utf8 import java_utf8
from logstore.model import ControlRecordType
from logstore.topics import control_records, coordinator_record, json_form, metadata_frame
from logstore.topics.coordinator_record import CoordinatorKey, CoordinatorValue
from logstore.topics.cursor import Cursor, underflow
from logstore.topics.reader import read_from
from logstore.topics.schema import Value, family

from .decoder_remote import remote_log_metadata_text

MessageParser = Callable[[int, bytes | None, bytes | None], tuple[str | None, str | None]]

_CAPITAL_INSIDE = re.compile("(?<=.)(?=[A-Z])")
_CONTROL_TITLES = {
    ControlRecordType.LEADER_CHANGE: "LeaderChange:",
    ControlRecordType.SNAPSHOT_HEADER: "SnapshotHeader",
    ControlRecordType.SNAPSHOT_FOOTER: "SnapshotFooter",
    ControlRecordType.KRAFT_VERSION: "KRaftVersion",
    ControlRecordType.KRAFT_VOTERS: "KRaftVoters",
}


def message_parser(name: str) -> MessageParser:
    """The parser behind a decoder flag.

    `name` is offsets, transaction, share-group-state, cluster-metadata or remote-log-metadata.
    """
    return _PARSERS[name]


def decoder(class_name: str) -> Callable[[bytes], str]:
    """The standard decoder of this Java class name; any other name fails as the real tool does."""
    if class_name not in _DECODERS:
        raise LogstoreError(
            "Failed to load decoder class",
            found=class_name,
            expected=", ".join(_DECODERS),
            java_class="java.lang.RuntimeException",
        )
    return _DECODERS[class_name]


def control_record_text(key: bytes | None, value: bytes | None) -> str:
    """What follows a control record's metadata, with the blank before it; raises what the real tool dies of."""
    if key is None:
        raise _null_pointer("duplicate", "key")
    type_id = control_records.read_type_id(key)
    record_type = control_records.read_type(key)
    if record_type is ControlRecordType.UNKNOWN:
        return f" controlType: {record_type.name}({type_id})"
    if record_type in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        if value is None:
            raise _null_pointer("getShort", "value")
        epoch = control_records.read_coordinator_epoch(value)
        return f" endTxnMarker: {record_type.name} coordinatorEpoch: {epoch}"
    if value is None:
        raise _null_pointer("slice", "data")
    message, fields = control_records.read_kraft_record(record_type, value)
    return f" {_CONTROL_TITLES[record_type]} {json_form.text(message, fields['version'], fields)}"


def _null_pointer(method: str, variable: str) -> LogstoreError:
    return LogstoreError(
        f'Cannot invoke "java.nio.ByteBuffer.{method}()" because "{variable}" is null',
        java_class="java.lang.NullPointerException",
    )


def _coordinator_parser(topic: str) -> MessageParser:
    def parse(offset: int, key: bytes | None, value: bytes | None) -> tuple[str | None, str | None]:
        if key is None:
            raise LogstoreError(
                f"Failed to decode message at offset {offset} using the specified decoder (message had a missing key)",
                java_class="java.lang.RuntimeException",
            )
        try:
            record_type = coordinator_record.read_type(key)
            if not coordinator_record.is_known_type(topic, record_type):
                return f"Unknown record type {record_type} at offset {offset}, skipping.", None
            key_text = _key_text(coordinator_record.read_key(topic, key))
            if value is None:
                return key_text, "<DELETE>"
            return key_text, _value_text(coordinator_record.read_value(topic, record_type, value))
        except SchemaError as error:
            return f"Error at offset {offset}, skipping. {_reason(error)}", None

    return parse


def _key_text(key: CoordinatorKey) -> str:
    data = json_form.text(key.message, 0, key.fields)
    return f'{{"type":"{key.record_type}","data":{data}}}'


def _value_text(value: CoordinatorValue) -> str:
    if value.message.name == "GroupMetadataValue" and value.fields["protocolType"] == "consumer":
        for member in value.fields["members"]:
            _expand(member, "subscription", "ConsumerProtocolSubscription")
            _expand(member, "assignment", "ConsumerProtocolAssignment")
    data = json_form.text(value.message, value.version, value.fields)
    return f'{{"version":"{value.version}","data":{data}}}'


def _expand(member: Value, name: str, message_name: str) -> None:
    """Replace the bytes of an embedded message by its JSON; bytes that do not parse stay as they are."""
    embedded: bytes = member[name]
    if len(embedded) < 2:
        return
    version = int.from_bytes(embedded[:2], signed=True)
    message = family("consumer_protocol")[message_name]
    try:
        fields = read_from(Cursor(embedded, version, position=2), message)
    except SchemaError:
        return
    member[name] = json_form.text(message, version, fields)


def _parse_cluster_metadata(offset: int, key: bytes | None, value: bytes | None) -> tuple[None, str]:
    try:
        # the real tool meets a missing value while it reads the frame, as it meets an empty one
        record = metadata_frame.read_record("cluster_metadata", value or b"")
    except SchemaError as error:
        return None, f"Error at {offset}, skipping. {_reason(error)}"
    record_type = _CAPITAL_INSIDE.sub("_", record.message.name).upper()
    data = json_form.text(record.message, record.version, record.fields)
    return None, f'{{"type":"{record_type}","version":{record.version},"data":{data}}}'


def _parse_remote_log_metadata(offset: int, key: bytes | None, value: bytes | None) -> tuple[None, str]:
    try:
        return None, remote_log_metadata_text(value)
    except SchemaError as error:
        return None, f"Error at offset {offset}, skipping. {_reason(error)}"


def _reason(error: LogstoreError) -> str:
    return "null" if error.message is None else error.message


_PARSERS: dict[str, MessageParser] = {
    "offsets": _coordinator_parser("consumer_offsets"),
    "transaction": _coordinator_parser("transaction_state"),
    "share-group-state": _coordinator_parser("share_group_state"),
    "cluster-metadata": _parse_cluster_metadata,
    "remote-log-metadata": _parse_remote_log_metadata,
}


def _decode_array(data: bytes) -> str:
    """Java prints a byte array as its type and an arbitrary hash; here it is a hash of the bytes."""
    return f"[B@{zlib.crc32(data) & 0x7FFFFFFF:x}"


def _integer_decoder(size: int) -> Callable[[bytes], str]:
    def decode(data: bytes) -> str:
        if len(data) < size:
            raise underflow()
        return str(int.from_bytes(data[:size], signed=True))

    return decode


_DECODERS: dict[str, Callable[[bytes], str]] = {
    "org.apache.kafka.tools.api.StringDecoder": java_utf8,
    "org.apache.kafka.tools.api.DefaultDecoder": _decode_array,
    "org.apache.kafka.tools.api.IntegerDecoder": _integer_decoder(4),
    "org.apache.kafka.tools.api.LongDecoder": _integer_decoder(8),
}
