"""Reading a copy again, to compare it with its plan: what a command says is what was found there."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from logstore.columns.batch_table import BatchTable
from logstore.disk.directory import list_partition_directory
from logstore.disk.mapped import MappedFile
from logstore.errors import DataDirectoryError
from logstore.view.walk import Run, walk


class Expected(NamedTuple):
    """Consecutive batches of one segment of the copy."""

    base_offset: int
    size: int
    batch_count: int
    first_offset: int | None
    end_offset: int | None


def require_as_planned(path: str, expected: list[Expected]) -> tuple[int, int]:
    """Return how many batches the partition directory at `path` has, and the bytes of its `.log` files.

    Args:
        expected: everything in it, by base offset.

    Raises:
        DataDirectoryError: something else is there.
    """
    logs = {segment.base_offset: segment.log for segment in list_partition_directory(path).segments}
    batch_count = size = 0
    planned = {base: list(each) for base, each in groupby(expected, attrgetter("base_offset"))}
    for base_offset in sorted(logs.keys() | planned.keys()):
        parts = planned.get(base_offset, [])
        if base_offset not in logs:
            raise _other(path, f"a segment of offset {base_offset}", "none")
        with MappedFile(logs[base_offset]) as log:
            found = list(_found(log, base_offset, parts))
            if log.size != sum(part.size for part in parts):
                raise _other(log.path, f"{sum(part.size for part in parts)} bytes", f"{log.size} bytes")
            size += log.size
        for part, there in zip(parts, found, strict=True):
            if part != there:
                raise _other(logs[base_offset], _words(part), _words(there))
            batch_count += there.batch_count
    return batch_count, size


def _found(log: MappedFile, base_offset: int, parts: list[Expected]) -> Iterator[Expected]:
    """Yield what is in the bytes of each part; a batch that is no good one is not counted."""
    start = 0
    tables = _Batches(log, base_offset)
    for part in parts:
        count, first, end = tables.between(start, start + part.size)
        start += part.size
        yield Expected(base_offset, part.size, count, first, end)


class _Batches:
    """The good batches of a file, handed out in ascending order."""

    def __init__(self, log: MappedFile, base_offset: int) -> None:
        self._runs = (piece for piece in walk(log, base_offset) if isinstance(piece, Run))
        self._run: Run | None = next(self._runs, None)

    def between(self, start: int, end: int) -> tuple[int, int | None, int | None]:
        """Return the number of batches in bytes `start` … `end` - 1, and their first and end offset."""
        count, first, last = 0, None, None
        while self._run is not None:
            run = self._run
            table: BatchTable = run.table
            positions = table.position[run.first_row : run.row_end]
            taken = int(((positions >= start) & (positions < end)).sum())
            if taken:
                row = run.first_row + int((positions < start).sum())
                first = int(table.base_offset[row]) if first is None else first
                last = int(table.last_offset[row + taken - 1]) + 1
                count += taken
            if run.end > end:
                break
            self._run = next(self._runs, None)
        return count, first, last


def _words(part: Expected) -> str:
    return f"{part.batch_count} batches of offsets {part.first_offset} to {part.end_offset} (exclusive)"


def _other(path: str, expected: str, found: str) -> DataDirectoryError:
    return DataDirectoryError(
        "The copy is not what was planned",
        path=path,
        expected=expected,
        found=found,
        advice="nothing is left of it; the source may have changed meanwhile: try again",
    )
