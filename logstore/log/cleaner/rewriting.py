"""What a cleaning keeps of a table of batches, and the new bytes (`Cleaner.cleanInto`, `MemoryRecords.filterTo`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...columns.batch_rebuilding import AS_IT_WAS, empty_batch, rebuild_batches
from ...columns.batch_table import BatchTable, BoolArray, ByteArray, Int64Array
from ...columns.decoded_records import Records
from ...columns.header_columns import columns_of_table
from ...columns.record_building import build_batch
from ...columns.record_table import RecordTable
from ...columns.record_windows import whole_batch_windows
from ...errors import InvalidRecordError
from ...folds.producer_state import newest_batches
from ...kernels.fold import producer_entries as fields
from ...kernels.scan import batches as scan
from ...layout import legacy
from ...layout.batch import DELETE_HORIZON_FLAG, MAGIC_V2, NO_PRODUCER_ID
from ...layout.legacy import timestamp_type
from ...model import Codec, TimestampType
from ..state import LogState
from .choice import require_going_on
from .offset_map import OffsetMap

_DROPPED = -1
_COPIED = 0  # index of the source that the table was scanned from


@dataclass(frozen=True, slots=True)
class Round:
    """State of one round, by which all its batches are judged.

    Attributes:
        offset_map: of the dirty part.
        end_offset: the batch that ends there stays, perhaps empty, so that the log's end is known: the end of the
            round, or since Kafka 4.4 the high watermark.
        now_ms: the time at which the round began.
        delete_retention_ms: how long tombstones and markers stay after all that they delete is gone.
        producers: those with a known last batch.
    """

    offset_map: OffsetMap
    end_offset: int
    now_ms: int
    delete_retention_ms: int
    producers: ActiveProducers


class ActiveProducers:
    """The last batch of each known producer: it stays, perhaps empty, because of the sequence it ends with.

    For a producer without a batch in its current epoch that is the marker (`lastRecordsOfActiveProducers`).
    """

    def __init__(self, state: LogState) -> None:
        with state.lock:
            require_going_on(state)
            entries = state.producers.state.buffers.entries
            # copies: appends go on changing the entries
            batches, has_batch = newest_batches(entries)
            last_offsets = np.where(has_batch, batches[:, fields.LAST_OFFSET], -1)
            columns = np.stack([entries[:, fields.PRODUCER_ID], last_offsets, entries[:, fields.PRODUCER_EPOCH]])
        self._producer_ids, self._last_offsets, self._epochs = columns[:, np.argsort(columns[0])]

    def has_last(self, table: BatchTable) -> BoolArray:
        """Return bool[len(table)]: whether each batch is the last of its producer."""
        if not self._producer_ids.size:
            return np.zeros(len(table), np.bool_)
        places = np.minimum(np.searchsorted(self._producer_ids, table.producer_id), self._producer_ids.size - 1)
        is_known = (self._producer_ids[places] == table.producer_id) & (table.producer_id > NO_PRODUCER_ID)
        last_offsets = self._last_offsets[places]
        is_marker = table.is_control & (self._epochs[places] == table.producer_epoch)
        is_last: BoolArray = is_known & np.where(last_offsets >= 0, table.last_offset == last_offsets, is_marker)
        return is_last


@dataclass(slots=True)
class Retention:
    """What is known of each batch of a table before its records are read (`checkBatchRetention`); bool[n] each.

    Attributes:
        is_discarded: no record of it stays.
        is_kept_empty: it stays even if no record does.
        has_empty_transaction: it is a marker whose transaction has no data left.
        has_horizon: it has a delete horizon.
        keeps_tombstones: because of the horizon, or of the age of the segment.
    """

    is_discarded: BoolArray
    is_kept_empty: BoolArray
    has_empty_transaction: BoolArray
    has_horizon: BoolArray
    keeps_tombstones: BoolArray


def retention(
    round_: Round, table: BatchTable, is_discardable: BoolArray, *, keeps_legacy_tombstones: bool
) -> Retention:
    """Judge the batches of a table.

    Args:
        is_discardable: of `CleanedTransactions.discardable`.
        keeps_legacy_tombstones: tombstones of magic 0 and 1 stay in this segment.
    """
    control, is_v2 = table.is_control, table.magic >= MAGIC_V2
    has_horizon = is_v2 & (table.attributes & DELETE_HORIZON_FLAG != 0)
    is_due = has_horizon & (table.column(scan.BASE_TIMESTAMP) <= round_.now_ms)
    return Retention(
        is_discarded=is_discardable & (is_due | ~control),
        is_kept_empty=round_.producers.has_last(table) & is_v2 | (table.last_offset + 1 == round_.end_offset),
        has_empty_transaction=is_discardable & control,
        has_horizon=has_horizon,
        keeps_tombstones=np.where(is_v2, ~is_due, keeps_legacy_tombstones),
    )


def kept_records(
    round_: Round, records: Records, is_control_batch: BoolArray, keeps_tombstones: BoolArray
) -> BoolArray:
    """Return bool[len(records)]: the records that stay (`shouldRetainRecord`).

    Args:
        is_control_batch, keeps_tombstones: bool[m] of the batches of the records.
    """
    has_value, has_key = records.value_size >= 0, records.key_size >= 0
    is_latest = round_.offset_map.is_latest(records)
    is_wanted = has_key & is_latest & (has_value | np.repeat(keeps_tombstones, records.batch_counts))
    is_behind = records.offset > round_.offset_map.latest_offset
    kept: BoolArray = is_wanted | is_behind | np.repeat(is_control_batch, records.batch_counts)
    return kept


def count_in_batches(window: Records, flags: BoolArray) -> Int64Array:
    """Return int64[m]: the number of flagged records in each batch."""
    sums = np.concatenate([[0], np.cumsum(flags)])
    counts: Int64Array = sums[window.batch_ends] - sums[window.batch_starts]
    return counts


class TableCleaning:
    """The kept batches of one table.

    Attributes:
        sources: buffers with batches; the first has them as they were.
        source, start, size: int64[n]: index of each row's source, or _DROPPED, and its bytes in there.
    """

    def __init__(self, round_: Round, data: ByteArray, table: BatchTable, retention: Retention) -> None:
        self.sources = [data]
        self.source = np.full(len(table), _DROPPED, np.int64)
        self.start = table.position.copy()
        self.size = table.size.copy()
        self._round = round_
        self._table = table
        self._retention = retention
        self._is_control = table.is_control

    def pieces(self) -> list[ByteArray]:
        """Return the bytes of what is kept, in order; adjacent ones as one piece."""
        retention = self._retention
        for window in whole_batch_windows(self.sources[_COPIED], self._table, np.flatnonzero(~retention.is_discarded)):
            batches = window.batch_rows
            kept = kept_records(self._round, window, self._is_control[batches], retention.keeps_tombstones[batches])
            self._place(window, kept)
        self._empty(np.flatnonzero((self.source == _DROPPED) & retention.is_kept_empty))
        rows = np.flatnonzero(self.source != _DROPPED)
        ends = self.start + self.size
        begins = (np.diff(self.source[rows]) != 0) | (self.start[rows[1:]] != ends[rows[:-1]])
        blocks = [block for block in np.split(rows, np.flatnonzero(begins) + 1) if block.size]
        return [self.sources[self.source[block[0]]][self.start[block[0]] : ends[block[-1]]] for block in blocks]

    def _place(self, window: Records, kept: BoolArray) -> None:
        """Choose a source for each batch of a window: dropped, copied or rebuilt."""
        rows, retention = window.batch_rows, self._retention
        kept_counts = count_in_batches(window, kept)
        has_tombstones = count_in_batches(window, kept & (window.value_size < 0)) > 0
        needs_horizon = (has_tombstones | retention.has_empty_transaction[rows]) & ~retention.has_horizon[rows]
        # a whole batch of magic 0 or 1 is rebuilt too: as v2, as in Kafka
        is_whole = (kept_counts == window.batch_counts) & ~needs_horizon & (self._table.magic[rows] >= MAGIC_V2)
        self.source[rows[(kept_counts > 0) & is_whole]] = _COPIED
        rebuilt = np.flatnonzero((kept_counts > 0) & ~is_whole)
        if rebuilt.size:
            horizon_ms = self._round.now_ms + self._round.delete_retention_ms
            self._rebuild(window, kept, rebuilt, np.where(needs_horizon[rebuilt], horizon_ms, AS_IT_WAS))

    def _rebuild(self, window: Records, kept: BoolArray, batches: Int64Array, horizons_ms: Int64Array) -> None:
        is_v2 = self._table.magic[window.batch_rows[batches]] >= MAGIC_V2
        for batch, horizon_ms in zip(batches[~is_v2].tolist(), horizons_ms[~is_v2].tolist(), strict=True):
            start, end = int(window.batch_starts[batch]), int(window.batch_ends[batch])
            row = window.batch_rows[batch]
            built = _upgraded(window, self._table, row, np.flatnonzero(kept[start:end]) + start, horizon_ms)
            self._take(np.array([row]), built, np.zeros(1, np.int64), np.array([built.size]))
        batches, horizons_ms = batches[is_v2], horizons_ms[is_v2]
        if batches.size:
            is_rebuilt = np.zeros(window.batch_rows.size, np.bool_)
            is_rebuilt[batches] = True
            # batches that are copied or dropped take no part
            kept = kept & np.repeat(is_rebuilt, window.batch_counts)
            rows, ends = window.batch_rows[batches], window.batch_ends[batches]
            new = rebuild_batches(window, self._table, rows, ends, kept, horizons_ms)
            self._take(rows, new.data, new.table.position, new.table.size)

    def _empty(self, rows: Int64Array) -> None:
        for row in rows.tolist():
            if self._table.magic[row] < MAGIC_V2:
                raise InvalidRecordError(
                    "Empty batches are only supported for magic v2 and above",
                    position=int(self._table.position[row]),
                    offset=int(self._table.base_offset[row]),
                    java_class="java.lang.IllegalStateException",
                )
            header = empty_batch(self._table, row)
            self._take(np.array([row]), header, np.zeros(1, np.int64), np.array([header.size]))

    def _take(self, rows: Int64Array, data: ByteArray, starts: Int64Array, sizes: Int64Array) -> None:
        self.source[rows], self.start[rows], self.size[rows] = len(self.sources), starts, sizes
        self.sources.append(data)


def _upgraded(records: RecordTable, table: BatchTable, row: int, kept: Int64Array, horizon_ms: int) -> ByteArray:
    """Build a v2 batch of what is kept of a message or wrapper of magic 0 or 1 (`buildRetainedRecordsInto`)."""
    magic, attributes = int(table.magic[row]), int(table.attributes[row])
    kind = timestamp_type(magic, attributes)
    is_log_append_time = kind is TimestampType.LOG_APPEND_TIME
    offsets = records.offset[kept]
    return build_batch(
        columns_of_table(records, kept),
        offset_deltas=offsets - offsets[0],
        base_offset=int(offsets[0]),
        codec=Codec(attributes & legacy.CODEC_MASK),
        timestamp_type=TimestampType.LOG_APPEND_TIME if is_log_append_time else TimestampType.CREATE_TIME,
        log_append_time=int(table.max_timestamp[row]) if is_log_append_time else -1,
        delete_horizon_ms=None if horizon_ms == AS_IT_WAS else horizon_ms,
    )
