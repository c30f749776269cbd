"""First check of an append: whole batches, sound and in order (`UnifiedLog.analyzeAndValidateRecords`).

Bytes behind the last whole batch are left out without an error (`ByteBufferLogInputStream`).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import numpy as np

from ...columns.batch_table import Batches, BatchTable, ByteArray, scan
from ...columns.legacy import legacy_entry, read_legacy_records
from ...columns.record_table import BatchRecords, unknown_codec
from ...errors import (
    CorruptRecordError,
    InvalidRecordError,
    OffsetsOutOfOrderError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
    UnexpectedAppendOffsetError,
)
from ...folds.producer_update import AppendOrigin
from ...kernels.primitives import add64
from ...kernels.scan import batches as fields
from ...layout import legacy
from ...layout.batch import CODEC_MASK, HEADER_SIZE, HEADER_UP_TO_MAGIC_SIZE, LENGTH_MIN, LOG_OVERHEAD_SIZE, MAGIC_V2
from ...model import Codec
from .rules import ValidationRules

_LAST_OFFSET_DELTA_END = 27  # bytes of a v2 header up to and with the last offset delta
_INT_MAX = 2**31 - 1
NUMBERING = (AppendOrigin.CLIENT, AppendOrigin.COORDINATOR)  # origins whose batches get their offsets from the log


def analyze(data: ByteArray, *, origin: AppendOrigin, leader_epoch: int, rules: ValidationRules) -> Batches:
    """Check headers and checksums of the batches to be appended.

    Args:
        data: uint8, 1-D, contiguous, may be read-only: consecutive batches.
        origin: CLIENT and COORDINATOR send batches without offsets, REPLICATION and RAFT_LEADER with them.
        leader_epoch: of the leader that appends, or of the replica.

    Returns:
        The batches to be appended: none if `data` has no whole one.

    Raises, with `position` of the batch:
        CorruptRecordError: an impossible length or magic, or a wrong checksum.
        InvalidRecordError: a client's batch with offsets, or a Raft leader's of another epoch.
        RecordTooLargeError: a batch above `max.message.bytes`, unless it is replicated.
        UnsupportedCompressionTypeError: a codec unknown to Kafka.
        OffsetsOutOfOrderError: batches with offsets that do not increase.
    """
    table = _scanned(data)
    last_offset, count = -1, 0
    is_of_later_leader = False
    for row in range(len(table)):
        batch = table.row(row)
        _require_magic(batch["magic"], batch["position"])
        _require_origin(batch, origin, leader_epoch, rules)
        if origin is AppendOrigin.REPLICATION and batch["partition_leader_epoch"] > max(leader_epoch, -1):
            is_of_later_leader = True
        if is_of_later_leader:
            continue  # a replica leaves out what a later leader wrote, and all that follows
        batch_last_offset = _last_offset(batch)
        # compared before it is replaced by the new one
        is_in_order, last_offset = last_offset < batch_last_offset, batch_last_offset
        _require_sound(data, batch, origin, rules)
        if (codec_id := batch["attributes"] & CODEC_MASK) > Codec.ZSTD:
            raise unknown_codec(codec_id, batch["position"])
        count += 1
        # behind the check of the batch: Kafka reports damage before it reports the order
        if not is_in_order and origin not in NUMBERING:
            raise OffsetsOutOfOrderError(
                f"Out of order offsets found in append to {rules.topic_partition}: "
                f"{','.join(map(str, _record_offsets(data, table)))}",
                position=batch["position"],
            )
    _require_no_damage(data, table.next_position)
    table.count = count
    table.next_position = int(table.position[-1] + table.size[-1]) if count else 0
    return Batches(data[: table.next_position], table)


def require_room(size: int, rules: ValidationRules) -> None:
    """Raise RecordBatchTooLargeError if an append of `size` bytes is larger than a segment may be."""
    if size > rules.segment_size_max:
        raise RecordBatchTooLargeError(
            f"Message batch size is {size} bytes in append to partition {rules.topic_partition}, which exceeds the "
            f"maximum configured segment size of {rules.segment_size_max}."
        )


def require_continuation(
    data: ByteArray, table: BatchTable, *, log_end_offset: int, log_start_offset: int, rules: ValidationRules
) -> None:
    """Raise UnexpectedAppendOffsetError if batches with offsets begin before the end of the log.

    Args:
        data, table: what `analyze` was given, and the table that it returned.
    """
    # the first offset of magic 0 and 1 is not known without decompressing
    first, which = first_offset(table), "First offset"
    if first < 0:
        first, which = int(table.last_offset[0]), "Last offset of the first batch"
    if first >= log_end_offset:
        return
    offsets = [offset for offset, _ in zip(_record_offsets(data, _scanned(data)), range(10), strict=False)]
    raise UnexpectedAppendOffsetError(
        f"Unexpected offset in append to {rules.topic_partition}. {which} {first} is less than the next offset "
        f"{log_end_offset}. First 10 offsets in append: {', '.join(map(str, offsets))}, last offset in append: "
        f"{int(table.last_offset[-1])}. Log start offset = {log_start_offset}",
        offset=first,
    )


def first_offset(table: BatchTable) -> int:
    """Return the first offset of batches, at least one; -1 if that is of magic 0 or 1."""
    return int(table.base_offset[0]) if table.magic[0] == MAGIC_V2 else -1


def _scanned(data: ByteArray) -> BatchTable:
    """Scan all whole batches, with checksums; the last one too if it is shorter than its header."""
    table = scan(data, check_crc=True)
    if table.status == fields.HEADER_BEYOND_FILE:
        # zeros behind the data let the scan read the header of a batch that is too short
        padded = np.concatenate([data, np.zeros(HEADER_SIZE, np.uint8)])
        table = scan(padded, 0, data.size, check_crc=True)
    return table


def _require_no_damage(data: ByteArray, position: int) -> None:
    """Check the beginning of a batch that is cut off, as far as it is there."""
    left = data[position : position + HEADER_UP_TO_MAGIC_SIZE].tobytes()
    if len(left) < LOG_OVERHEAD_SIZE:
        return
    length = int.from_bytes(left[8:LOG_OVERHEAD_SIZE], "big", signed=True)
    if length < LENGTH_MIN:
        raise CorruptRecordError(
            f"Record size {length} is less than the minimum record overhead ({LENGTH_MIN})",
            position=position,
            expected=f"a batch length of at least {LENGTH_MIN}",
            found=length,
        )
    if len(left) == HEADER_UP_TO_MAGIC_SIZE:
        _require_magic(int.from_bytes(left[-1:], "big", signed=True), position)
        if length > _INT_MAX - LOG_OVERHEAD_SIZE:
            size = length + LOG_OVERHEAD_SIZE - 2**32
            raise CorruptRecordError(
                f"newLimit < 0: ({size} < 0)",
                position=position,
                found=length,
                java_class="java.lang.IllegalArgumentException",
            )


def _require_magic(magic: int, position: int) -> None:
    if not 0 <= magic <= MAGIC_V2:
        raise CorruptRecordError(
            f"Invalid magic found in record: {magic}", position=position, expected=f"0 to {MAGIC_V2}", found=magic
        )


def _require_origin(batch: dict[str, int], origin: AppendOrigin, leader_epoch: int, rules: ValidationRules) -> None:
    epoch, base_offset = batch["partition_leader_epoch"], batch["base_offset"]
    if origin is AppendOrigin.RAFT_LEADER and epoch != leader_epoch:
        raise InvalidRecordError(
            f"Append from Raft leader did not set the batch epoch correctly, expected {leader_epoch} but the batch "
            f"has {epoch}",
            position=batch["position"],
        )
    if origin is AppendOrigin.CLIENT and batch["magic"] == MAGIC_V2 and base_offset != 0:
        raise InvalidRecordError(
            f"The baseOffset of the record batch in the append to {rules.topic_partition} should be 0, but it is "
            f"{base_offset}",
            position=batch["position"],
        )


def _last_offset(batch: dict[str, int]) -> int:
    if batch["magic"] == MAGIC_V2 and batch["size"] < _LAST_OFFSET_DELTA_END:
        raise CorruptRecordError(
            None,
            position=batch["position"],
            expected=f"a header of {HEADER_SIZE} bytes",
            found=batch["size"],
            java_class="java.lang.IndexOutOfBoundsException",
        )
    last_offset: int = add64(batch["base_offset"], batch["last_offset_delta"])
    return last_offset


def _require_sound(data: ByteArray, batch: dict[str, int], origin: AppendOrigin, rules: ValidationRules) -> None:
    position, size = batch["position"], batch["size"]
    if origin is not AppendOrigin.REPLICATION and size > rules.max_message_bytes:
        raise RecordTooLargeError(
            f"The record batch size in the append to {rules.topic_partition} is {size} bytes which exceeds the "
            f"maximum configured value of {rules.max_message_bytes}).",
            position=position,
        )
    is_valid = batch["is_valid"] == 1
    if batch["magic"] < MAGIC_V2:
        is_valid = zlib.crc32(data[position + legacy.MAGIC : position + size].data) == batch["crc"]
    if not is_valid:
        raise CorruptRecordError(
            f"Record is corrupt (stored crc = {batch['crc']}) in topic partition {rules.topic_partition}.",
            position=position,
        )


def _record_offsets(data: ByteArray, table: BatchTable) -> Iterator[int]:
    """Yield the offsets of all records in order; raise what reading them raises."""
    for row in range(len(table)):
        magic = int(table.magic[row])
        _require_magic(magic, int(table.position[row]))
        if magic == MAGIC_V2:
            for records in BatchRecords(data, table, row).chunks():
                yield from records.offset.tolist()
        else:
            yield from (record.offset for record in read_legacy_records(legacy_entry(data, table, row)))
    _require_no_damage(data, table.next_position)
