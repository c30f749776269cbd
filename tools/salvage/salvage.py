"""Salvage: copy what is good in a damaged partition directory to a new one that a broker starts with.

A broker's own recovery cuts a segment at its first bad batch, and removes all segments behind it. Salvage keeps every
batch that is good by itself, before and behind the damage, with its bytes and offsets, from the first one on, wherever
the log started. A batch is good if a broker's recovery takes it: unusual is not damaged. Salvage leaves out and reports
a wrong checksum, bytes that are no batch, and what would keep a broker from loading the rest: offsets that no index can
hold (`placement`), a batch outside of its producer's transaction, a marker that does not parse. Segments whose offsets
or sizes are too large for Kafka are split. The recovery that a broker does makes the side files anew, and then the copy
is read again and compared with the plan.

    plan = plan_salvage("data/orders-0")            reads only, into memory: a broker may cut what is mapped
    salvage("data/orders-0", "rescued/orders-0", settings)
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from logstore.config.topic import LogConfig, parse_config
from logstore.disk.atomic import write_file
from logstore.disk.directory import PartitionFiles, list_partition_directory
from logstore.disk.file_range import FileRange
from logstore.disk.mapped import FileInMemory, MappedFile, copied_file, exceeds_segment
from logstore.disk.names import absolute_path, child, file_name
from logstore.disk.seam import SEAM, Seam
from logstore.errors import LogstoreError, UsageError
from logstore.folds import producer_update
from logstore.folds.producer_state import ProducerState
from logstore.layout.file_names import LOG_SUFFIX, SWAP_SUFFIX, has_offset, segment_file_name
from logstore.log.load.loader import LoadSettings
from logstore.log.load.recover import recover_partition
from logstore.log.state import LogState
from logstore.view.batch_search import unreadable_wrappers
from logstore.view.walk import Advance, Run, walk

from .copying import copy_metadata, new_copy, require_new_directory
from .placement import Placement, place
from .read_back import Expected, require_as_planned

_COPY_SIZE = 16 * 1024 * 1024  # bytes written at a time


class Piece(NamedTuple):
    """Bytes `start` … `end` - 1 of a segment's `.log`.

    Attributes:
        first_offset, end_offset: of its batches, the end exclusive; None where it cannot be told.
        batch_count: 0 if it is no batch.
        problem: why it is left out; None if it is kept.
        copy_base_offset: of the copy's segment that it comes into; None if it is left out.
    """

    base_offset: int
    start: int
    end: int
    first_offset: int | None
    end_offset: int | None
    batch_count: int
    problem: str | None
    copy_base_offset: int | None = None


class Salvaged(NamedTuple):
    """What a salvage wrote, read again: the log of the copy, its batches, and the bytes of its `.log` files."""

    log: LogState
    batch_count: int
    size: int


def plan_salvage(path: str, advance: Advance = lambda size: None, *, config: LogConfig | None = None) -> list[Piece]:
    """Return what would be kept of the partition directory at `path` and what left out, in log order.

    Args:
        advance: told of the bytes that are read.
        config: of the log; by default Kafka's.

    Raises:
        UsageError: a cleaning was being finished, so it is unknown which segments count.
        InvalidNameError: the name is no partition's.
        DataDirectoryError: something cannot be read.
    """
    files = list_partition_directory(path)
    _require_no_swap(files)
    planner = _Planner(files, parse_config({}) if config is None else config)
    pieces: list[Piece] = []
    for segment in files.segments:
        for piece in planner.segment(_opened(segment.log), segment.base_offset):
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
) -> Salvaged:
    """Copy what is good to the new directory `destination`, rebuild everything beside it, and read the copy again.

    Args:
        destination: must not exist; its name is that of the same partition.
        settings: for the recovery, which takes the recovery point as 0 and the shutdown as unclean. Batches below the
            log start are kept too; a log without any batch begins there.
        pieces: of `plan_salvage`, if it was called before.

    Raises:
        UsageError: `destination` exists or has another name, or its parent is missing.
        InvalidNameError, DataDirectoryError: as `plan_salvage`; or something was cut meanwhile, or cannot be written,
            or is in the copy not as planned. Nothing is left at `destination`.
    """
    destination = absolute_path(destination)
    files = list_partition_directory(path)
    require_new_directory(files, destination)
    plan = plan_salvage(path, config=settings.config) if pieces is None else pieces
    kept = [piece for piece in plan if piece.problem is None]
    settings = replace(
        settings,
        was_clean=False,
        recovery_point=0,
        log_start_offset=0 if kept else settings.log_start_offset,
    )
    logs = {segment.base_offset: segment.log for segment in files.segments}
    with new_copy(files, destination, seam) as directory:
        for base_offset, parts in _segments_of(files, kept).items():
            name = segment_file_name(base_offset, LOG_SUFFIX)
            write_file(seam, child(directory, name), _chunks(parts, logs))
        copy_metadata(files, directory, seam)
        log, _ = recover_partition(directory, settings, seam)
        expected = [
            Expected(base_offset, piece.end - piece.start, piece.batch_count, piece.first_offset, piece.end_offset)
            for base_offset, parts in _segments_of(files, kept).items()
            for piece in parts
        ]
        batch_count, size = require_as_planned(directory, expected)
    return Salvaged(log, batch_count, size)


def _segments_of(files: PartitionFiles, kept: list[Piece]) -> dict[int, list[Piece]]:
    """Return the pieces of each segment of the copy, by base offset; a segment without any stays, an empty one."""
    segments: dict[int, list[Piece]] = {}
    moved = {piece.base_offset for piece in kept}
    for segment in files.segments:
        if segment.base_offset not in moved:
            segments[segment.base_offset] = []
    for piece in kept:
        assert piece.copy_base_offset is not None
        segments.setdefault(piece.copy_base_offset, []).append(piece)
    return dict(sorted(segments.items()))


def _opened(path: str) -> FileInMemory | MappedFile:
    """Return the bytes of a `.log`, copied, as a broker may cut it; a file that is too large no broker opens."""
    return MappedFile(path, is_bounded=False) if exceeds_segment(path) else copied_file(path)


class _Planner:
    """Carries the state that decides about a batch from one to the next."""

    def __init__(self, files: PartitionFiles, config: LogConfig) -> None:
        self._taken = {segment.base_offset for segment in files.segments}
        self._config = config
        self._producers = ProducerState(f"{files.topic}-{files.partition}")

    def segment(self, log: FileInMemory | MappedFile, base_offset: int) -> Iterator[Piece]:
        """Yield the pieces of one segment."""
        placement = place(walk(log, base_offset), base_offset, self._taken, self._config)
        for piece in walk(log, base_offset):
            if isinstance(piece, Run):
                yield from self._run(piece, base_offset, placement)
            else:
                problem = f"expected {piece.expected}, found {piece.found}"
                offset = piece.offset if piece.is_batch else None
                yield Piece(base_offset, piece.start, piece.end, offset, None, int(piece.is_batch), problem)

    def _run(self, run: Run, base_offset: int, placement: Placement) -> Iterator[Piece]:
        """Split a run into kept pieces, each followed by the row that was left out."""
        row = run.first_row
        stops = _Stops(run, placement)
        while row < run.row_end:
            row_end, problem, copy_base_offset = stops.next(row)
            followed_end, refusal = self._followed(run, row, row_end)
            if refusal is not None:
                row_end, problem = followed_end, refusal
            if row_end > row:
                yield _piece(run, row, row_end, base_offset, None)._replace(copy_base_offset=copy_base_offset)
            row = row_end
            if problem is not None:
                yield _piece(run, row, row + 1, base_offset, problem)
                row += 1

    def _followed(self, run: Run, first_row: int, row_end: int) -> tuple[int, str | None]:
        """Step the producers; return the first row that recovery could not follow, and why."""
        try:
            producer_update.step(self._producers, run.data, run.table, first_row, row_end)
        except LogstoreError as error:
            self._producers.buffers.take_completed()
            if error.position is None:  # a marker of a transaction that is not open, as its offset tells
                is_there = run.table.last_offset[first_row:row_end] == error.offset
            else:
                is_there = run.table.position[first_row:row_end] == error.position
            return first_row + int(is_there.argmax()), error.message or "it is no transaction marker"
        return row_end, None


class _Stops:
    """Rows of a run at which a kept piece ends: batches that are left out, and first ones of a segment of the copy."""

    def __init__(self, run: Run, placement: Placement) -> None:
        positions = run.table.position
        self._row_end = run.row_end
        self._problems = {
            run.first_row + int(np.searchsorted(positions[run.first_row : run.row_end], position)): problem
            for position, problem in placement.problems.items()
            if positions[run.first_row] <= position < run.end
        }
        self._problems |= unreadable_wrappers(run.data, run.table, run.first_row, run.row_end)
        self._rows = sorted(self._problems)
        self._parts = [
            (int(np.searchsorted(positions[: run.row_end], part.start)), part.base_offset) for part in placement.parts
        ]

    def next(self, row: int) -> tuple[int, str | None, int]:
        """Return the end of the piece that begins at `row`, why the row there is left out, and the copy's segment."""
        index = bisect_left(self._rows, row)
        left_out = self._rows[index] if index < len(self._rows) else self._row_end
        part = next((each for each, _ in self._parts if each > row), self._row_end)
        copy_base_offset = [base_offset for first, base_offset in self._parts if first <= row][-1]
        if part < left_out:
            return part, None, copy_base_offset
        return left_out, self._problems.get(left_out), copy_base_offset


def _require_no_swap(files: PartitionFiles) -> None:
    for path in files.left_overs:
        if path.endswith(LOG_SUFFIX + SWAP_SUFFIX) and os.path.isfile(path) and has_offset(file_name(path)):
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
    place, after = (last.base_offset, last.end), (piece.base_offset, piece.start)
    return place == after and last.copy_base_offset == piece.copy_base_offset


def _chunks(pieces: list[Piece], logs: dict[int, str]) -> Iterator[memoryview]:
    """Yield the bytes of the pieces, read from the source's segments."""
    for piece in pieces:
        with FileRange(os.path.realpath(logs[piece.base_offset])) as log:
            for start in range(piece.start, piece.end, _COPY_SIZE):
                yield log.read_exactly(start, min(_COPY_SIZE, piece.end - start)).data
