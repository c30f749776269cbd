"""Entries of a producer state as the rows of a `.snapshot`, and back (`readSnapshot`, `writeSnapshot`)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ..columns.batch_table import Int64Array
from ..kernels import producer_entries as fields
from ..kernels.crc32c import crc32c_range
from ..layout import producer_snapshot
from ..layout.producer_snapshot import ProducerSnapshot


def rows_of(snapshot: ProducerSnapshot, is_wanted: npt.NDArray[np.bool_]) -> Int64Array:
    """int64[n, ENTRY_WIDTH]: the wanted entries in file order; of two with one id the later, in the earlier's place."""
    wanted = np.flatnonzero(is_wanted)
    ids = snapshot.producer_ids[wanted]
    _, first = np.unique(ids, return_index=True)
    _, last = np.unique(ids[::-1], return_index=True)
    order = np.argsort(first)
    wanted = wanted[ids.size - 1 - last[order]]
    rows = np.zeros((wanted.size, fields.ENTRY_WIDTH), np.int64)
    first_offsets = snapshot.current_txn_first_offsets[wanted]
    rows[:, fields.PRODUCER_ID] = snapshot.producer_ids[wanted]
    rows[:, fields.PRODUCER_EPOCH] = snapshot.producer_epochs[wanted]
    rows[:, fields.COORDINATOR_EPOCH] = snapshot.coordinator_epochs[wanted]
    rows[:, fields.LAST_TIMESTAMP] = snapshot.timestamps[wanted]
    rows[:, fields.TXN_FIRST_OFFSET] = np.where(first_offsets >= 0, first_offsets, fields.NONE)
    rows[:, fields.BATCH_COUNT] = snapshot.last_offsets[wanted] >= 0
    rows[:, fields.BATCHES + fields.LAST_SEQUENCE] = snapshot.last_sequences[wanted]
    rows[:, fields.BATCHES + fields.LAST_OFFSET] = snapshot.last_offsets[wanted]
    rows[:, fields.BATCHES + fields.OFFSET_DELTA] = snapshot.offset_deltas[wanted]
    rows[:, fields.BATCHES + fields.TIMESTAMP] = snapshot.timestamps[wanted]
    return rows


def snapshot_bytes(rows: Int64Array) -> bytes:
    """The file that holds these entries, int64[n, ENTRY_WIDTH], in their order."""
    count = len(rows)
    stored = np.zeros(count, producer_snapshot.ENTRY_DTYPE)
    batches = rows[:, fields.BATCHES :].reshape(count, fields.BATCH_COUNT_MAX, fields.BATCH_WIDTH)
    newest = (rows[:, fields.BATCH_START] + rows[:, fields.BATCH_COUNT] - 1) % fields.BATCH_COUNT_MAX
    batch = batches[np.arange(count), newest]
    has_batch = rows[:, fields.BATCH_COUNT] > 0
    first_offsets = rows[:, fields.TXN_FIRST_OFFSET]
    stored["producer_id"] = rows[:, fields.PRODUCER_ID]
    stored["producer_epoch"] = rows[:, fields.PRODUCER_EPOCH]
    stored["last_sequence"] = np.where(has_batch, batch[:, fields.LAST_SEQUENCE], -1)
    stored["last_offset"] = np.where(has_batch, batch[:, fields.LAST_OFFSET], -1)
    stored["offset_delta"] = np.where(has_batch, batch[:, fields.OFFSET_DELTA], 0)
    stored["timestamp"] = rows[:, fields.LAST_TIMESTAMP]
    stored["coordinator_epoch"] = rows[:, fields.COORDINATOR_EPOCH]
    stored["current_txn_first_offset"] = np.where(first_offsets == fields.NONE, -1, first_offsets)
    checked = count.to_bytes(4, "big") + stored.tobytes()
    crc = crc32c_range(np.frombuffer(checked, np.uint8), 0, len(checked))
    return producer_snapshot.VERSION.to_bytes(2, "big") + crc.to_bytes(4, "big") + checked
