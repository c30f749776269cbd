"""The text of a `.log` or `.checkpoint` file (`DumpLogSegments.dumpLog`).

Kernels print typical batches; they stop for the others, which `slow_rows` prints. That module is imported for the first
such batch: it needs numpy, whose import takes longer than the dump of a small log.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from logstore.disk import paths
from logstore.disk.files import read_file
from logstore.disk.names import file_name, is_url
from logstore.kernels.scan import batches as scan
from logstore.layout.file_names import BOOTSTRAP_SNAPSHOT_NAME, LOG_SUFFIX, base_offset_of, parse_kraft_snapshot_name

from .log_printer import LogPrinter, SmallTable, as_arrays, words
from .options import MAX_BYTES_DEFAULT, DumpOptions
from .output import Output

if TYPE_CHECKING:
    from logstore.columns.batch_table import BatchTable
    from logstore.disk.loaded import LoadedFile
    from logstore.disk.mapped import MappedFile

    from .filters import RecordFilter
    from .findings import Findings
    from .slow_rows import SlowRows
    from .text_rows import LogTextRows

SMALL_SIZE_MAX = 1024 * 1024  # bytes of a file that is read into memory; a larger one is mapped
ROW_CAPACITY = 1024


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
    if options.prints_by_kernel and not place.position and _is_small(path):
        content = read_file(path)
        end = options.end_of(len(content), path)
        printer = LogPrinter(path, content, options, out, findings, _other_rows)
        printer.previous_offset = place.previous_offset
        position = _print_tables(printer, _small_tables(content, end), 0, end, path)
    else:
        from logstore.disk.loaded import open_log

        with open_log(path) as file:
            end = options.end_of(file.size, path)
            start, end_wanted = place.position, end
            # behind the size: what these batches need was written before them
            record_filter = None if options.filter is None else options.filter.of_file(path)
            if record_filter is not None and is_url(path) and not start:
                from .filters import part_with

                start, end_wanted = part_with(record_filter.offsets, file, path, end)
            printer = _printer(path, file.data, options, record_filter, out, findings)
            printer.previous_offset = place.previous_offset
            tables = _mapped_tables(file, start, end_wanted)
            if record_filter is not None and options.has("follow"):
                tables = record_filter.decided(tables)
            position = _print_tables(printer, tables, start, end_wanted, path)
            position = end if end_wanted < end and position == end_wanted else position
            is_held = record_filter is not None and record_filter.holds(position, end)
    if position < end and options.max_bytes == MAX_BYTES_DEFAULT and not options.has("follow"):
        _write_trailer(path, end - position, options, out, findings)
    return Place(position, printer.previous_offset, is_held)


def _write_trailer(path: str, size: int, options: DumpOptions, out: Output, findings: Findings) -> None:
    """Tell of the bytes at the end of a log that are no batch; a table of records has no row for them."""
    text = f"Found {size} invalid bytes at the end of {file_name(path)}"
    if options.format == "text":
        out.print(text)
    elif options.has("records"):
        findings.immediate(f"logstore: {text}")
    else:
        from .json_rows import column_rows

        column_rows(path, options, out).write_rows([{"type": "trailer", "invalidBytes": size}])


def _first_place(path: str, options: DumpOptions) -> Place:
    """Return the place at the start of a log; one that is followed may begin at its base offset without a gap."""
    return Place(previous_offset=base_offset_of(file_name(path)) - 1) if options.has("follow") else Place()


def _printer(
    path: str, data: Any, options: DumpOptions, record_filter: RecordFilter | None, out: Output, findings: Findings
) -> LogPrinter | SlowRows:
    """Return the printer of a mapped log."""
    if options.prints_by_kernel:
        return LogPrinter(path, data, options, out, findings, _other_rows)
    from .slow_rows import SlowRows

    if options.format == "text":
        printer = LogPrinter(path, data, options, out, None, _other_rows)
        return SlowRows(data, options, record_filter, _other_rows(printer))
    from .json_rows import column_rows

    writer = column_rows(path, options, out, findings if record_filter is None else None)
    return SlowRows(data, options, record_filter, writer)


def _other_rows(printer: LogPrinter) -> LogTextRows:
    from .text_rows import LogTextRows

    return LogTextRows(printer)


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


def _mapped_tables(file: MappedFile | LoadedFile, position: int, end: int) -> Iterator[BatchTable]:
    from logstore.view.parallel_scan import scan_windows

    for table in scan_windows(file.data, position, end, load=file.load):
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
