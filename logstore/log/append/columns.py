"""Requests made of batches that are built here: columns, the fast way in for many records, and compressed records.

The batches are built with their final offsets and compressed once, with the codec of the topic, so nothing is copied,
decompressed, read or checked twice. The bytes are those that a leader writes for a producer with this `batch.size`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ...columns.batch_fields import BatchFieldArguments, BatchFields, SentFieldArguments
from ...columns.batch_table import Batches, BatchTable, ByteArray, Int64Array
from ...columns.record_building import build, build_batches, build_batches_in_turn
from ...columns.record_columns import RecordColumns
from ...errors import RecordTooLargeError
from ...folds.producer_update import UNKNOWN_TRANSACTION_VERSION, AppendOrigin
from ...folds.verification import VerificationGuard
from ...kernels.append.structs import BUILT
from ...kernels.rules import is_timestamp_in_range
from ...kernels.scan import batches as fields
from ...layout.batch import BASE_OFFSET, NO_TIMESTAMP
from ...model import Codec, TimestampType
from ..state import LogState
from .analyze import analyze
from .kernel_request import KernelRequest
from .request import AppendInfo
from .rules import ValidationRules
from .validate import validate

COLUMNS_BATCH_SIZE = 1 << 20  # bytes


class BuiltRequest(NamedTuple):
    """A client's batch that was built here for the log's end, so that only its offset may have to change.

    Attributes:
        data: uint8, writable: its bytes.
        row: int64[scan.COLUMN_COUNT]: its header fields.
    """

    data: ByteArray
    row: Int64Array
    leader_epoch: int
    guard: VerificationGuard | None
    origin: AppendOrigin = AppendOrigin.CLIENT
    transaction_version: int = UNKNOWN_TRANSACTION_VERSION

    def write_to(self, request: KernelRequest, now_ms: int) -> bytes | None:
        request.hold("built", self.data)
        request.struct.size, request.row[:, 0] = self.data.size, self.row
        verification = request.verification_of(self.row[fields.PRODUCER_ID], self.guard)
        return b"" if request.put(BUILT, now_ms, self.leader_epoch, self.origin, verification) else None

    def numbered(self, state: LogState, now_ms: int) -> Batches:
        """See `AppendRequest`; the offset differs from the built one if earlier batches were duplicates."""
        table = BatchTable(self.row.reshape(-1, 1).copy(), 1, fields.END, self.data.size)
        table.matrix[fields.POSITION, 0], table.matrix[fields.BASE_OFFSET, 0] = 0, state.log_end_offset
        self.data[BASE_OFFSET : BASE_OFFSET + 8] = np.frombuffer(state.log_end_offset.to_bytes(8, "big"), np.uint8)
        return Batches(self.data, table)


def column_requests(
    state: LogState,
    columns: RecordColumns,
    batch_size: int,
    leader_epoch: int,
    guard: VerificationGuard | None,
    sent: SentFieldArguments,
) -> Iterator[BuiltRequest]:
    """Yield the batches of `PartitionLog.append_columns`; the caller appends each before it asks for the next."""
    if not len(columns):
        return
    now_ms, rules = state.host.now_ms(), state.rules
    arguments = _header_fields(state, now_ms, leader_epoch, sent)
    batch_size = min(batch_size, rules.max_message_bytes, rules.segment_size_max)
    stamped = columns.stamped(now_ms)
    if not _are_records_welcome(columns, rules, now_ms, sent):
        as_sent = build_batches(stamped, batch_size=batch_size, **_as_sent(arguments, sent))
        _refuse(as_sent, leader_epoch, rules, now_ms)
    for built in _built(stamped, batch_size, arguments, rules, lambda: state.active.size):
        for row in range(len(built.table)):
            batch = _batch(built.data, built.table, row)
            yield BuiltRequest(batch, built.table.matrix[:, row], leader_epoch, guard)


def built_request(
    state: LogState,
    columns: RecordColumns,
    now_ms: int,
    leader_epoch: int,
    guard: VerificationGuard | None,
    sent: SentFieldArguments,
    origin: AppendOrigin,
) -> BuiltRequest:
    """Return all rows, at least one, as one batch for the log's end; raises as `PartitionLog.append_records`."""
    rules, arguments = state.rules, _header_fields(state, now_ms, leader_epoch, sent)
    if not _are_records_welcome(columns, rules, now_ms, sent):
        _refuse(build(columns, BatchFields(**_as_sent(arguments, sent))), leader_epoch, rules, now_ms)
    built = build(columns, BatchFields(**arguments))
    _require_sizes(built.table.size, rules)
    return BuiltRequest(built.data, built.table.matrix[:, 0], leader_epoch, guard, origin)


