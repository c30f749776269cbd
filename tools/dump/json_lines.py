"""`--format json`: one object a line, for programs.

`kind` tells what an object is: `batch` and, in a deep dump, `record` for a log; `entry` for the lines of indexes and
snapshots, with the names that the text has. Keys and values are strings when they are UTF-8, else `keyBase64` and
`valueBase64`; null is null. What an internal topic's decoder makes of them stands there as an object.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from logstore.columns.batch_table import BatchTable, scan_chunk
from logstore.columns.legacy import legacy_entry, read_legacy_records
from logstore.columns.record_table import DECOMPRESSED_SIZE_MAX, BatchRecords, RecordTable
from logstore.disk.mapped import MappedFile
from logstore.kernels import scan
from logstore.layout.batch import CONTROL_FLAG, LOG_APPEND_TIME_FLAG
from logstore.layout.utf8 import java_utf8
from logstore.model import TimestampType

from .json_control import control_object
from .json_headers import batch_object, legacy_object
from .options import DumpOptions
from .output import Output

_PAIR = re.compile(r"(\w+): (\S+)")
_OPTIONAL = re.compile(r"OptionalLong(?:\[(-?\d+)\]|\.empty)")


def dump_log_as_json(path: str, options: DumpOptions, out: Output, advance: Callable[[int], None]) -> None:
    """Objects of all batches, and in a deep dump of all records, that pass the filter."""
    options.check_decoders()
    with MappedFile(path) as file:
        end = options.end_of(file.size, path)
        position, status = 0, scan.MORE
        while status == scan.MORE:
            table = scan_chunk(file.data, position, end, check_crc=True)
            for row in _rows(table, options):
                for item in _objects(file, table, row, options):
                    write_object(out, {"file": path, **item})
            file.release(position, table.next_position)
            advance(table.next_position - position)
            position, status = table.next_position, table.status
        error = table.error(path, end)
        if error is not None:
            raise error


def entry_writer(path: str, out: Output) -> Callable[[bytes], None]:
    """A text sink that writes each `name: value …` line of an index or snapshot as an object."""

    def write(text: bytes) -> None:
        for line in text.decode().splitlines():
            pairs = {name: _number(value) for name, value in _PAIR.findall(line)}
            write_object(out, {"file": path, "kind": "entry", **(pairs or {"message": line})})

    return write


def write_object(out: Output, item: dict[str, Any]) -> None:
    """One line."""
    text = json.dumps(item, ensure_ascii=False, separators=(",", ":"))
    out.print(text)


def _number(text: str) -> int | None:
    optional = _OPTIONAL.fullmatch(text)
    if optional is None:
        return int(text)
    return None if optional[1] is None else int(optional[1])


def _rows(table: BatchTable, options: DumpOptions) -> Iterator[int]:
    if options.filter is None:
        yield from range(table.count)
    else:
        yield from np.flatnonzero(options.filter.batches(table)).tolist()


def _objects(file: MappedFile, table: BatchTable, row: int, options: DumpOptions) -> Iterator[dict[str, Any]]:
    """The batch, if one of its records passes the filter, then those records in a deep dump."""
    is_legacy = int(table.magic[row]) < 2
    header = legacy_object(file.data, table, row) if is_legacy else batch_object(table, row)
    if not options.is_deep and (options.filter is None or options.filter.key is None):
        yield header
        return
    records = _legacy_records(file, table, row, options) if is_legacy else _records(file, table, row, options)
    is_header_due = True
    if options.filter is None:
        yield header
        is_header_due = False
    for record in records:
        if is_header_due:
            yield header
            is_header_due = False
        if options.is_deep:
            yield record


def _records(file: MappedFile, table: BatchTable, row: int, options: DumpOptions) -> Iterator[dict[str, Any]]:
    attributes = int(table.attributes[row])
    for chunk in BatchRecords(file.data, table, row).chunks():
        rows = range(chunk.count) if options.filter is None else np.flatnonzero(options.filter.records(chunk)).tolist()
        for index in rows:
            yield _record(chunk, index, attributes, options)


def _record(chunk: RecordTable, index: int, attributes: int, options: DumpOptions) -> dict[str, Any]:
    timestamp_type = TimestampType(int(bool(attributes & LOG_APPEND_TIME_FLAG)))
    key, value = chunk.key(index), chunk.value(index)
    record: dict[str, Any] = {
        "kind": "record",
        "offset": int(chunk.offset[index]),
        "timestampType": timestamp_type.kafka_name,
        "timestamp": int(chunk.timestamp[index]),
        "keySize": int(chunk.key_size[index]),
        "valueSize": int(chunk.value_size[index]),
        "sequence": int(chunk.sequence[index]),
        "headers": [{"key": java_utf8(name), **_bytes("value", content)} for name, content in chunk.headers(index)],
    }
    if attributes & CONTROL_FLAG:
        return record | {"control": control_object(key, value)}
    return record | _contents(record["offset"], key, value, options)


def _legacy_records(file: MappedFile, table: BatchTable, row: int, options: DumpOptions) -> Iterator[dict[str, Any]]:
    entry = legacy_entry(file.data, int(table.position[row]), int(table.size[row]))
    for record in read_legacy_records(entry, DECOMPRESSED_SIZE_MAX):
        key, value = record.key, record.value
        if options.filter is not None and not options.filter.passes(record.offset, record.timestamp, key):
            continue
        yield {
            "kind": "record",
            "offset": record.offset,
            "timestampType": entry.timestamp_type.kafka_name,
            "timestamp": record.timestamp,
            "keySize": -1 if key is None else len(key),
            "valueSize": -1 if value is None else len(value),
            "crc": record.crc,
            "isValid": record.is_valid,
            **_contents(record.offset, key, value, options),
        }


def _contents(offset: int, key: bytes | None, value: bytes | None, options: DumpOptions) -> dict[str, Any]:
    if not options.print_contents:
        return {}
    if not options.needs_python:
        return _bytes("key", key) | _bytes("value", value)
    if options.parser is not None:
        key_text, value_text = options.parser(offset, key, value)
        return {"key": _decoded(key_text), "value": _decoded(value_text)}
    return {
        "key": None if key is None else options.key_decoder(key),
        "value": None if value is None else options.value_decoder(value),
    }


def _decoded(text: str | None) -> Any:
    return json.loads(text) if text is not None and text.startswith("{") else text


def _bytes(name: str, content: bytes | None) -> dict[str, str | None]:
    if content is None:
        return {name: None}
    try:
        return {name: content.decode()}
    except UnicodeDecodeError:
        return {f"{name}Base64": base64.b64encode(content).decode()}
