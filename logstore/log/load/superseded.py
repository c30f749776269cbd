"""What a finished swap of cleaned segments leaves out: whether a cleaning may have, or records would be lost.

A cleaning leaves out a record whose key comes again later or that has no key, a tombstone, a marker, and what was
aborted; only in a topic with `cleanup.policy` compact. A split leaves out nothing. So the newest value of each key must
be in the files that stay; where it is not, the `.swap` file was not made of these segments, and to finish its swap
would lose records.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...columns.batch_table import BatchTable, BoolArray, ByteArray, Int64Array
from ...columns.record_windows import whole_batch_windows
from ...disk.mapped import FileInMemory, MappedFile
from ...errors import LogstoreError
from ...folds.transaction_marker import control_types
from ...layout.batch import CONTROL_FLAG, MAGIC_V2, TRANSACTIONAL_FLAG
from ...layout.file_names import LOG_SUFFIX, base_offset_of
from ...model import ControlRecordType
from ...view.walk import Run, walk
from ..cleaner.offset_map import OffsetMap
from ..segment.writable_folder import WritableFolder


class Cleaning:
    """The records before and after a swap that a recovery plans to finish."""

    def __init__(self, directory: WritableFolder, *, is_compacted: bool) -> None:
        """Read the records that stay, and the keys and transactions from the first replaced segment on."""
        assert directory.planned is not None
        self._directory, self._replaced = directory, directory.planned.replaced
        self._is_compacted = is_compacted
        self._kept_offsets = np.sort(np.concatenate([np.empty(0, np.int64), *self._new_offsets()]))
        self._aborted_batches = np.empty(0, np.int64)
        self._newest: OffsetMap | None = None
        if is_compacted:
            self._aborted_batches, record_count = self._read_transactions()
            self._newest = self._read_keys(record_count)

    def lacks(self, data: ByteArray, table: BatchTable, rows: Int64Array) -> BoolArray:
        """Return bool[len(rows)]: the replaced batches with a record that should be in the files that stay."""
        lacking = np.zeros(len(table), np.bool_)
        asked = rows
        if self._is_compacted:
            asked = rows[~table.is_control[rows] & ~np.isin(table.base_offset[rows], self._aborted_batches)]
        try:
            for window in whole_batch_windows(data, table, asked):
                is_lost = ~np.isin(window.offset, self._kept_offsets)
                if self._newest is not None:
                    is_newest = (window.key_size >= 0) & (window.offset >= self._newest.find(window))
                    is_lost &= is_newest & (window.value_size >= 0)
                lacking[window.rows[is_lost]] = True
        except LogstoreError:
            lacking[asked] = True  # nobody can say what is in it
        return lacking[rows]

    def _new_offsets(self) -> Iterator[Int64Array]:
        """Yield the offsets of the records in the files that take the place of others."""
        assert self._directory.planned is not None
        for name, _ in self._directory.planned.new_logs():
            with self._directory.map(name) as log:
                for run in _runs(log, name):
                    for window in whole_batch_windows(run.data, run.table, np.arange(run.first_row, run.row_end)):
                        yield window.offset.copy()

    def _old_runs(self) -> Iterator[Run]:
        """Yield the good batches of the replaced segments and of those behind them, as they are on the disk."""
        first = min(map(base_offset_of, self._replaced))
        logs = {name for name in self._directory.names() if name.endswith(LOG_SUFFIX)}
        for name in sorted(self._replaced | logs):
            path = f"{self._directory.path}/{name}"
            is_old = name in self._replaced or self._directory.file(name) == path
            if is_old and base_offset_of(name) >= first and not self._directory.has_new_content(name):
                with MappedFile(path) as log:
                    yield from _runs(log, name)

    def _read_transactions(self) -> tuple[Int64Array, int]:
        """Return the base offsets of aborted batches, and an upper bound of all records."""
        open_batches, aborted, record_count = dict[int, list[int]](), list[int](), 0
        for run in self._old_runs():
            table, rows = run.table, np.arange(run.first_row, run.row_end)
            is_v2 = table.magic[rows] >= MAGIC_V2
            record_count += int(np.where(is_v2, table.record_count[rows], table.size[rows]).sum())
            flags = np.where(is_v2, table.attributes[rows], 0)
            for row in rows[flags & TRANSACTIONAL_FLAG != 0].tolist():
                producer_id = int(table.producer_id[row])
                if not table.attributes[row] & CONTROL_FLAG:
                    open_batches.setdefault(producer_id, []).append(int(table.base_offset[row]))
                    continue
                batches = open_batches.pop(producer_id, [])
                if control_types(run.data, table, np.array([row]))[0] == ControlRecordType.ABORT:
                    aborted += batches
        return np.sort(np.array(aborted, np.int64)), record_count

    def _read_keys(self, record_count: int) -> OffsetMap:
        """Return the last offset of each key; keys for which there is no room count as lost."""
        newest = OffsetMap(record_count)
        for run in self._old_runs():
            rows = np.arange(run.first_row, run.row_end)
            is_wanted = ~run.table.is_control[rows] & ~np.isin(run.table.base_offset[rows], self._aborted_batches)
            try:
                for window in whole_batch_windows(run.data, run.table, rows[is_wanted]):
                    if newest.put(window) < window.count:
                        return newest
            except LogstoreError:
                continue  # its keys are unknown, so the older records of these keys are not superseded
        return newest


def _runs(log: MappedFile | FileInMemory, name: str) -> Iterator[Run]:
    for piece in walk(log, base_offset_of(name)):
        if isinstance(piece, Run):
            yield piece
