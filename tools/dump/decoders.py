"""Texts of keys and values: the `MessageParser`s and `Decoder`s of DumpLogSegments.

A parser takes offset, key and value of a record, and returns the texts of key and payload, or None; JSON is JsonText.
An error that the real tool prints in the place of a record is text here too; an error that ends it is a LogstoreError.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, NamedTuple

from logstore.config.kafka_version import METADATA_VERSION, NEWEST, KafkaVersion, unknown_levels
from logstore.errors import LogstoreError, SchemaError
from logstore.folds.transaction_marker import control_record_type, control_record_type_id, coordinator_epoch
from logstore.layout.utf8 import java_utf8
from logstore.messages import json_form
from logstore.messages.cursor import Cursor, underflow
from logstore.messages.json_form import JsonText
from logstore.messages.reader import read_from
from logstore.messages.schema import Value
from logstore.model import ControlRecordType
from logstore.topics import control_records, family, frames
from logstore.topics.frames import DecodedValue
from logstore.topics.transaction_state import TransactionState

MessageParser = Callable[[int, bytes | None, bytes | None], tuple[str | None, str | None]]

_CAPITAL_INSIDE = re.compile("(?<=.)(?=[A-Z])")
_METADATA_LEVEL = re.compile(r'"name":"metadata\.version","featureLevel":(\d+)\}\}$')
_CONTROL_TITLES = {
    ControlRecordType.LEADER_CHANGE: "LeaderChange:",
    ControlRecordType.SNAPSHOT_HEADER: "SnapshotHeader",
    ControlRecordType.SNAPSHOT_FOOTER: "SnapshotFooter",
    ControlRecordType.KRAFT_VERSION: "KRaftVersion",
    ControlRecordType.KRAFT_VOTERS: "KRaftVoters",
}
_SEGMENT_STATES = (
    "COPY_SEGMENT_STARTED",
    "COPY_SEGMENT_FINISHED",
    "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED",
)
_PARTITION_STATES = ("DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED")
_ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException"
_NULL_POINTER = "java.lang.NullPointerException"


class ControlRecord(NamedTuple):
    """The content of a control record: its `typeId` if unknown, a marker's `coordinatorEpoch`, or JSON, as `data`."""

    type: ControlRecordType
    name: str
    detail: int | JsonText

    @property
    def json(self) -> JsonText:
        """The record as a JSON object."""
        return JsonText(f'{{"type":"{self.type.name}","{self.name}":{self.detail}}}')


def decoder(class_name: str) -> Callable[[bytes], str]:
    """Return the decoder of a Java class; raise the error of the real tool for a class that is none of Kafka's."""
    if class_name not in _DECODERS:
        raise LogstoreError(
            "Failed to load decoder class",
            found=class_name,
            expected=", ".join(_DECODERS),
            java_class="java.lang.RuntimeException",
        )
    return _DECODERS[class_name]


def read_control_record(key: bytes | None, value: bytes | None, kafka: KafkaVersion = NEWEST) -> ControlRecord:
    """Return the content of a control record; raise the error that ends the real tool."""
    if key is None:
        raise _null_pointer("duplicate", "key")
    record_type = control_record_type(key)
    if record_type is ControlRecordType.UNKNOWN:
        return ControlRecord(record_type, "typeId", control_record_type_id(key))
    if record_type in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
        if value is None:
            raise _null_pointer("getShort", "value")
        return ControlRecord(record_type, "coordinatorEpoch", coordinator_epoch(value))
    if value is None:
        raise _null_pointer("slice", "data")
    message, fields = control_records.read_kraft_record(record_type, value, kafka)
    return ControlRecord(record_type, "data", json_form.text(message, fields["version"], fields))


def control_record_text(key: bytes | None, value: bytes | None, kafka: KafkaVersion = NEWEST) -> str:
    """Return the end of a control record's line, with a blank before it; raise the error that ends the real tool."""
    record_type, name, detail = read_control_record(key, value, kafka)
    if name == "typeId":
        return f" controlType: {record_type.name}({detail})"
    if name == "coordinatorEpoch":
        return f" endTxnMarker: {record_type.name} coordinatorEpoch: {detail}"
    return f" {_CONTROL_TITLES[record_type]} {detail}"


def _null_pointer(method: str, variable: str) -> LogstoreError:
    return LogstoreError(
        f'Cannot invoke "java.nio.ByteBuffer.{method}()" because "{variable}" is null', java_class=_NULL_POINTER
    )


