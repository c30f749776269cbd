"""`--format json`: one object a line, for programs.

`file` is the path, `kind` tells what an object is:

    batch     the header of a batch, with the names that the text has
    record    in a deep dump, below its batch: metadata, and with `--print-data-log` or a decoder key and value
    trailer   `invalidBytes` at the end of a log
    entry     a line of an index or snapshot, with the names that the text has
    message   what the text says of an index in a sentence

What the text tells at the top of a file is in its name. Findings and errors are those of the text, on stderr.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from logstore.columns.batch_table import BatchTable
from logstore.columns.legacy import legacy_entry, read_legacy_records
from logstore.columns.record_table import DECOMPRESSED_SIZE_MAX, BatchRecords
from logstore.columns.window_scan import scan_windows
from logstore.disk.mapped import MappedFile
from logstore.layout.batch import CONTROL_FLAG

from .findings import Findings
from .json_headers import batch_object, legacy_object
from .json_records import legacy_record_object, record_object
from .log_header import log_header
from .offset_order import OffsetOrder
from .options import MAX_BYTES_DEFAULT, DumpOptions
from .output import Output

_MakeObject = Callable[[], dict[str, Any]]

_ENTRY = re.compile(r"(?:\w+: (?:-?\d+|OptionalLong\S+)(?: |$))+")
_PAIR = re.compile(r"(\w+): (\S+)")
_OPTIONAL = re.compile(r"OptionalLong(?:\[(-?\d+)\]|\.empty)")


def dump_log_as_json(
    path: str, options: DumpOptions, out: Output, findings: Findings, advance: Callable[[int], None]
) -> None:
    """Objects of all batches, and in a deep dump of all records, that pass the filter."""
    options.check_decoders()
    _ = options.max_bytes  # a wrong value is found here, as in Kafka's tool
    log_header(path)
    with MappedFile(path) as file:
        order = OffsetOrder(path, findings)
        for item in _file_objects(file, options, order, advance):
            write_object(out, {"file": path, **item})
        order.close()


def entry_writer(path: str, out: Output) -> Callable[[bytes], None]:
    """A text sink that writes each line of an index or snapshot as an object."""

    def write(text: bytes) -> None:
        for line in text.decode().split("\n")[:-1]:
            if _ENTRY.fullmatch(line):
                item = {"kind": "entry", **{name: _number(value) for name, value in _PAIR.findall(line)}}
            else:
                item = {"kind": "message", "message": line}
            write_object(out, {"file": path, **item})

    return write


def write_object(out: Output, item: dict[str, Any]) -> None:
    """One line; a path that is no UTF-8 keeps its bytes, as the escapes that Python's `os.fsencode` understands."""
    text = json.dumps(item, ensure_ascii=False, separators=(",", ":"))
    out.write(text.encode("utf-8", "backslashreplace") + b"\n")


def _number(text: str) -> int | None:
    optional = _OPTIONAL.fullmatch(text)
    if optional is None:
        return int(text)
    return None if optional[1] is None else int(optional[1])


def _file_objects(
    file: MappedFile, options: DumpOptions, order: OffsetOrder, advance: Callable[[int], None]
) -> Iterator[dict[str, Any]]:
    end = options.end_of(file.size, file.path)
    position = 0
    for table in scan_windows(file.data, 0, end):
        for row in _rows(table, options):
            yield from _row_objects(file, table, row, options, order)
        file.release(position, table.next_position)
        advance(table.next_position - position)
        position = table.next_position
    error = table.error(file.path, end)
    if error is not None:
        raise error
    if position < end and options.max_bytes == MAX_BYTES_DEFAULT:
        yield {"kind": "trailer", "invalidBytes": end - position}


def _is_asking_records(options: DumpOptions, is_legacy: bool) -> bool:
    """Whether it takes a look at the records to know what is printed of a batch."""
    return options.is_deep or (options.filter is not None and (is_legacy or options.filter.key is not None))


def _rows(table: BatchTable, options: DumpOptions) -> Iterable[int]:
    if options.filter is None:
        return range(table.count)
    if _is_asking_records(options, is_legacy=False):
        rows = options.filter.candidates(table)
    else:
        rows = np.where(table.magic < 2, options.filter.candidates(table), options.filter.headers(table))
    found: list[int] = np.flatnonzero(rows).tolist()
    return found


def _row_objects(
    file: MappedFile, table: BatchTable, row: int, options: DumpOptions, order: OffsetOrder
) -> Iterator[dict[str, Any]]:
    """The batch, if one of its records passes the filter, then those records in a deep dump."""
    is_legacy = int(table.magic[row]) < 2
    is_header_due = True
    if options.filter is None or not _is_asking_records(options, is_legacy):
        yield _header(file, table, row)
        is_header_due = False
    if not _is_asking_records(options, is_legacy):
        return
    read = _legacy_records if is_legacy else _records
    for record in read(file, table, row, options, order):
        if is_header_due:
            yield _header(file, table, row)
            is_header_due = False
        if record is not None:
            yield record()


def _header(file: MappedFile, table: BatchTable, row: int) -> dict[str, Any]:
    return legacy_object(file.data, table, row) if int(table.magic[row]) < 2 else batch_object(table, row)


def _records(
    file: MappedFile, table: BatchTable, row: int, options: DumpOptions, order: OffsetOrder
) -> Iterator[_MakeObject | None]:
    """The records that pass, to be made into objects once the batch is told; None for one that is not shown."""
    attributes = int(table.attributes[row])
    is_shown = options.is_deep and not (attributes & CONTROL_FLAG and options.skip_record_metadata)
    for chunk in BatchRecords(file.data, table, row).chunks():
        if options.filter is None:
            rows: Iterable[int] = range(chunk.count)
            order.note(chunk.offset)
        else:
            rows = np.flatnonzero(options.filter.records(chunk)).tolist()
        for index in rows:
            yield partial(record_object, chunk, index, attributes, options) if is_shown else None


def _legacy_records(
    file: MappedFile, table: BatchTable, row: int, options: DumpOptions, order: OffsetOrder
) -> Iterator[_MakeObject | None]:
    entry = legacy_entry(file.data, int(table.position[row]), int(table.size[row]))
    for record in read_legacy_records(entry, DECOMPRESSED_SIZE_MAX):
        if options.filter is None:
            order.note(np.array([record.offset], np.int64))
        elif not options.filter.passes(record):
            continue
        yield partial(legacy_record_object, record, entry.timestamp_type, options) if options.is_deep else None
