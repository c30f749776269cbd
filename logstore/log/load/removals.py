"""Bytes of logs that a planned recovery removes, and the readable batches in them.

What is readable before is compared with what is readable after: only bytes that go are read. A batch that stands in
another file of the plan, as after a split, does not go; neither does what an interrupted cleaning left out
(`superseded`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ...columns.batch_table import BatchTable, BoolArray, ByteArray, Int64Array
from ...disk.mapped import FileInMemory, MappedFile
from ...disk.names import child, file_name
from ...errors import RecoveryLossError
from ...kernels.scan import batches as fields
from ...layout.batch import MAGIC_V2
from ...layout.file_names import LOG_SUFFIX, SWAP_SUFFIX, base_offset_of
from ...view.parallel_scan import scan_windows
from ...view.walk import Run, batch_across, walk
from ..segment.writable_folder import Repair, WritableFolder
from .superseded import Cleaning

_ADVICE = (
    "copy them first with `logstore salvage`; then --yes, or accept_loss=True of logstore.open, removes them, as a "
    "broker does"
)
UInt64Array = npt.NDArray[np.uint64]
_MIX = np.uint64(0x9E3779B97F4A7C15)  # spreads offsets over 64 bits


class Removal(NamedTuple):
    """Bytes `start` … `end` - 1 of a file that go, or are left behind the end of the log.

    Attributes:
        file: its name, as it is now.
        first_offset, end_offset: of the readable batches in them, the end exclusive; None without any.
        batch_count, record_count, size: of these batches; `size` in bytes.
        reason: why they go.
    """

    file: str
    start: int
    end: int
    first_offset: int | None
    end_offset: int | None
    batch_count: int
    record_count: int
    size: int
    reason: str


@dataclass(frozen=True, slots=True)
class RecoveryPlan:
    """What a recovery of a partition would do, or has done.

    Attributes:
        path: of the directory.
        removals: bytes of logs that go.
        repairs: changes in order.
        end_offset: the log's end behind it.
    """

    path: str
    removals: tuple[Removal, ...]
    repairs: tuple[Repair, ...]
    end_offset: int

    @property
    def readable(self) -> list[Removal]:
        """The removals with readable batches in them."""
        return [removal for removal in self.removals if removal.batch_count]


def removal_text(removal: Removal, directory: str) -> str:
    """Return a removal in a partition's directory in words."""
    where = f"bytes {removal.start:,} to {removal.end:,} of {child(directory, removal.file)}"
    if not removal.batch_count:
        return f"{where}, in which no batch can be read: {removal.reason}"
    return f"{readable_text([removal])}, {where}: {removal.reason}"


def readable_text(removals: Sequence[Removal]) -> str:
    """Return the batches, records, bytes and first offset of what can be read in some removals, in words."""
    readable = [removal for removal in removals if removal.batch_count]
    batch_count, record_count, size = (
        sum(removal.batch_count for removal in readable),
        sum(removal.record_count for removal in readable),
        sum(removal.size for removal in readable),
    )
    batches = f"{batch_count:,} readable {'batch' if batch_count == 1 else 'batches'}"
    records = f"{record_count:,} {'record' if record_count == 1 else 'records'}"
    first_offset = min(removal.first_offset for removal in readable if removal.first_offset is not None)
    return f"{batches} ({records}, {size:,} bytes) from offset {first_offset} on"


def planned_removals(directory: WritableFolder, *, is_compacted: bool) -> list[Removal]:
    """Return what the planned changes of a recovery remove, in the order of the files; nothing is read if nothing is.

    Args:
        is_compacted: `cleanup.policy` has compact, so that a cleaning may have left records out.
    """
    assert directory.planned is not None
    planned = directory.planned
    gone = [(name, start) for name, start in sorted(planned.removed_logs())]
    if not gone:
        return []
    kept = _Kept(directory, is_compacted=is_compacted)
    found = []
    for name, start in gone:
        with MappedFile(child(directory.path, name)) as log:
            if start < log.size:
                reason = planned.reasons.get(name, "")
                found.append(_removal(log, name, start, kept, reason))
    return found


def hidden_removal(log: MappedFile | FileInMemory, name: str, end_offset: int) -> Removal | None:
    """Return the batches of a last segment at or above the end of its log; None without any."""
    reason = f"offsets go back, so that the log ends at offset {end_offset}, and these are written again"
    found = _Count()
    for piece in walk(log, base_offset_of(name)):
        if isinstance(piece, Run):
            rows = np.arange(piece.first_row, piece.row_end)
            found.add(piece.table, rows[piece.table.last_offset[rows] >= end_offset])
    return found.removal(name, found.start, found.end, reason) if found.batch_count else None


class _Count:
    """The readable batches of one removal."""

    def __init__(self) -> None:
        self.batch_count = self.record_count = self.size = 0
        self.start = self.end = 0
        self._first_offset: int | None = None
        self._end_offset: int | None = None

    def add(self, table: BatchTable, rows: Int64Array) -> None:
        """Count rows of a table."""
        rows = rows[table.magic[rows] <= MAGIC_V2]  # nobody reads a later one
        if not rows.size:
            return
        records = np.where(table.magic[rows] >= MAGIC_V2, np.maximum(table.record_count[rows], 0), 1)
        first, end = int(table.base_offset[rows].min()), int(table.last_offset[rows].max()) + 1
        self._first_offset = first if self._first_offset is None else min(first, self._first_offset)
        self._end_offset = end if self._end_offset is None else max(end, self._end_offset)
        self.start = self.start if self.batch_count else int(table.position[rows[0]])
        self.end = int(table.position[rows[-1]] + table.size[rows[-1]])
        self.batch_count += rows.size
        self.record_count += int(records.sum())
        self.size += int(table.size[rows].sum())

    def removal(self, name: str, start: int, end: int, reason: str) -> Removal:
        """Return the removal of bytes that hold these batches."""
        counts = self.batch_count, self.record_count, self.size
        return Removal(name, start, end, self._first_offset, self._end_offset, *counts, reason)