def _parse_coordinator(
    topic: str, kafka: KafkaVersion, offset: int, key: bytes | None, value: bytes | None
) -> tuple[str | None, str | None]:
    if key is None:
        raise LogstoreError(
            f"Failed to decode message at offset {offset} using the specified decoder (message had a missing key)",
            java_class="java.lang.RuntimeException",
        )
    try:
        record_type = frames.read_type(key)
        if not frames.is_known_type(topic, record_type, kafka):
            return f"Unknown record type {record_type} at offset {offset}, skipping.", None
        found = frames.read_key(topic, key, kafka)
        data = json_form.text(found.message, 0, found.fields)
        key_text = JsonText(f'{{"type":"{found.record_type}","data":{data}}}')
        if value is None:
            return key_text, "<DELETE>"
        return key_text, _value_text(frames.read_value(topic, record_type, value, kafka))
    except SchemaError as error:
        return f"Error at offset {offset}, skipping. {_reason(error)}", None


def _value_text(value: DecodedValue) -> JsonText:
    if value.message.name == "GroupMetadataValue" and value.fields["protocolType"] == "consumer":
        for member in value.fields["members"]:
            _expand(member, "subscription", "ConsumerProtocolSubscription", value.message.kafka)
            _expand(member, "assignment", "ConsumerProtocolAssignment", value.message.kafka)
    if value.message.name == "TransactionLogValue" and value.message.kafka.names_transaction_states:
        value.fields["transactionStatus"] = JsonText(f'"{_transaction_state(value.fields["transactionStatus"])}"')
    data = json_form.text(value.message, value.version, value.fields)
    return JsonText(f'{{"version":"{value.version}","data":{data}}}')


def _transaction_state(number: int) -> str:
    """Return the name of a state, `PrepareCommit`, or the number of one that does not exist."""
    try:
        return TransactionState(number).name.title().replace("_", "")
    except ValueError:
        return str(number)


def _expand(member: Value, name: str, message_name: str, kafka: KafkaVersion) -> None:
    """Replace the bytes of an embedded message by its JSON, unless they do not parse."""
    embedded: bytes = member[name]
    if len(embedded) < 2:
        return
    version = int.from_bytes(embedded[:2], signed=True)
    message = family("consumer_protocol", kafka)[message_name]
    try:
        fields = read_from(Cursor(embedded, version, position=2), message)
    except SchemaError:
        return
    member[name] = json_form.text(message, version, fields)


@dataclass(frozen=True, slots=True)
class ValueParser:
    """The parser of a topic without keys; `noun` stands before the offset in the text of an error.

    `note` is told, in words, a level of `metadata.version` that only a newer Kafka knows.
    """

    noun: str
    text_of: Callable[[bytes | None, KafkaVersion], str]
    kafka: KafkaVersion
    note: Callable[[str], object] = str

    def __call__(self, offset: int, key: bytes | None, value: bytes | None) -> tuple[None, str]:
        try:
            text = self.text_of(value, self.kafka)
        except SchemaError as error:
            return None, f"Error at {self.noun}{offset}, skipping. {_reason(error)}"
        level = _METADATA_LEVEL.search(text)
        for newer in unknown_levels({METADATA_VERSION: int(level[1])}) if level else ():
            self.note(newer)
        return None, text


def _cluster_metadata_text(value: bytes | None, kafka: KafkaVersion) -> JsonText:
    # in the real tool a missing value is the same error of the frame as an empty one
    record = frames.read_record("cluster_metadata", value or b"", kafka)
    record_type = _CAPITAL_INSIDE.sub("_", record.message.name).upper()
    data = json_form.text(record.message, record.version, record.fields)
    return JsonText(f'{{"type":"{record_type}","version":{record.version},"data":{data}}}')


def _reason(error: LogstoreError) -> str:
    return "null" if error.message is None else error.message


def _decode_array(data: bytes) -> str:
    """Return `[B@` and a hash; Java prints the hash of the object, here it is one of the bytes."""
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


def _remote_log_metadata_text(value: bytes | None, kafka: KafkaVersion) -> str:
    """Return `toString` of the object that Kafka makes of a record of `__remote_log_metadata`.

    Raises SchemaError with the message of Kafka's exception where a constructor refuses (`RemoteLogMetadataSerde`).
    """
    if value is None:
        raise SchemaError(
            'Cannot invoke "java.nio.ByteBuffer.remaining()" because the return value of '
            '"org.apache.kafka.common.record.internal.Record.value()" is null',
            java_class=_NULL_POINTER,
        )
    record = frames.read_record("remote_log_metadata", value, kafka)
    name, fields = record.message.name, record.fields
    if name == "RemoteLogSegmentMetadataRecord":
        _check_offsets(fields["startOffset"], fields["endOffset"])
    elif name == "RemoteLogSegmentMetadataSnapshotRecord":
        _FIELD_TEXTS["remoteLogSegmentState"](fields["remoteLogSegmentState"])  # the constructor checks it first
    shown = [
        f"{_SHOWN_NAMES.get(field, field)}={_FIELD_TEXTS.get(field, str)(fields[field])}" for field in _SHOWN[name]
    ]
    return f"{name.removesuffix('Record')}{{{', '.join(shown)}}}"


