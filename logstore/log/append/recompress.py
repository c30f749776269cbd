"""Batch rebuilt in the codec of its topic (`LogValidator.buildRecordsAndAssignOffsets`)."""

from __future__ import annotations

import struct

from ...columns.batch_fields import producer_problem
from ...columns.batch_table import BatchTable, ByteArray
from ...columns.header_columns import columns_of_table
from ...columns.record_building import build_batch
from ...columns.record_table import RecordTable
from ...errors import InvalidRecordError, RecordTooLargeError
from ...kernels.scan.crc32c import crc32c_range
from ...layout import batch as layout
from ...model import Codec, TimestampType
from .rules import ValidationRules


def recompress(
    records: RecordTable,
    table: BatchTable,
    codec: Codec,
    base_offset: int,
    leader_epoch: int,
    log_append_time: int,
    rules: ValidationRules,
) -> ByteArray:
    """Rebuild the batch of `table` with records numbered from `base_offset` on; return no bytes without records.

    Control and delete horizon bits are dropped, as in Kafka.

    Args:
        records: all records of the batch.
        codec: target codec; the rules give the level.
        log_append_time: ms; -1 in a CreateTime topic.

    Returns:
        uint8, 1-D, writable.

    Raises:
        InvalidRecordError: inconsistent producer fields, or no records in a LogAppendTime topic.
        RecordTooLargeError: the new batch is larger than `max.message.bytes`.
        InvalidTimestampError: a negative timestamp other than -1.
    """
    _require_records(records, rules)
    data = build_batch(
        columns_of_table(records),
        base_offset=base_offset,
        codec=codec,
        level=rules.level(codec),
        timestamp_type=rules.timestamp_type,
        log_append_time=log_append_time,
        partition_leader_epoch=leader_epoch,
    )
    batch = table.row(0)
    _require_producer(batch)
    if data.size:
        _put_producer(data, batch)
    if data.size > rules.max_message_bytes:
        raise RecordTooLargeError(
            f"Message batch size is {data.size} bytes in append to partition {rules.topic_partition} which exceeds the "
            f"maximum configured size of {rules.max_message_bytes}."
        )
    return data


def _require_records(records: RecordTable, rules: ValidationRules) -> None:
    """Refuse a batch without records in a LogAppendTime topic, where Kafka runs into a null pointer."""
    if not len(records) and rules.timestamp_type is TimestampType.LOG_APPEND_TIME:
        raise InvalidRecordError(
            'Cannot invoke "java.lang.Long.longValue()" because "this.lastOffset" is null',
            expected="records, to give them the time of the append",
            found="a batch without any",
            java_class="java.lang.NullPointerException",
        )


def _require_producer(batch: dict[str, int]) -> None:
    """Check the producer fields as `validateProducerState` does, and no more: other nonsense is copied."""
    is_transactional = bool(batch["attributes"] & layout.TRANSACTIONAL_FLAG)
    producer = batch["producer_id"], batch["producer_epoch"], batch["base_sequence"]
    problem = producer_problem(*producer, is_transactional, is_control=False)
    if problem is not None:
        raise InvalidRecordError(problem, java_class="java.lang.IllegalArgumentException")


def _put_producer(data: ByteArray, batch: dict[str, int]) -> None:
    """Copy the producer fields of the source batch, and compute the checksum anew."""
    data[layout.ATTRIBUTES + 1] |= batch["attributes"] & layout.TRANSACTIONAL_FLAG
    producer = (batch["producer_id"], batch["producer_epoch"], batch["base_sequence"])
    struct.pack_into(">qhi", data.data, layout.PRODUCER_ID, *producer)
    struct.pack_into(">I", data.data, layout.CRC, crc32c_range(data, layout.ATTRIBUTES, data.size))