def _removal(log: MappedFile, name: str, start: int, kept: _Kept, reason: str) -> Removal:
    found, base_offset = _Count(), base_offset_of(name)
    # a wrong length in what stays, which a clean start does not check, may reach into a batch that is whole
    across = batch_across(log.data, start, base_offset) if start else None
    for piece in walk(log, base_offset, start if across is None else across):
        if isinstance(piece, Run):
            rows = np.arange(piece.first_row, piece.row_end)
            found.add(piece.table, rows[kept.goes(name, piece.data, piece.table, rows)])
    return found.removal(name, start, log.size, reason)


class _Kept:
    """What of the removed batches is in the files that stay."""

    def __init__(self, directory: WritableFolder, *, is_compacted: bool) -> None:
        self._directory, self._is_compacted = directory, is_compacted
        self._identities: UInt64Array | None = None
        self._ranges: tuple[Int64Array, Int64Array] | None = None
        self._cleaning: Cleaning | None = None

    def goes(self, name: str, data: ByteArray, table: BatchTable, rows: Int64Array) -> BoolArray:
        """Return bool[len(rows)]: the batches of a removed file that no other file has in their place."""
        assert self._directory.planned is not None
        if name.endswith(SWAP_SUFFIX):  # of a cleaning that is undone: the segments that it was made of stay
            return self._is_uncovered(table, rows)
        goes: BoolArray = ~np.isin(_identities(table, rows), self._new_identities())
        if name in self._directory.planned.replaced and goes.any():
            if self._cleaning is None:
                self._cleaning = Cleaning(self._directory, is_compacted=self._is_compacted)
            goes[goes] = self._cleaning.lacks(data, table, rows[goes])
        return goes

    def _new_identities(self) -> UInt64Array:
        """Return the identities of all batches that will be in a file of another name."""
        if self._identities is None:
            assert self._directory.planned is not None
            found: list[UInt64Array] = [np.empty(0, np.uint64)]
            for name, _ in self._directory.planned.new_logs():
                for table in _tables(self._directory, name):
                    found.append(_identities(table, np.arange(len(table))))
            self._identities = np.concatenate(found)
        return self._identities

    def _is_uncovered(self, table: BatchTable, rows: Int64Array) -> BoolArray:
        bases, lasts = self._all_ranges()
        if not bases.size:
            return np.ones(rows.size, np.bool_)
        places = np.searchsorted(bases, table.base_offset[rows], side="right") - 1
        uncovered: BoolArray = (places < 0) | (np.maximum.accumulate(lasts)[places] < table.last_offset[rows])
        return uncovered

    def _all_ranges(self) -> tuple[Int64Array, Int64Array]:
        """Return the first and last offsets of all batches that stay, by ascending first offset."""
        if self._ranges is None:
            found = [np.empty((2, 0), np.int64)]
            for name in self._directory.names():
                if name.endswith(LOG_SUFFIX):
                    tables = _tables(self._directory, name)
                    found += [np.stack([table.base_offset, table.last_offset]) for table in tables]
            bases, lasts = np.concatenate(found, axis=1)
            order = np.argsort(bases, kind="stable")
            self._ranges = bases[order], lasts[order]
        return self._ranges


def _tables(directory: WritableFolder, name: str) -> Iterator[BatchTable]:
    """Yield the batches of a planned `.log` up to its first damage."""
    size = directory.size(name)
    with directory.map(name) as log:
        yield from scan_windows(log.data[:size], 0, size, release=log.release)


def _identities(table: BatchTable, rows: Int64Array) -> UInt64Array:
    """Return uint64[len(rows)]: offset and checksum of each batch, mixed."""
    offsets, checksums = table.base_offset[rows].astype(np.uint64), table.column(fields.CRC)[rows].astype(np.uint64)
    identities: UInt64Array = offsets * _MIX ^ checksums
    return identities


def require_accepted(removals: Mapping[str, Sequence[Removal]]) -> None:
    """Raise RecoveryLossError if readable batches would go; `removals` are by the directory of the partition."""
    lost = {
        path: readable
        for path, planned in removals.items()
        if (readable := [removal for removal in planned if removal.batch_count])
    }
    if len(lost) == 1:
        ((path, readable),) = lost.items()
        first = readable[0]
        raise RecoveryLossError(
            f"Recovery of {file_name(path)} would remove {readable_text(readable)}: {first.reason}",
            path=child(path, first.file),
            position=first.start,
            advice=_ADVICE,
        )
    if lost:
        text = "".join(f"\n  {removal_text(removal, path)}" for path, lines in lost.items() for removal in lines)
        raise RecoveryLossError(f"Recovery would remove in {len(lost)} partitions:{text}\n", advice=_ADVICE)
