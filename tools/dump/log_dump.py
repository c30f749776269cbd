"""The dump of a `.log` or `.checkpoint` file (`DumpLogSegments.dumpLog`).

A kernel prints plain batches as text. Other batches and other formats are of `walk`, which is imported for the first of
them: it needs numpy, whose import takes longer than the dump of a small log.
"""

from __future__ import annotations

import stat
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from logstore.disk import paths
from logstore.disk.files import read_file
from logstore.disk.names import file_name
from logstore.kernels.scan import batches as scan
from logstore.layout.file_names import BOOTSTRAP_SNAPSHOT_NAME, LOG_SUFFIX, base_offset_of, parse_kraft_snapshot_name

from .findings import Findings, Gaps
from .options import MAX_BYTES_DEFAULT, DumpOptions
from .output import Output, Writer
from .text import SmallTable, TextWriter, words

if TYPE_CHECKING:
    from logstore.columns.batch_table import BatchTable
    from logstore.disk.loaded import LoadedFile
    from logstore.disk.mapped import MappedFile

    from .filters import RecordFilter
    from .walk import LogWalk

SMALL_SIZE_MAX = 1024 * 1024  # bytes of a file that is read into memory; a larger one is mapped
ROW_CAPACITY = 1024


class Place(NamedTuple):
    """Where the dump of a log that grows stopped.

    Attributes:
        position: byte behind the last batch that is done.
        previous_offset: see `Gaps`.
        is_held: whole batches follow, whose transactions are not decided yet.
        end_offset: behind the last batch that is done; 0 without one.
    """

    position: int = 0
    previous_offset: int = -1
    is_held: bool = False
    end_offset: int = 0


class LogDump:
    """One log on its way to a writer.

    Args:
        data: the whole file, bytes or uint8, 1-D.
        record_filter: None for everything. What it leaves out makes no gap.

    Attributes:
        end_offset: with `--follow`: behind the last batch; 0 without one.
    """

    def __init__(
        self,
        path: str,
        data: Any,
        options: DumpOptions,
        record_filter: RecordFilter | None,
        out: Output,
        gaps: Gaps,
        findings: Findings,
    ) -> None:
        self._path = path
        self._data = data
        self._options = options
        self._filter = record_filter
        self._out = out
        self._gaps = gaps
        self._findings = findings
        self.end_offset = 0

    def write(self, tables: Iterable[SmallTable | BatchTable], position: int, end: int) -> int:
        """Write the batches of a scan up to `end`, and return the position behind the last; raise at a damaged one."""
        for table in tables:
            if self._options.prints_by_kernel:
                self._write_text(table)
            else:
                self._walk.write(_arrays(table))
            self._out.advance(table.next_position - position)
            position = table.next_position
            if table.count and self._options.has("follow"):
                self.end_offset = int(_arrays(table).last_offset[-1]) + 1
            if table.status not in (scan.MORE, scan.END):
                error = _arrays(table).error(self._path, end)
                assert error is not None
                raise error
        return position

    def _write_text(self, table: SmallTable | BatchTable) -> None:
        row = 0
        while (row := self._text.write_plain(table, row, self._gaps)) < table.count:
            row = self._walk.write_other(_arrays(table), row)

    @cached_property
    def _text(self) -> TextWriter:
        return TextWriter(self._path, self._options, self._out, self._data)

    @cached_property
    def _walk(self) -> LogWalk:
        import numpy as np

        from .walk import LogWalk

        is_text = self._options.format == "text"
        writer = self._text if is_text else new_writer(self._path, self._options, self._out)
        data = np.frombuffer(self._data, np.uint8)
        return LogWalk(self._path, data, self._options, self._filter, writer, self._gaps, self._findings)


def new_writer(path: str, options: DumpOptions, out: Output) -> Writer:
    """Return the writer of a file in the format of the options; that of text prints no plain batches."""
    if options.format == "text":
        return TextWriter(path, options, out)
    if options.format == "json":
        from .json_rows import JsonWriter

        return JsonWriter(path, options, out)
    from .arrow_rows import ArrowWriter

    return ArrowWriter(path, options, out)


