"""v0/v1 entries on their way to text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logstore.columns.batch_table import BatchTable
from logstore.columns.legacy import LegacyRecord, legacy_entry, read_legacy_records
from logstore.columns.record_table import DECOMPRESSED_SIZE_MAX

from .legacy_text import legacy_batch_line, legacy_record_lines

if TYPE_CHECKING:
    from .log_text import LogDump


def print_legacy(dump: LogDump, table: BatchTable, start: int, end: int) -> None:
    """Lines of rows start … end - 1, which are v0/v1 entries."""
    for row in range(start, end):
        position, size = int(table.position[row]), int(table.size[row])
        if dump.options.filter is None:
            _print_entry(dump, position, size)
        else:
            _print_filtered(dump, position, size)


def _print_line(dump: LogDump, position: int, size: int) -> None:
    for piece in legacy_batch_line(dump.file.data, position, size):
        dump.out.write(piece)


def _print_entry(dump: LogDump, position: int, size: int) -> None:
    _print_line(dump, position, size)
    if not dump.options.is_deep:
        return
    for offset, line in legacy_record_lines(dump.file.data, position, size, dump.options, DECOMPRESSED_SIZE_MAX):
        dump.note_offset(offset)
        dump.out.write(line)


def _print_filtered(dump: LogDump, position: int, size: int) -> None:
    """The entry's line if one of its records passes, then in a deep dump those records."""
    data, options = dump.file.data, dump.options
    records = list(read_legacy_records(legacy_entry(data, position, size), DECOMPRESSED_SIZE_MAX))
    passing = {record.offset for record in records if _passes(dump, record)}
    if not passing:
        return
    _print_line(dump, position, size)
    if options.is_deep:
        for offset, line in legacy_record_lines(data, position, size, options, DECOMPRESSED_SIZE_MAX):
            if offset in passing:
                dump.out.write(line)


def _passes(dump: LogDump, record: LegacyRecord) -> bool:
    record_filter = dump.options.filter
    return record_filter is None or record_filter.passes(record.offset, record.timestamp, record.key)
