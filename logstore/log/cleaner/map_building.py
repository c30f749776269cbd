"""Reading the dirty part of a log into an offset map, as far as it has room (`Cleaner.buildOffsetMap`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...columns.batch_table import BatchTable, ByteArray
from ...columns.decoded_records import Records
from ...columns.record_windows import whole_batch_windows
from ..segment.log_segment import LogSegment
from ..state import LogState
from .aborting import reading, require_going_on
from .choice import segments_between
from .offset_map import OffsetMap
from .scanning import record_count_max, require_record_sizes, tables
from .transactions import CleanedTransactions, aborted_transactions


def build_offset_map(
    state: LogState, start_offset: int, end_offset: int, *, buffer_size: int
) -> tuple[OffsetMap, set[int]]:
    """Map the keys of the data records in [start_offset, end_offset) that no aborted transaction wrote.

    Returns:
        The map, whose `latest_offset` is `end_offset` - 1, or less if the map became full; and the base offsets of the
        segments whose checksums were all verified.

    Raises:
        LogCleaningAbortedError: the log lost segments meanwhile.
        LogstoreError: a batch that cannot be read; as `whole_batch_windows`.
    """
    transactions = CleanedTransactions()
    with state.lock:
        require_going_on(state)
        segments = segments_between(state, start_offset, end_offset)
        transactions.add_aborted(aborted_transactions(state, start_offset, end_offset))
    with reading(state, segments):
        return _read_into_map(state, segments, transactions, start_offset, end_offset, buffer_size=buffer_size)


def _read_into_map(
    state: LogState,
    segments: Sequence[LogSegment],
    transactions: CleanedTransactions,
    start_offset: int,
    end_offset: int,
    *,
    buffer_size: int,
) -> tuple[OffsetMap, set[int]]:
    offset_map = OffsetMap(
        sum(map(record_count_max, segments)),
        buffer_size=buffer_size,
        first_offset=start_offset,
        end_offset=end_offset,
    )
    checked: set[int] = set()
    ends = [*(segment.base_offset for segment in segments[1:]), end_offset]
    for segment, segment_end_offset in zip(segments, ends, strict=True):
        # only the first segment begins below `start_offset`; the others are read whole
        _, position = segment.offset_index.lookup(start_offset)
        for data, table in tables(segment, position=max(position, 0)):
            require_going_on(state)
            if not put_table(offset_map, transactions, data, table, start_offset, state.rules.record_size_max):
                return offset_map, checked
        # the segment is done, even if its last batches were cleaned away before
        offset_map.latest_offset = segment_end_offset - 1
        if position <= 0:
            checked.add(segment.base_offset)
    return offset_map, checked


def put_table(
    offset_map: OffsetMap,
    transactions: CleanedTransactions,
    data: ByteArray,
    table: BatchTable,
    start_offset: int,
    record_size_max: int = 0,
) -> bool:
    """Put the records of a table; return False if the map became full before its end."""
    offset_map.begin_table(table)
    is_wanted = ~transactions.discardable(data, table) & ~table.is_control
    for window in whole_batch_windows(data, table, np.flatnonzero(is_wanted)):
        done_count = offset_map.put(window)
        require_record_sizes(data, table, window.batch_rows[window.batch_starts <= done_count], record_size_max)
        if done_count < window.count:
            offset_map.latest_offset = _latest_offset(offset_map, table, window, done_count, start_offset)
            return False
    passed = table.last_offset[table.last_offset >= start_offset]
    if passed.size:
        offset_map.latest_offset = int(passed[-1])
    return True


def _latest_offset(
    offset_map: OffsetMap, table: BatchTable, window: Records, done_count: int, start_offset: int
) -> int:
    """Return the last offset in the map, after a batch that found it full."""
    batch = int(np.searchsorted(window.batch_ends, done_count, side="right"))
    last = offset_map.last_put
    if last is not None and last[0] >= window.batch_starts[batch]:
        return last[1]
    passed = table.last_offset[: window.batch_rows[batch]]
    passed = passed[passed >= start_offset]
    return int(passed[-1]) if passed.size else offset_map.latest_offset
