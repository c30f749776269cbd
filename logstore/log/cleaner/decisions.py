"""Decisions on batches and records: what a cleaning keeps (`Cleaner.cleanInto`, `MemoryRecords.filterTo`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...columns.batch_table import BatchTable, BoolArray, Int64Array
from ...columns.decoded_records import Records
from ...folds.producer_state import newest_batches
from ...kernels.fold import producer_entries as fields
from ...kernels.scan import batches as scan
from ...layout.batch import DELETE_HORIZON_FLAG, MAGIC_V2, NO_PRODUCER_ID
from ..state import LogState
from .aborting import require_going_on
from .offset_map import OffsetMap


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


def kept_records(round_: Round, window: Records, is_control_batch: BoolArray, keeps_tombstones: BoolArray) -> BoolArray:
    """Return bool[len(window)]: the records that stay (`shouldRetainRecord`).

    Args:
        is_control_batch, keeps_tombstones: bool[m] of the batches of the window.
    """
    records = window
    has_value, has_key = records.value_size >= 0, records.key_size >= 0
    is_latest = round_.offset_map.is_latest(records)
    is_wanted = has_key & is_latest & (has_value | np.repeat(keeps_tombstones, window.batch_counts))
    is_behind = records.offset > round_.offset_map.latest_offset
    kept: BoolArray = is_wanted | is_behind | np.repeat(is_control_batch, window.batch_counts)
    return kept


def count_in_batches(window: Records, flags: BoolArray) -> Int64Array:
    """Return int64[m]: the number of flagged records in each batch."""
    sums = np.concatenate([[0], np.cumsum(flags)])
    counts: Int64Array = sums[window.batch_ends] - sums[window.batch_starts]
    return counts
