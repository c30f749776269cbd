"""Validation of a batch before a leader writes it, and assignment of its offsets (`LogValidator`).

The batch gets its offsets, the leader's epoch and, where the topic asks for it, another timestamp. Whether that is done
in place or the batch is built anew depends on the codec that the topic is stored in.
"""

from __future__ import annotations

import struct

import numpy as np

from ...columns.batch_fields import producer_problem
from ...columns.batch_table import Batches, BatchTable, ByteArray, scan
from ...columns.header_columns import columns_of_table
from ...columns.record_building import build_batch
from ...columns.record_table import BatchRecords, RecordTable
from ...errors import InvalidRecordError, RecordTooLargeError
from ...folds.producer_update import AppendOrigin
from ...kernels.decode.records import COLUMN_COUNT as RECORD_COLUMN_COUNT
from ...kernels.primitives import add64
from ...kernels.scan.crc32c import crc32c_range
from ...layout import batch as layout
from ...layout.batch import CONTROL_FLAG, LOG_APPEND_TIME_FLAG, MAGIC_V2, NO_PRODUCER_ID, NO_TIMESTAMP
from ...model import Codec, TimestampType
from .record_checks import RecordCheck
from .rules import ValidationRules

_KEPT_FLAGS = layout.CODEC_MASK | layout.TRANSACTIONAL_FLAG | layout.CONTROL_FLAG | layout.DELETE_HORIZON_FLAG


def validate(
    batches: Batches,
    *,
    origin: AppendOrigin,
    base_offset: int,
    leader_epoch: int,
    now_ms: int,
    rules: ValidationRules,
) -> Batches:
    """Check the records of one append, and return its batch as it is to be written, in memory of its own.

    Args:
        batches: of `analyze`, with the same origin, which is CLIENT or COORDINATOR.
        base_offset: the log end offset, which becomes that of the first record.
        now_ms: the broker's time.

    Raises:
        InvalidRecordError: more than one batch, an offset range, sequence or count that cannot be, control records of
            a client, records that do not parse or are too large, records without a key in a compacted topic.
        InvalidTimestampError: timestamps that are too far away, or that a client has no right to.
        DecompressionError: a stream that is broken or too large.
        RecordTooLargeError: the batch, built anew, is larger than `max.message.bytes`.
    """
    data, table = batches
    batch = _only_batch(table)
    _require_consistent(batch, origin, rules)
    source = Codec(batch["attributes"] & layout.CODEC_MASK)
    target = rules.target_codec(source)
    is_kept = source is target or (source is Codec.NONE and bool(batch["attributes"] & CONTROL_FLAG))
    check = _checked(data, table, now_ms, rules, is_skipped=bool(source) and is_kept)
    # offsets of compressed records must be 0, 1, 2, …; plain ones are stamped whatever they are (`LogValidator`)
    if (source or target) and not check.is_gapless:
        if source is target:
            raise _unreadable(rules)
        is_kept = False
    max_timestamp, log_append_time = check.max_timestamp, NO_TIMESTAMP
    if rules.timestamp_type is TimestampType.LOG_APPEND_TIME:
        max_timestamp = log_append_time = now_ms
    if is_kept:
        written = np.array(data)
        stamped_base = add64(base_offset + check.count - 1, -batch["last_offset_delta"])
        _stamp(written, stamped_base, leader_epoch, rules.timestamp_type, max_timestamp)
    else:
        records = _all_records(data, table)
        written = recompress(records, table, target, base_offset, leader_epoch, log_append_time, rules)
    table = scan(written)
    table.is_valid[:] = 1
    return Batches(written, table)


def _checked(
    data: ByteArray, table: BatchTable, now_ms: int, rules: ValidationRules, *, is_skipped: bool
) -> RecordCheck:
    """Check the records of the one batch; `is_skipped`: as Kafka reads them that only looks at offsets and sizes."""
    check = RecordCheck(
        rules,
        now_ms,
        is_log_append_time=bool(table.attributes[0] & LOG_APPEND_TIME_FLAG),
        record_class="PartialDefaultRecord" if is_skipped else "DefaultRecord",
    )
    if table.record_count[0] != 0:  # a batch without any is not even opened
        batch = BatchRecords(data, table, 0, record_size_max=rules.record_size_max, skips=is_skipped)
        for records in batch.chunks():
            check.take(records)
    check.require_none()
    return check


