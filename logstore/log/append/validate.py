"""Validation of a batch before a leader writes it, and assignment of its offsets (`LogValidator`).

The batch gets its offsets, the leader's epoch and, where the topic asks for it, another timestamp. Whether that is done
in place or the batch is built anew depends on the codec that the topic is stored in.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from ...columns.batch_table import BatchTable, ByteArray, scan
from ...columns.record_table import BatchRecords, RecordTable, record_error
from ...errors import InvalidRecordError, LogstoreError
from ...folds.producer_update import AppendOrigin
from ...kernels.decode import records as fields
from ...kernels.decode.records import COLUMN_COUNT as RECORD_COLUMN_COUNT
from ...kernels.primitives import add64
from ...kernels.scan.crc32c import crc32c_range
from ...layout import batch as layout
from ...layout.batch import CONTROL_FLAG, LOG_APPEND_TIME_FLAG, MAGIC_V2, NO_PRODUCER_ID, NO_TIMESTAMP
from ...model import Codec, TimestampType
from .analyze import Analyzed
from .recompress import recompress
from .record_checks import RecordCheck
from .rules import ValidationRules

_KEPT_FLAGS = layout.CODEC_MASK | layout.TRANSACTIONAL_FLAG | layout.CONTROL_FLAG | layout.DELETE_HORIZON_FLAG
_PREMATURE_END = "Incorrect declared batch size, premature EOF reached"
_BAD_STRUCTURE = "Found invalid record structure"
_MESSAGES = {
    fields.LENGTH_TOO_LONG: _PREMATURE_END,
    fields.STRUCTURE_TOO_LONG: _BAD_STRUCTURE,
    fields.ENDED_IN_LENGTH: _PREMATURE_END,
    fields.ENDED_IN_STRUCTURE: _BAD_STRUCTURE,
    fields.ENDED_IN_FIELD: "Reached end of input stream before skipping all bytes. Remaining bytes:{detail}",
}
_ENDED = (fields.ENDED_IN_LENGTH, fields.ENDED_IN_STRUCTURE, fields.ENDED_IN_FIELD)


@dataclass(slots=True)
class Validated:
    """A batch as it is to be written.

    Attributes:
        data: uint8, 1-D, writable: its bytes, none of them the caller's.
        table: one row, of `data`.
        first_offset, last_offset: of the log; the next append begins behind the last.
        max_timestamp: of its records, in ms; -1 none.
        log_append_time: when a LogAppendTime topic took it, in ms, else -1.
    """

    data: ByteArray
    table: BatchTable
    first_offset: int
    last_offset: int
    max_timestamp: int
    log_append_time: int


def validate(
    data: ByteArray,
    analyzed: Analyzed,
    *,
    origin: AppendOrigin,
    base_offset: int,
    leader_epoch: int,
    now_ms: int,
    rules: ValidationRules,
) -> Validated:
    """Check the records of one append and make the batch that is to be written.

    Args:
        data, analyzed: of `analyze`, with the same origin, which is CLIENT or COORDINATOR.
        base_offset: the log end offset, which becomes that of the first record.
        now_ms: the broker's time.

    Raises:
        InvalidRecordError: more than one batch, an offset range, sequence or count that cannot be, control records of
            a client, records that do not parse or are too large, records without a key in a compacted topic.
        InvalidTimestampError: timestamps that are too far away, or that a client has no right to.
        DecompressionError: a stream that is broken or too large.
        RecordTooLargeError: the batch, built anew, is larger than `max.message.bytes`.
    """
    batch = _only_batch(analyzed)
    _require_consistent(batch, origin, rules)
    source, target = analyzed.source_codec, rules.target_codec(analyzed.source_codec)
    is_kept = source is target or (source is Codec.NONE and bool(batch["attributes"] & CONTROL_FLAG))
    check = _checked(data, analyzed.table, now_ms, rules, is_skipped=bool(source) and is_kept)
    # offsets of compressed records must be 0, 1, 2, …; plain ones are stamped whatever they are (`LogValidator`)
    if (source or target) and not check.is_gapless:
        if source is target:
            raise _unreadable(rules)
        is_kept = False
    max_timestamp, log_append_time = check.max_timestamp, NO_TIMESTAMP
    if rules.timestamp_type is TimestampType.LOG_APPEND_TIME:
        max_timestamp = log_append_time = now_ms
    last_offset = base_offset + check.count - 1
    if is_kept:
        written = np.array(data[: analyzed.valid_size])
        stamped_base = add64(last_offset, -batch["last_offset_delta"])
        _stamp(written, stamped_base, leader_epoch, rules.timestamp_type, max_timestamp)
    else:
        records = _all_records(data, analyzed.table)
        written = recompress(records, analyzed.table, target, base_offset, leader_epoch, log_append_time, rules)
    return Validated(written, _table_of(written), base_offset, last_offset, max_timestamp, log_append_time)


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
        reading = SkippedRecords if is_skipped else BatchRecords
        batch = reading(data, table, 0, record_size_max=rules.record_size_max)
        for records in batch.chunks():
            check.take(records)
    check.require_none()
    return check


def _all_records(data: ByteArray, table: BatchTable) -> RecordTable:
    """Read the records, which have been found to be right, in one piece."""
    matrix = np.empty((RECORD_COLUMN_COUNT, max(0, int(table.record_count[0]))), np.int64)
    chunks = list(BatchRecords(data, table, 0).chunks(matrix)) if matrix.size else []
    return chunks[0] if chunks else RecordTable(data, matrix, 0)


def _table_of(data: ByteArray) -> BatchTable:
    table = scan(data)
    table.is_valid[:] = 1
    return table


def _unreadable(rules: ValidationRules) -> InvalidRecordError:
    """Return the error of compressed records with other offsets: Kafka tries to rebuild them, but skipped the keys."""
    return InvalidRecordError(
        "key is skipped in PartialDefaultRecord",
        expected="offsets of compressed records to be 0, 1, 2, …",
        advice=f"the producer numbers its records wrongly; no Kafka 4 takes them in {rules.topic_partition}",
        java_class="java.lang.UnsupportedOperationException",
    )


def _only_batch(analyzed: Analyzed) -> dict[str, int]:
    if not len(analyzed.table):
        raise InvalidRecordError("Record batch has no batches at all")
    batch = analyzed.table.row(0)
    if batch["magic"] < MAGIC_V2:
        raise InvalidRecordError(
            f"A leader takes record batches of magic {MAGIC_V2} only",
            expected=f"magic {MAGIC_V2}",
            found=batch["magic"],
            advice="no client of Kafka 4 sends older ones, and its brokers refuse them",
        )
    if len(analyzed.table) > 1:
        raise InvalidRecordError(
            "Compressed outer record has more than one batch", expected=1, found=len(analyzed.table)
        )
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


class SkippedRecords(BatchRecords):
    """The records of one compressed v2 batch, with the fields that a leader checks: offset, timestamp and sizes.

    As in Kafka, a record's length is only bounded, so that a leader accepts records that no consumer can read.
    """

    __slots__ = ()

    STREAM_SOURCE = fields.SKIPPED_STREAM

    def decode_error(self, status: int) -> LogstoreError:
        """Return the error of a failed read, with Kafka's message."""
        if status not in _MESSAGES:
            return record_error(status, self.state)
        if status in _ENDED and self._outcome is not None and self._outcome.error is not None:
            return self._outcome.error
        return InvalidRecordError(
            _MESSAGES[status].format(detail=int(self.state[fields.DETAIL])),
            position=int(self.state[fields.NEXT_POSITION]),
        )