def dump_log(path: str, options: DumpOptions, out: Output, findings: Findings, after: Place | None = None) -> Place:
    """Print the log file at `path`, and return the place behind its last whole batch.

    An error is raised behind the output so far. With `--follow` a dump of what consumers get stops at the first batch
    whose transaction may still be aborted. It goes on `after` the place where an earlier one stopped, without a header.
    """
    options.check_log_options()
    header = _header(path)
    if options.format == "text" and after is None:
        out.print(header)
    start = after or Place()
    if after is None and options.has("follow"):  # it may begin at its base offset without a gap
        start = Place(previous_offset=base_offset_of(file_name(path)) - 1)
    tells_gaps = options.filter is None and (options.shows_batches or options.format != "text")
    gaps = Gaps(path, findings if tells_gaps else None, start.previous_offset)
    if options.prints_by_kernel and not start.position and _is_small(path):
        content = read_file(path)
        end, is_held = options.end_of(len(content), path), False
        dump = LogDump(path, content, options, None, out, gaps, findings)
        position, end_offset = dump.write(_small_tables(content, end), 0, end), dump.end_offset
    else:
        position, end, is_held, end_offset = _dump_opened(path, options, out, gaps, findings, start.position)
    size = end - position
    if size > 0 and options.max_bytes == MAX_BYTES_DEFAULT and not options.has("follow"):
        if options.is_record_table:
            findings.immediate(f"logstore: Found {size} invalid bytes at the end of {file_name(path)}")
        else:
            new_writer(path, options, out).write_rows([{"type": "trailer", "invalidBytes": size}])
    return Place(position, gaps.previous_offset, is_held, max(end_offset, start.end_offset))


def _dump_opened(
    path: str, options: DumpOptions, out: Output, gaps: Gaps, findings: Findings, start: int
) -> tuple[int, int, bool, int]:
    """Dump a log from byte `start` on; return where it stopped, the end to dump, `Place.is_held` and `end_offset`."""
    from logstore.disk.loaded import open_log

    with open_log(path) as file:
        end = end_wanted = options.end_of(file.size, path)
        # behind the size: what these batches need was written before them
        record_filter = None if options.filter is None else options.filter.of_file(path)
        if record_filter is not None and not start:
            from .filters import part_with

            start, end_wanted = part_with(record_filter.offsets, file, path, end)
        dump = LogDump(path, file.data, options, record_filter, out, gaps, findings)
        with closing(_mapped_tables(file, start, end_wanted)) as mapped:
            tables: Iterator[BatchTable] = mapped
            if record_filter is not None and options.has("follow"):
                tables = record_filter.decided(mapped)
            position = dump.write(tables, start, end_wanted)
        position = end if end_wanted < end and position == end_wanted else position
        return position, end, record_filter is not None and record_filter.holds(position, end), dump.end_offset


def _header(path: str) -> str:
    """Return the first line about a segment or a KRaft snapshot; raise InvalidNameError in Java's words."""
    name = file_name(path)
    if name.endswith(LOG_SUFFIX):
        return f"Log starting offset: {base_offset_of(name)}"
    snapshot = None if name == BOOTSTRAP_SNAPSHOT_NAME else parse_kraft_snapshot_name(name)
    if snapshot is None:
        return "KRaft bootstrap snapshot"
    return f"Snapshot end offset: {snapshot.end_offset}, epoch: {snapshot.epoch}"


def _is_small(path: str) -> bool:
    try:
        status = paths.stat(path)
    except OSError:
        return False  # mapping it raises the error
    return stat.S_ISREG(status.st_mode) and status.st_size <= SMALL_SIZE_MAX


def _small_tables(content: bytes, end: int) -> Iterator[SmallTable]:
    """Yield the batches of a small file, each table in the memory of the one before."""
    matrix, result = words(scan.COLUMN_COUNT * ROW_CAPACITY), words(scan.RESULT_COUNT)
    position, status = 0, scan.MORE
    while status == scan.MORE:
        status = scan.scan_batches(content, len(content), position, end, end, matrix, ROW_CAPACITY, result)
        count, position, bad_length = result
        scan.check_batches(content, matrix, ROW_CAPACITY, 0, count)
        yield SmallTable(matrix, ROW_CAPACITY, count, status, position, bad_length)


def _mapped_tables(file: MappedFile | LoadedFile, position: int, end: int) -> Generator[BatchTable]:
    from logstore.view.parallel_scan import scan_windows

    for table in scan_windows(file.data, position, end, load=file.load):
        yield table
        file.release(position, table.next_position)
        position = table.next_position


def _arrays(table: SmallTable | BatchTable) -> BatchTable:
    return table.to_arrays() if isinstance(table, SmallTable) else table