def _all_records(data: ByteArray, table: BatchTable) -> RecordTable:
    """Read the records, which have been found to be right, in one piece."""
    matrix = np.empty((RECORD_COLUMN_COUNT, max(0, int(table.record_count[0]))), np.int64)
    chunks = list(BatchRecords(data, table, 0).chunks(matrix)) if matrix.size else []
    return chunks[0] if chunks else RecordTable(data, matrix, 0)


def _unreadable(rules: ValidationRules) -> InvalidRecordError:
    """Return the error of compressed records with other offsets: Kafka tries to rebuild them, but skipped the keys."""
    return InvalidRecordError(
        "key is skipped in PartialDefaultRecord",
        expected="offsets of compressed records to be 0, 1, 2, …",
        advice=f"the producer numbers its records wrongly; no Kafka 4 takes them in {rules.topic_partition}",
        java_class="java.lang.UnsupportedOperationException",
    )


def _only_batch(table: BatchTable) -> dict[str, int]:
    if not len(table):
        raise InvalidRecordError("Record batch has no batches at all")
    batch = table.row(0)
    if batch["magic"] < MAGIC_V2:
        raise InvalidRecordError(
            f"A leader takes record batches of magic {MAGIC_V2} only",
            expected=f"magic {MAGIC_V2}",
            found=batch["magic"],
            advice="no client of Kafka 4 sends older ones, and its brokers refuse them",
        )
    if len(table) > 1:
        raise InvalidRecordError("Compressed outer record has more than one batch", expected=1, found=len(table))
    return batch


def _require_consistent(batch: dict[str, int], origin: AppendOrigin, rules: ValidationRules) -> None:
    """Check that the header of a client's batch is consistent (`LogValidator.validateBatch`)."""
    if origin is not AppendOrigin.CLIENT:
        return
    first, last = batch["base_offset"], add64(batch["base_offset"], batch["last_offset_delta"])
    where = f"in topic partition {rules.topic_partition}"
    if last - first + 1 <= 0:
        raise InvalidRecordError(f"Batch has an invalid offset range: [{first}, {last}] {where}")
    count = batch["record_count"]
    if count <= 0:
        raise InvalidRecordError(f"Invalid reported count for record batch: {count} {where}")
    if last - first + 1 != count:
        raise InvalidRecordError(
            f"Inconsistent batch offset range [{first}, {last}] and count of records {count} {where}"
        )
    if batch["attributes"] & CONTROL_FLAG:
        raise InvalidRecordError(f"Clients are not allowed to write control records {where}")
    if batch["producer_id"] > NO_PRODUCER_ID and batch["base_sequence"] < 0:
        raise InvalidRecordError(
            f"Invalid sequence number {batch['base_sequence']} in record batch with producerId "
            f"{batch['producer_id']} {where}"
        )


def _stamp(
    data: ByteArray, base_offset: int, leader_epoch: int, timestamp_type: TimestampType, max_timestamp: int
) -> None:
    """Put offset, epoch and timestamp into the one batch of `data`, uint8, writable.

    The checksum is computed anew if timestamp or its type become others; then attribute bits without a meaning go too.
    """
    batch = data.data
    struct.pack_into(">q", batch, layout.BASE_OFFSET, base_offset)
    struct.pack_into(">i", batch, layout.PARTITION_LEADER_EPOCH, leader_epoch)
    (attributes,) = struct.unpack_from(">h", batch, layout.ATTRIBUTES)
    (old_max_timestamp,) = struct.unpack_from(">q", batch, layout.MAX_TIMESTAMP)
    is_log_append_time = timestamp_type is TimestampType.LOG_APPEND_TIME
    if bool(attributes & layout.LOG_APPEND_TIME_FLAG) == is_log_append_time and old_max_timestamp == max_timestamp:
        return
    flags = attributes & _KEPT_FLAGS | (layout.LOG_APPEND_TIME_FLAG if is_log_append_time else 0)
    struct.pack_into(">h", batch, layout.ATTRIBUTES, flags)
    struct.pack_into(">q", batch, layout.MAX_TIMESTAMP, max_timestamp)
    struct.pack_into(">I", batch, layout.CRC, crc32c_range(data, layout.ATTRIBUTES, data.size))


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