def _header_fields(state: LogState, now_ms: int, leader_epoch: int, sent: SentFieldArguments) -> BatchFieldArguments:
    """Return the header fields of a batch for the log's end, as the topic stores it."""
    rules = state.rules
    codec, level = sent.get("codec", Codec.NONE), sent.get("level")
    target = rules.target_codec(codec)
    return {
        **sent,
        "is_control": False,
        "delete_horizon_ms": None,
        "base_offset": state.log_end_offset,
        "codec": target,
        "level": rules.level(target) if level is None or target is not codec else level,
        "timestamp_type": rules.timestamp_type,
        "log_append_time": now_ms if rules.timestamp_type is TimestampType.LOG_APPEND_TIME else NO_TIMESTAMP,
        "partition_leader_epoch": leader_epoch,
    }


def _as_sent(arguments: BatchFieldArguments, sent: SentFieldArguments) -> BatchFieldArguments:
    return {
        **arguments,
        "codec": sent.get("codec", Codec.NONE),
        "level": sent.get("level"),
        "base_offset": 0,
        "timestamp_type": TimestampType.CREATE_TIME,
        "log_append_time": NO_TIMESTAMP,
    }


def _built(
    columns: RecordColumns,
    batch_size: int,
    arguments: BatchFieldArguments,
    rules: ValidationRules,
    position: Callable[[], int],
) -> Iterable[Batches]:
    """Build compressed batches all at once, as only then their sizes are known; others a few at a time."""
    if arguments["codec"] is not Codec.NONE:
        built = build_batches(columns, batch_size=batch_size, **arguments)
        _require_sizes(built.table.size, rules)
        return [built]
    sizes, parts = build_batches_in_turn(columns, batch_size=batch_size, position=position, **arguments)
    _require_sizes(sizes, rules)
    return parts


def answer_to_all(infos: Sequence[AppendInfo], log_start_offset: int) -> AppendInfo:
    """Return one answer to the appends of all batches, see `PartitionLog.append_columns`."""
    if not infos:
        return AppendInfo(-1, -1, NO_TIMESTAMP, NO_TIMESTAMP, log_start_offset, 0, False)
    return infos[0]._replace(
        last_offset=infos[-1].last_offset,
        max_timestamp=max(info.max_timestamp for info in infos),
        record_count=sum(info.record_count for info in infos),
        is_duplicate=all(info.is_duplicate for info in infos),
    )


def _require_sizes(sizes: Int64Array, rules: ValidationRules) -> None:
    size = int(sizes.max())
    if size > rules.max_message_bytes:
        raise RecordTooLargeError(
            f"The record batch size in the append to {rules.topic_partition} is {size} bytes which exceeds the maximum "
            f"configured value of {rules.max_message_bytes})."
        )


def _are_records_welcome(columns: RecordColumns, rules: ValidationRules, now_ms: int, sent: SentFieldArguments) -> bool:
    """Return whether every record surely has the key, the timestamp and the size that the topic demands."""
    if rules.limits_records(sent.get("codec", Codec.NONE)):
        return False
    if rules.is_compacted and (columns.keys is None or bool(columns.keys.is_null.any())):
        return False
    if rules.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return True
    times = np.array([columns.timestamp_ms]) if columns.timestamps is None else columns.timestamps
    if int(times.min()) < 0:
        # -1 means no timestamp, and is not checked
        times = times[times != NO_TIMESTAMP]
    if not times.size:
        return True
    limits = rules.timestamp_before_max_ms, rules.timestamp_after_max_ms
    return all(is_timestamp_in_range(int(time), now_ms, *limits) for time in (times.min(), times.max()))


def _refuse(built: Batches, leader_epoch: int, rules: ValidationRules, now_ms: int) -> None:
    """Validate batches as a leader does when a client sends them; raises the error of the first refused record."""
    _require_sizes(built.table.size, rules)
    for row in range(len(built.table)):
        batch = _batch(built.data, built.table, row)
        batch[BASE_OFFSET : BASE_OFFSET + 8] = 0
        validate(
            analyze(batch, origin=AppendOrigin.CLIENT, leader_epoch=leader_epoch, rules=rules),
            origin=AppendOrigin.CLIENT,
            base_offset=0,
            leader_epoch=leader_epoch,
            now_ms=now_ms,
            rules=rules,
        )


def _batch(data: ByteArray, table: BatchTable, row: int) -> ByteArray:
    position = int(table.position[row])
    return data[position : position + int(table.size[row])]
