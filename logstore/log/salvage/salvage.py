"""Salvage: copy what is good in a damaged partition directory to a new one that a broker starts with.

A broker's own recovery cuts a segment at its first bad batch, and removes all segments behind it. Salvage keeps every
batch that is good by itself, before and behind the damage, with its bytes and offsets. It leaves out and reports: a
wrong checksum, bytes that are no batch, records that are not what they say, offsets that go back or that the segment
cannot hold, a control batch that is no marker, a batch outside of its producer's transaction. The recovery that a
broker does makes the side files anew.

    plan = plan_salvage("data/orders-0")            reads only, into memory: a broker may cut what is mapped
    salvage("data/orders-0", "rescued/orders-0", settings)
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, zip_longest
from typing import NamedTuple

import numpy as np

from ...disk.atomic import write_file
from ...disk.directory import PartitionFiles, list_partition_directory
from ...disk.file_range import FileRange
from ...disk.mapped import CopiedFile
from ...disk.names import absolute_path, child
from ...disk.seam import SEAM, Seam
from ...errors import LogstoreError, UsageError
from ...folds import producer_update
from ...folds.producer_state import ProducerState
from ...kernels.scan import batches as fields
from ...layout.batch import CONTROL_FLAG, MAGIC_V2, NO_PRODUCER_ID
from ...layout.file_names import LOG_SUFFIX, METADATA_TOPIC, SWAP_SUFFIX, segment_file_name
from ...view.record_checks import bad_records, has_data, has_readable_header
from ...view.walk import OFFSET_SPAN, Advance, Run, walk
from ..load.loader import LoadSettings
from ..load.recover import recover_partition
from ..load.recovered import RecoveredLog
from .copying import copy_metadata, new_directory, require_new_directory

_COPY_SIZE = 16 * 1024 * 1024  # bytes written at a time


class Piece(NamedTuple):
    """Bytes `start` … `end` - 1 of a segment's `.log`.

    Attributes:
        first_offset, end_offset: of its batches, the end exclusive; None where it cannot be told.
        batch_count: 0 if it is no batch.
        problem: why it is left out; None if it is kept.
    """

    base_offset: int
    start: int
    end: int
    first_offset: int | None
    end_offset: int | None
    batch_count: int
    problem: str | None


def plan_salvage(path: str, advance: Advance = lambda size: None) -> list[Piece]:
    """Return what would be kept of the partition directory at `path` and what left out, in log order.

    Args:
        advance: told of the bytes that are read.

    Raises:
        UsageError: a cleaning was being finished, so it is unknown which segments count.
        InvalidNameError: the name is no partition's.
        DataDirectoryError: something cannot be read.
    """
    files = list_partition_directory(path)
    _require_no_swap(files)
    planner = _Planner(files)
    pieces: list[Piece] = []
    for segment in files.segments:
        for piece in planner.segment(CopiedFile(segment.log), segment.base_offset):
            advance(piece.end - piece.start)
            last = pieces[-1] if pieces else None
            if last is not None and last.problem is piece.problem is None and _joins(last, piece):
                batch_count = last.batch_count + piece.batch_count
                pieces[-1] = last._replace(end=piece.end, end_offset=piece.end_offset, batch_count=batch_count)
            else:
                pieces.append(piece)
    return pieces


def losses(pieces: list[Piece]) -> list[Piece]:
    """Return what a plan leaves out, except torn ends of segments, which a broker cuts off itself."""
    return [
        piece
        for piece, after in zip_longest(pieces, pieces[1:])
        if piece.problem is not None
        and (piece.batch_count or (after is not None and after.base_offset == piece.base_offset))
    ]


def salvage(
    path: str, destination: str, settings: LoadSettings, *, pieces: list[Piece] | None = None, seam: Seam = SEAM
) -> RecoveredLog:
    """Copy what is good to the new directory `destination`, and rebuild everything beside it.

    Args:
        destination: must not exist; its name is that of the same partition.
        settings: for the recovery, which takes the recovery point as 0 and the shutdown as unclean.
        pieces: of `plan_salvage`, if it was called before.

    Raises:
        UsageError: `destination` exists or has another name, or its parent is missing.
        InvalidNameError, DataDirectoryError: as `plan_salvage`; or something was cut meanwhile, or cannot be written.
            Nothing is left at `destination`.
    """
    destination = absolute_path(destination)
    files = list_partition_directory(path)
    require_new_directory(files, destination)
    plan = plan_salvage(path) if pieces is None else pieces
    with new_directory(destination, seam):
        for segment in files.segments:
            kept = [piece for piece in plan if piece.base_offset == segment.base_offset and piece.problem is None]
            _copy(segment.log, child(destination, segment_file_name(segment.base_offset, LOG_SUFFIX)), kept, seam)
        copy_metadata(files, destination, seam)
        return recover_partition(destination, replace(settings, was_clean=False, recovery_point=0), seam)


class _Planner:
    """Carries the state that decides about a batch from one to the next."""

    def __init__(self, files: PartitionFiles) -> None:
        bases = [segment.base_offset for segment in files.segments]
        self._next_base = dict(pairwise(bases))
        self._last_offset = -1
        self._out_of_order: frozenset[int] = frozenset()
        self._is_metadata = files.topic == METADATA_TOPIC
        self._producers = ProducerState(f"{files.topic}-{files.partition}")

    def segment(self, log: CopiedFile, base_offset: int) -> Iterator[Piece]:
        """Yield the pieces of one segment."""
        first_offset = max(base_offset, self._last_offset + 1)
        self._out_of_order = _out_of_order(log, base_offset, first_offset, self._end_of(base_offset))
        for piece in walk(log, base_offset):
            if isinstance(piece, Run):
                yield from self._run(piece, base_offset)
            else:
                problem = f"expected {piece.expected}, found {piece.found}"
                offset = piece.offset if piece.is_batch else None
                yield Piece(base_offset, piece.start, piece.end, offset, None, int(piece.is_batch), problem)

    def _run(self, run: Run, base_offset: int) -> Iterator[Piece]:
        """Split a run into good pieces, each followed by the row that was skipped."""
        row, bad = run.first_row, _bad_content(run, is_metadata=self._is_metadata)
        while row < run.row_end:
            row_end, problem = self._misplaced(run, row, base_offset)
            bad_row = next((each for each in bad if row <= each < row_end), row_end)
            if bad_row < row_end:
                row_end, problem = bad_row, bad[bad_row]
            followed_end, refusal = self._followed(run, row, row_end)
            if refusal is not None:
                row_end, problem = followed_end, refusal
            if row_end > row:
                yield _piece(run, row, row_end, base_offset, None)
                self._last_offset = int(run.table.last_offset[row_end - 1])
            row = row_end
            if problem is not None:
                yield _piece(run, row, row + 1, base_offset, problem)
                row += 1

    def _misplaced(self, run: Run, first_row: int, base_offset: int) -> tuple[int, str | None]:
        """Return the first row whose header cannot stand there, and why; the end of the run if there is none."""
        table, last, end = run.table, self._last_offset, self._end_of(base_offset)
        rows = slice(first_row, run.row_end)
        columns = (table.base_offset[rows], table.column(fields.LAST_OFFSET_DELTA)[rows], table.magic[rows])
        values = zip(*(column.tolist() for column in columns), strict=True)
        for row, (base, delta, magic) in enumerate(values, start=first_row):
            if magic > MAGIC_V2:
                return row, f"magic {magic} is not known"
            if base <= last or delta < 0:
                return row, f"offset {base} is not above {last}" if base <= last else "its offsets go back"
            if base < base_offset or base + delta >= end:
                return row, f"offsets {base} to {base + delta} are not below {end}, where the next segment begins"
            if int(table.position[row]) in self._out_of_order:
                return row, f"offsets {base} to {base + delta} are not below those of batches behind it"
            last = base + delta
        return run.row_end, None

    def _end_of(self, base_offset: int) -> int:
        """Return the offset below which those of a segment are."""
        return min(self._next_base.get(base_offset, base_offset + OFFSET_SPAN), base_offset + OFFSET_SPAN)

    def _followed(self, run: Run, first_row: int, row_end: int) -> tuple[int, str | None]:
        """Step the producers; return the first row that recovery could not follow, and why."""
        try:
            producer_update.step(self._producers, run.data, run.table, first_row, row_end)
        except LogstoreError as error:
            producer_update.take_completed(self._producers)
            columns, place = run.table.position, error.position
            if place is None:  # a marker of a transaction that is not open, as its offset tells
                columns, place = run.table.last_offset, error.offset or 0
            row = first_row + int((columns[first_row:row_end] < place).sum())
            return row, error.message or "it is no transaction marker"
        return row_end, None


def _out_of_order(log: CopiedFile, base_offset: int, first_offset: int, end_offset: int) -> frozenset[int]:
    """Return positions of batches whose offsets are too high or too low among those of the segment.

    One wrong offset must not drop all batches behind it: the longest ascending subsequence stays. `ends[n]` is the
    lowest last offset that n + 1 ascending batches can have.
    """
    columns = [
        np.stack([run.table.base_offset, run.table.last_offset, run.table.position])[:, run.first_row : run.row_end]
        for run in walk(log, base_offset)
        if isinstance(run, Run)
    ]
    bases, lasts, positions = np.concatenate([np.empty((3, 0), np.int64), *columns], axis=1)
    fits = np.flatnonzero((bases >= first_offset) & (lasts >= bases) & (lasts < end_offset))
    if (bases[fits][1:] > lasts[fits][:-1]).all():
        return frozenset()
    ends, rows, before = list[int](), list[int](), dict[int, int]()  # of the best row of each length, and its own
    for row in fits.tolist():
        length = bisect_left(ends, bases[row])
        before[row] = rows[length - 1] if length else -1
        if length == len(ends):
            ends.append(int(lasts[row]))
            rows.append(row)
        elif lasts[row] < ends[length]:
            ends[length], rows[length] = int(lasts[row]), row
    kept, row = set[int](), rows[-1]
    while row >= 0:
        kept.add(row)
        row = before[row]
    return frozenset(positions[[row for row in fits.tolist() if row not in kept]].tolist())


def _bad_content(run: Run, *, is_metadata: bool) -> dict[int, str]:
    """Return the rows of a run whose content is not what the header or the records say, ascending, and why."""
    rows = np.arange(run.first_row, run.row_end)
    is_v2, is_data = run.table.magic[rows] >= MAGIC_V2, has_data(run.table)[rows]
    unreadable = rows[is_v2 & ~has_readable_header(run.table)[rows]].tolist()
    found = dict.fromkeys(unreadable, "its codec is unknown, or it has more records than offsets")
    is_of_nobody = (run.table.attributes[rows] & CONTROL_FLAG != 0) & (run.table.producer_id[rows] == NO_PRODUCER_ID)
    for row in rows[is_v2 & is_of_nobody & (run.table.record_count[rows] != 0)].tolist() if not is_metadata else ():
        found[row] = "expected a marker with a producer id, found a control batch without"
    for bad in bad_records(run.data, run.table, rows[is_data]):
        found[bad.row] = f"expected {bad.expected}, found {bad.found}"
    return dict(sorted(found.items()))


def _require_no_swap(files: PartitionFiles) -> None:
    for path in files.left_overs:
        if path.endswith(LOG_SUFFIX + SWAP_SUFFIX):
            raise UsageError(
                "The cleaner's output was being put in the place of segments",
                path=path,
                advice="`logstore recover` on a copy goes on with that; without the .swap files the old segments count",
            )


def _piece(run: Run, row: int, row_end: int, base_offset: int, problem: str | None) -> Piece:
    table, last = run.table, row_end - 1
    return Piece(
        base_offset,
        int(table.position[row]),
        int(table.position[last] + table.size[last]),
        int(table.base_offset[row]),
        int(table.last_offset[last]) + 1,
        row_end - row,
        problem,
    )


def _joins(last: Piece, piece: Piece) -> bool:
    return (last.base_offset, last.end) == (piece.base_offset, piece.start)


def _copy(source: str, destination: str, kept: list[Piece], seam: Seam) -> None:
    with FileRange(os.path.realpath(source)) as log:
        chunks = (
            log.read_exactly(start, min(_COPY_SIZE, piece.end - start)).data
            for piece in kept
            for start in range(piece.start, piece.end, _COPY_SIZE)
        )
        write_file(seam, destination, chunks)
