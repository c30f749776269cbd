"""Every fold kernel alone.

A step must cost what memory costs, not more, however many producers there are: compare `test_fold_producers[1]` with
the others.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.floors import copying, reading
from benchmarks.measured import Growth, Measured
from benchmarks.sizes import steps
from logstore.columns.batch_table import BatchTable
from logstore.folds import producer_update, segment_indexes
from logstore.folds.producer_state import ProducerState
from logstore.folds.producer_update import AppendOrigin, ProducerUpdate
from logstore.folds.segment_indexes import SegmentIndexes
from logstore.kernels.fold import producer_entries
from logstore.kernels.fold.indexes import fold_indexes
from logstore.kernels.fold.producer_entries import index_entries
from logstore.kernels.fold.producers import apply_updates, fold_producers
from logstore.kernels.scan import batches as scan

BATCH_COUNT = 10_000
BATCHES: dict[str, Any] = {"count": BATCH_COUNT, "unit": "batches"}
BATCH_SIZE = 200
PRODUCER_COUNTS = steps(1, 1000, 1_000_000)

PRODUCER_COLUMNS = [scan.PRODUCER_ID, scan.PRODUCER_EPOCH, scan.BASE_SEQUENCE, scan.LAST_OFFSET_DELTA, scan.ATTRIBUTES]

Bytes = npt.NDArray[np.uint8]
NO_DATA: Bytes = np.zeros(1, np.uint8)  # the records of idempotent batches are not looked at


def table_of(batch_count: int, producer_count: int, *, first_offset: int = 0) -> BatchTable:
    """Idempotent batches of one record each, the producers in turn."""
    matrix = np.zeros((scan.COLUMN_COUNT, batch_count), np.int64)
    number = np.arange(batch_count)
    matrix[scan.POSITION] = number * BATCH_SIZE
    matrix[scan.SIZE] = BATCH_SIZE
    matrix[scan.BASE_OFFSET] = first_offset + number
    matrix[scan.MAGIC] = 2
    matrix[scan.MAX_TIMESTAMP] = number
    matrix[scan.PRODUCER_ID] = number * 7919 % producer_count
    matrix[scan.BASE_SEQUENCE] = (first_offset + number) // producer_count
    matrix[scan.RECORD_COUNT] = 1
    return BatchTable(matrix, batch_count, scan.END, batch_count * BATCH_SIZE)


def test_fold_indexes(measured: Measured) -> None:
    table = table_of(BATCH_COUNT, 1)
    assert fold_indexes.name in measured.benchmark.name

    def fold_all() -> SegmentIndexes:
        state = SegmentIndexes(0)
        segment_indexes.step(state, table, 0, len(table))
        return state

    floor = reading(table.matrix[[scan.SIZE, scan.MAX_TIMESTAMP]])
    state = measured(fold_all, **BATCHES, floor=floor, hashed=lambda state: state.offset_index_bytes())
    assert len(state.offset_entries) == (BATCH_COUNT - 1) // 21


@pytest.mark.parametrize("producer_count", PRODUCER_COUNTS)
def test_fold_producers(measured: Measured, producer_count: int) -> None:
    table = table_of(BATCH_COUNT, producer_count)
    state = ProducerState("bench-0")
    filled = table_of(producer_count, producer_count)
    producer_update.step(state, NO_DATA, filled, 0, producer_count)
    assert fold_producers.name in measured.benchmark.name
    growth = Growth("producers", f"fold of {BATCH_COUNT:,} batches", producer_count)
    measured(
        producer_update.step,
        *(state, NO_DATA, table, 0, BATCH_COUNT),
        **BATCHES,
        floor=reading(table.matrix[PRODUCER_COLUMNS]),
        growth=growth,
        hashed=lambda _: state.to_snapshot_bytes(),
    )
    assert len(state) == producer_count
    assert state.map_end_offset == BATCH_COUNT


@pytest.mark.parametrize("producer_count", PRODUCER_COUNTS)
def test_an_append_of_one_batch(measured: Measured, producer_count: int) -> None:
    """All that one append asks of the producer state, with everything that is Python about it."""
    state = ProducerState("bench-0")
    producer_update.step(state, NO_DATA, table_of(producer_count, producer_count), 0, producer_count)
    table = table_of(1, 1, first_offset=producer_count)
    table.matrix[scan.BASE_SEQUENCE] = 0

    def append() -> int:
        table.matrix[scan.BASE_SEQUENCE] += 1
        update = ProducerUpdate(state, AppendOrigin.CLIENT)
        assert update.step(NO_DATA, table, 0, 1) is None
        return len(update.commit(producer_count + 1))

    floor = "steps of Python's around a row of a table"
    assert measured(append, count=1, unit="batches", floor=floor, hashed=lambda count: (count, len(state))) == 0
    assert len(state) == producer_count


@pytest.mark.parametrize("producer_count", PRODUCER_COUNTS)
def test_apply_updates(measured: Measured, producer_count: int) -> None:
    """A segment of as many batches as producers, rebuilt."""
    table = table_of(producer_count, producer_count)
    assert apply_updates.name in measured.benchmark.name

    def rebuild() -> ProducerState:
        state = ProducerState("bench-0")
        update = ProducerUpdate(state, AppendOrigin.REPLICATION)
        update.step(NO_DATA, table, 0, producer_count)
        update.commit(producer_count)
        return state

    counted = {"count": producer_count, "unit": "batches", "hashed": lambda state: state.to_snapshot_bytes()}
    assert len(measured(rebuild, floor=reading(table.matrix[PRODUCER_COLUMNS]), **counted)) == producer_count


def test_index_entries(measured: Measured) -> None:
    count = PRODUCER_COUNTS[-1]
    entries = np.zeros((count, producer_entries.ENTRY_WIDTH), np.int64)
    entries[:, producer_entries.PRODUCER_ID] = np.arange(count) * 1000
    bits = (2 * count).bit_length()
    index = np.zeros(1 << bits, np.int64)

    def index_all() -> int:
        index[:] = 0
        return index_entries(entries, count, index, bits, 12345)

    floor, indexed = copying(index.nbytes), lambda count: (count, index)
    assert measured(index_all, count=count, unit="producers", floor=floor, hashed=indexed) == count
    assert np.count_nonzero(index) == count


@pytest.mark.parametrize("producer_count", PRODUCER_COUNTS)
def test_a_snapshot(measured: Measured, producer_count: int) -> None:
    """Its bytes alone; `bench_snapshot` writes them."""
    state = ProducerState("bench-0")
    producer_update.step(state, NO_DATA, table_of(producer_count, producer_count), 0, producer_count)
    size = 10 + 46 * producer_count
    counted = {"count": producer_count, "unit": "producers"}
    assert len(measured(state.to_snapshot_bytes, size=size, floor=copying(size), **counted)) == size
