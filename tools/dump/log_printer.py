"""The text of a `.log` or `.checkpoint` file (`DumpLogSegments.dumpLog`).

Kernels print typical batches; they stop for the others, which `slow_rows` prints. That module is imported for the first
such batch: it needs numpy, whose import takes longer than the dump of a small log.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from logstore.disk.files import read_file
from logstore.disk.names import file_name
from logstore.kernels.decode import records as decode
from logstore.kernels.dump import batches as dump_text
from logstore.kernels.dump import lines as dump_lines
from logstore.kernels.dump import state as dump_state
from logstore.kernels.primitives import add64
from logstore.kernels.scan import batches as scan
from logstore.layout.file_names import BOOTSTRAP_SNAPSHOT_NAME, LOG_SUFFIX, base_offset_of, parse_kraft_snapshot_name
from logstore.native.kernel import Kernel

from .options import MAX_BYTES_DEFAULT, DumpOptions
from .output import Output

if TYPE_CHECKING:
    from logstore.columns.batch_table import BatchTable
    from logstore.disk.mapped import MappedFile

    from .filters import RecordFilter
    from .findings import Findings
    from .slow_rows import SlowRows
    from .text_rows import LogTextRows

SMALL_SIZE_MAX = 1024 * 1024  # bytes of a file that is read into memory; a larger one is mapped
ROW_CAPACITY, RECORD_CAPACITY, GAP_CAPACITY = 1024, 2048, 4096


class Place(NamedTuple):
    """Where the dump of a log that grows stopped.

    Attributes:
        position: byte behind the last batch that is done.
        previous_offset: of the last record that was compared with the one before; -1 before the first.
        is_held: whole batches follow, whose transactions are not decided yet.
    """

    position: int = 0
    previous_offset: int = -1
    is_held: bool = False


class SmallTable(NamedTuple):
    """A `BatchTable` without numpy, for kernels; `matrix` is int64[scan.COLUMN_COUNT * capacity]."""

    matrix: memoryview
    capacity: int
    count: int  # type: ignore[assignment]  # of batches; it hides the method of tuples
    status: int
    next_position: int
    bad_length: int


def dump_log(path: str, options: DumpOptions, out: Output, findings: Findings, after: Place | None = None) -> Place:
    """Print the log file at `path`, and return the place behind its last whole batch.

    An error is raised behind the output so far. With `--follow` a dump of what consumers get stops at the first batch
    whose transaction may still be aborted.

    Args:
        after: where an earlier dump stopped; this one goes on there, and prints no header.
    """
    options.check_log_options()
    header = _header(path)
    if options.format == "text" and after is None:
        out.print(header)
    place, is_held = after or _first_place(path, options), False
    printer: LogPrinter | SlowRows
    if options.format == "text" and options.filter is None and not place.position and _is_small(path):
        content = read_file(path)
        end = options.end_of(len(content), path)
        printer = LogPrinter(path, content, options, out, findings)
        printer.previous_offset = place.previous_offset
        position = _print_tables(printer, _small_tables(content, end), 0, end, path)
    else:
        from logstore.disk.mapped import MappedFile

        with MappedFile(path) as file:
            end = options.end_of(file.size, path)
            # behind the size: what these batches need was written before them
            record_filter = None if options.filter is None else options.filter.of_file(path)
            printer = _printer(path, file.data, options, record_filter, out, findings)
            printer.previous_offset = place.previous_offset
            tables = _mapped_tables(file, place.position, end)
            if record_filter is not None and options.has("follow"):
                tables = record_filter.decided(tables)
            position = _print_tables(printer, tables, place.position, end, path)
            is_held = record_filter is not None and record_filter.holds(position, end)
    if position < end and options.max_bytes == MAX_BYTES_DEFAULT and not options.has("follow"):
        if options.format == "text":
            out.print(f"Found {end - position} invalid bytes at the end of {file_name(path)}")
        else:
            from .column_rows import column_rows

            column_rows(path, options, out).write_rows([{"type": "trailer", "invalidBytes": end - position}])
    return Place(position, printer.previous_offset, is_held)


def _first_place(path: str, options: DumpOptions) -> Place:
    """Return the place at the start of a log; one that is followed may begin at its base offset without a gap."""
    return Place(previous_offset=base_offset_of(file_name(path)) - 1) if options.has("follow") else Place()


def _printer(
    path: str, data: Any, options: DumpOptions, record_filter: RecordFilter | None, out: Output, findings: Findings
) -> LogPrinter | SlowRows:
    """Return the printer of a mapped log."""
    if options.format == "text" and record_filter is None:
        return LogPrinter(path, data, options, out, findings)
    from .slow_rows import SlowRows

    if options.format == "text":
        return SlowRows(data, options, record_filter, LogPrinter(path, data, options, out, None).rows)
    from .column_rows import column_rows

    writer = column_rows(path, options, out, findings if record_filter is None else None)
    return SlowRows(data, options, record_filter, writer)


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
        status = os.stat(path)
    except OSError:
        return False  # mapping it raises the error
    return stat.S_ISREG(status.st_mode) and status.st_size <= SMALL_SIZE_MAX


def _small_tables(content: bytes, end: int) -> Iterator[SmallTable]:
    """Yield the batches of a small file, each table in the memory of the one before."""
    matrix, result = _words(scan.COLUMN_COUNT * ROW_CAPACITY), _words(scan.RESULT_COUNT)
    position, status = 0, scan.MORE
    while status == scan.MORE:
        status = scan.scan_batches(content, len(content), position, end, end, matrix, ROW_CAPACITY, result)
        count, position, bad_length = result
        scan.check_batches(content, matrix, ROW_CAPACITY, 0, count)
        yield SmallTable(matrix, ROW_CAPACITY, count, status, position, bad_length)


def _mapped_tables(file: MappedFile, position: int, end: int) -> Iterator[BatchTable]:
    from logstore.view.parallel_scan import scan_windows

    for table in scan_windows(file.data, position, end):
        yield table
        file.release(position, table.next_position)
        position = table.next_position


def _print_tables(
    printer: LogPrinter | SlowRows,
    tables: Iterable[SmallTable | BatchTable],
    position: int,
    end: int,
    path: str,
) -> int:
    """Print the batches of all tables of a scan up to `end`, and return the position behind the last batch.

    Raises:
        LogstoreError: the batch at that position is damaged.
    """
    for table in tables:
        printer.print_table(table)
        printer.out.advance(table.next_position - position)
        position = table.next_position
        if table.status not in (scan.MORE, scan.END):
            error = as_arrays(table).error(path, end)
            assert error is not None
            raise error
    return position


def _words(count: int) -> memoryview:
    """Return zeros, int64[count]."""
    return memoryview(bytearray(8 * count)).cast("q")


def as_arrays(table: SmallTable | BatchTable) -> BatchTable:
    """Return the table with arrays of numpy."""
    if not isinstance(table, SmallTable):
        return table
    import numpy as np

    from logstore.columns.batch_table import BatchTable

    matrix = np.frombuffer(table.matrix, np.int64).reshape(scan.COLUMN_COUNT, -1)
    return BatchTable(matrix, table.count, table.status, table.next_position, table.bad_length)


class LogPrinter:
    """One log file on its way to text.

    Attributes:
        data: the whole file, bytes or uint8, 1-D.
        records: int64[decode.COLUMN_COUNT * RECORD_CAPACITY]: the chunk of records being printed.
        gaps: int64[2 * GAP_CAPACITY]: pairs of offsets that do not follow each other, not yet in the findings.
        state: int64[dump_state.STATE_COUNT]: progress of the kernels.
        findings: gets the gaps; None drops them.
    """

    def __init__(self, path: str, data: Any, options: DumpOptions, out: Output, findings: Findings | None) -> None:
        self.path = path
        self.data = data
        self.options = options
        self.out = out
        self.findings = findings
        self.records = _words(decode.COLUMN_COUNT * RECORD_CAPACITY)
        self.gaps = _words(2 * GAP_CAPACITY)
        self.state = _words(dump_state.STATE_COUNT)
        self.state[dump_state.FLAGS] = (
            (dump_state.DEEP if options.is_deep else 0)
            | (dump_state.CONTENTS if options.prints_contents else 0)
            | (dump_state.PYTHON_RECORDS if options.needs_python else 0)
            | (dump_state.SKIP_METADATA if options.skips_metadata else 0)
        )
        self.state[dump_state.RECORD_CAPACITY] = RECORD_CAPACITY
        self.state[dump_state.GAP_CAPACITY] = GAP_CAPACITY
        self.previous_offset = -1  # as in Kafka's tool, so a log that begins above 0 has a gap

    @property
    def previous_offset(self) -> int:
        """The offset of the last record that was compared with the one before; -1 before the first."""
        return self.state[dump_state.PREVIOUS_OFFSET]

    @previous_offset.setter
    def previous_offset(self, offset: int) -> None:
        """Go on behind this offset."""
        self.state[dump_state.PREVIOUS_OFFSET] = offset

    def print_table(self, table: SmallTable | BatchTable) -> None:
        """Print the batches of a table, and hand its gaps to the findings."""
        self.print_rows(table, 0, table.count)
        self._hand_gaps_over()

    def print_rows(self, table: SmallTable | BatchTable, start: int, end: int) -> None:
        """Print the batch lines of rows start … end - 1, and their record lines in a deep dump."""
        self.state[dump_state.ROW], self.state[dump_state.IS_LINE_PRINTED] = start, 0
        arguments = (self.data, table.matrix, table.capacity, end, self.records)
        while (status := self.run(dump_text.dump_batches, *arguments)) != dump_state.DONE:
            self.rows.go_on(status, as_arrays(table), end)

    def run(self, dump: Kernel, *arguments: Any) -> int:
        """Run a kernel of `dump_text` until it stops for another reason than a full buffer; return its status."""
        state, out = self.state, self.out
        while True:
            state[dump_state.OUT_SIZE], state[dump_state.OUT_CAPACITY] = out.size, out.capacity
            status = dump(*arguments, dump_lines.LITERALS, out.array, self.gaps, state)
            out.size = state[dump_state.OUT_SIZE]
            if status == dump_state.OUT_FULL:
                out.make_room()
            elif status == dump_state.GAPS_FULL:
                self._hand_gaps_over()
            else:
                return status

    @cached_property
    def rows(self) -> LogTextRows:
        """The printer of the rows that kernels stop for."""
        from .text_rows import LogTextRows

        return LogTextRows(self)

    def note_offset(self, offset: int) -> None:
        """Compare the offset of a record that no kernel printed with the one before."""
        state = self.state
        if offset != add64(state[dump_state.PREVIOUS_OFFSET], 1) and not dump_text.note_gap(offset, self.gaps, state):
            self._hand_gaps_over()
            dump_text.note_gap(offset, self.gaps, state)
        state[dump_state.PREVIOUS_OFFSET] = offset

    def _hand_gaps_over(self) -> None:
        """Move the gaps to the findings."""
        count = self.state[dump_state.GAP_COUNT]
        if count and self.findings is not None:
            self.findings.non_consecutive(self.path, self.gaps[:count], self.gaps[GAP_CAPACITY:][:count])
        self.state[dump_state.GAP_COUNT] = 0