def _check_offsets(start_offset: int, end_offset: int) -> None:
    if start_offset < 0:
        raise _illegal_argument(
            f"Unexpected start offset = {start_offset}. StartOffset for a remote segment cannot be negative"
        )
    if end_offset < start_offset:
        raise _illegal_argument(
            f"Unexpected end offset = {end_offset}. EndOffset for a remote segment cannot be less than "
            f"startOffset = {start_offset}"
        )


def _topic_id_partition(entry: Value) -> str:
    return f"{entry['id']}:{entry['name']}-{entry['partition']}"


def _leader_epochs(entries: list[Value]) -> str:
    """Return the map of leader epochs to start offsets, sorted; of several offsets of an epoch the last one counts."""
    offsets = {entry["leaderEpoch"]: entry["offset"] for entry in entries}
    if not offsets:
        raise _illegal_argument("segmentLeaderEpochs can not be null or empty")
    return "{" + ", ".join(f"{epoch}={offset}" for epoch, offset in sorted(offsets.items())) + "}"


def _custom_metadata(metadata: bytes | None) -> str:
    return "Optional.empty" if metadata is None else f"Optional[CustomMetadata{{{len(metadata)} bytes}}]"


def _state(names: tuple[str, ...], message: str | None, state: int) -> str:
    if not 0 <= state < len(names):
        raise SchemaError(message, found=state, java_class=_NULL_POINTER)
    return names[state]


def _illegal_argument(message: str) -> SchemaError:
    return SchemaError(message, java_class=_ILLEGAL_ARGUMENT)


_EPOCHS_TO_INDEX = (
    *("segmentLeaderEpochs", "segmentSizeInBytes", "customMetadata", "remoteLogSegmentState", "txnIndexEmpty"),
)
# the fields of each class in the order of its `toString`
_SHOWN = {
    "RemoteLogSegmentMetadataRecord": (
        *("remoteLogSegmentId", "startOffset", "endOffset", "brokerId", "maxTimestampMs", "eventTimestampMs"),
        *_EPOCHS_TO_INDEX,
    ),
    "RemoteLogSegmentMetadataUpdateRecord": (
        *("remoteLogSegmentId", "customMetadata", "remoteLogSegmentState", "eventTimestampMs", "brokerId"),
    ),
    "RemotePartitionDeleteMetadataRecord": (
        *("topicIdPartition", "remotePartitionDeleteState", "eventTimestampMs", "brokerId"),
    ),
    "RemoteLogSegmentMetadataSnapshotRecord": (
        *("segmentId", "startOffset", "endOffset", "maxTimestampMs"),
        *_EPOCHS_TO_INDEX,
    ),
}
_SHOWN_NAMES = {
    "topicIdPartition": "topicPartition",
    "remoteLogSegmentState": "state",
    "remotePartitionDeleteState": "state",
    "txnIndexEmpty": "txnIdxEmpty",
}
_FIELD_TEXTS: dict[str, Callable[[Any], str]] = {
    "remoteLogSegmentId": lambda entry: (
        f"RemoteLogSegmentId{{topicIdPartition={_topic_id_partition(entry['topicIdPartition'])}, id={entry['id']}}}"
    ),
    "topicIdPartition": _topic_id_partition,
    "segmentLeaderEpochs": _leader_epochs,
    "customMetadata": _custom_metadata,
    "remoteLogSegmentState": partial(_state, _SEGMENT_STATES, "state can not be null"),
    "remotePartitionDeleteState": partial(_state, _PARTITION_STATES, None),
    "txnIndexEmpty": lambda is_empty: "true" if is_empty else "false",
}


@cache
def parsers(kafka: KafkaVersion = NEWEST) -> dict[str, MessageParser]:
    """Return the decoders of whole records by the names that `options` has for them."""
    return {
        "offsets": partial(_parse_coordinator, "consumer_offsets", kafka),
        "transaction": partial(_parse_coordinator, "transaction_state", kafka),
        "share-group-state": partial(_parse_coordinator, "share_group_state", kafka),
        "cluster-metadata": ValueParser("", _cluster_metadata_text, kafka),
        "remote-log-metadata": ValueParser("offset ", _remote_log_metadata_text, kafka),
    }
