"""`toString` of the records of `__remote_log_metadata`, which is what the dump prints of them.

Kafka builds its own objects from a record first (`RemoteLogMetadataSerde`); what their constructors refuse is
an error of the record.
"""

from __future__ import annotations

from collections.abc import Callable

from logstore.errors import SchemaError
from logstore.topics.metadata_frame import read_record
from logstore.topics.schema import Value

_SEGMENT_STATES = (
    "COPY_SEGMENT_STARTED",
    "COPY_SEGMENT_FINISHED",
    "DELETE_SEGMENT_STARTED",
    "DELETE_SEGMENT_FINISHED",
)
_PARTITION_STATES = ("DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED")

_ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException"
_NULL_POINTER = "java.lang.NullPointerException"


def remote_log_metadata_text(value: bytes | None) -> str:
    """The text of a record's value; raises SchemaError with the message of Kafka's exception, if it has one."""
    if value is None:
        raise SchemaError(
            'Cannot invoke "java.nio.ByteBuffer.remaining()" because the return value of '
            '"org.apache.kafka.common.record.internal.Record.value()" is null',
            java_class=_NULL_POINTER,
        )
    record = read_record("remote_log_metadata", value)
    return _TEXTS[record.message.name](record.fields)


def _segment_text(fields: Value) -> str:
    start_offset, end_offset = fields["startOffset"], fields["endOffset"]
    if start_offset < 0:
        raise _illegal_argument(
            f"Unexpected start offset = {start_offset}. StartOffset for a remote segment cannot be negative"
        )
    if end_offset < start_offset:
        raise _illegal_argument(
            f"Unexpected end offset = {end_offset}. EndOffset for a remote segment cannot be less than "
            f"startOffset = {start_offset}"
        )
    epochs = _leader_epochs(fields)
    return (
        f"RemoteLogSegmentMetadata{{remoteLogSegmentId={_segment_id(fields)}, startOffset={start_offset}, "
        f"endOffset={end_offset}, brokerId={fields['brokerId']}, maxTimestampMs={fields['maxTimestampMs']}, "
        f"eventTimestampMs={fields['eventTimestampMs']}, segmentLeaderEpochs={epochs}, "
        f"segmentSizeInBytes={fields['segmentSizeInBytes']}, customMetadata={_custom_metadata(fields)}, "
        f"state={_segment_state(fields)}, txnIdxEmpty={_boolean(fields['txnIndexEmpty'])}}}"
    )


def _segment_snapshot_text(fields: Value) -> str:
    state = _segment_state(fields)
    return (
        f"RemoteLogSegmentMetadataSnapshot{{segmentId={fields['segmentId']}, "
        f"startOffset={fields['startOffset']}, endOffset={fields['endOffset']}, "
        f"maxTimestampMs={fields['maxTimestampMs']}, segmentLeaderEpochs={_leader_epochs(fields)}, "
        f"segmentSizeInBytes={fields['segmentSizeInBytes']}, customMetadata={_custom_metadata(fields)}, "
        f"state={state}, txnIdxEmpty={_boolean(fields['txnIndexEmpty'])}}}"
    )


def _segment_update_text(fields: Value) -> str:
    return (
        f"RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId={_segment_id(fields)}, "
        f"customMetadata={_custom_metadata(fields)}, state={_segment_state(fields)}, "
        f"eventTimestampMs={fields['eventTimestampMs']}, brokerId={fields['brokerId']}}}"
    )


def _partition_delete_text(fields: Value) -> str:
    state = fields["remotePartitionDeleteState"]
    if not 0 <= state < len(_PARTITION_STATES):
        raise SchemaError(None, found=state, java_class=_NULL_POINTER)
    return (
        f"RemotePartitionDeleteMetadata{{topicPartition={_topic_id_partition(fields)}, "
        f"state={_PARTITION_STATES[state]}, eventTimestampMs={fields['eventTimestampMs']}, "
        f"brokerId={fields['brokerId']}}}"
    )


_TEXTS: dict[str, Callable[[Value], str]] = {
    "RemoteLogSegmentMetadataRecord": _segment_text,
    "RemoteLogSegmentMetadataUpdateRecord": _segment_update_text,
    "RemotePartitionDeleteMetadataRecord": _partition_delete_text,
    "RemoteLogSegmentMetadataSnapshotRecord": _segment_snapshot_text,
}


def _segment_id(fields: Value) -> str:
    entry = fields["remoteLogSegmentId"]
    return f"RemoteLogSegmentId{{topicIdPartition={_topic_id_partition(entry)}, id={entry['id']}}}"


def _topic_id_partition(fields: Value) -> str:
    entry = fields["topicIdPartition"]
    return f"{entry['id']}:{entry['name']}-{entry['partition']}"


def _leader_epochs(fields: Value) -> str:
    """The map of leader epochs to start offsets, in the order of epochs; the last offset of an epoch counts."""
    offsets = {entry["leaderEpoch"]: entry["offset"] for entry in fields["segmentLeaderEpochs"]}
    if not offsets:
        raise _illegal_argument("segmentLeaderEpochs can not be null or empty")
    return "{" + ", ".join(f"{epoch}={offset}" for epoch, offset in sorted(offsets.items())) + "}"


def _custom_metadata(fields: Value) -> str:
    metadata: bytes | None = fields["customMetadata"]
    return "Optional.empty" if metadata is None else f"Optional[CustomMetadata{{{len(metadata)} bytes}}]"


def _segment_state(fields: Value) -> str:
    state: int = fields["remoteLogSegmentState"]
    if not 0 <= state < len(_SEGMENT_STATES):
        raise SchemaError("state can not be null", found=state, java_class=_NULL_POINTER)
    return _SEGMENT_STATES[state]


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def _illegal_argument(message: str) -> SchemaError:
    return SchemaError(message, java_class=_ILLEGAL_ARGUMENT)
