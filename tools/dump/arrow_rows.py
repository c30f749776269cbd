"""`--format arrow` and `--format parquet`: the rows of JSON as one table, with null where a type has no such column.

Arrow is a stream of record batches, as `pyarrow.ipc.open_stream` reads it. Types are those of `logstore.rows`, times
with null for none; `key` and `value` are text with a decoder; `control` is JSON. Rows stand in the order of the files.
"""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from logstore.layout.batch import NO_TIMESTAMP
from logstore.layout.utf8 import java_utf8
from logstore.rows import arrow
from logstore.rows.arrow import TIME
from logstore.rows.batches import RecordRow
from logstore.rows.dumped import DUMPED
from logstore.rows.schema import json_name

from .columns import ABSENT, Column, ColumnWriter, RowsOfType, Slices
from .options import DumpOptions
from .output import Output, Row

ROW_GROUP_ROW_COUNT = 128 * 1024
ROW_GROUP_SIZE = 64 * 1024 * 1024  # bytes in memory, of rows with large values


def schema_of(options: DumpOptions) -> pa.Schema:
    """Return the schema of all rows of a dump: the members of all row types, any of which may be missing in a row."""
    row_types = [RecordRow] if options.is_record_table else DUMPED.values()
    types: dict[str, pa.DataType] = {} if options.is_record_table else {"type": pa.string()}
    for row_type in row_types:
        types |= {json_name(field.name): field.type for field in arrow.schema_of(row_type)}
    content = pa.string() if options.needs_python else pa.binary()
    types |= {
        name: kind for name, kind in (("control", pa.string()), ("key", content), ("value", content)) if name in types
    }
    return pa.schema(list(types.items()))


class ArrowWriter(ColumnWriter):
    """Writes the rows of one file as record batches, to the table that `out` goes to."""

    def __init__(self, path: str, options: DumpOptions, out: Output) -> None:
        super().__init__(path, options, out)
        self._place = {name: _shown(value) for name, value in self._place.items()}
        self._schema = schema_of(options)
        self._times = {field.name for field in self._schema if field.type == TIME}
        assert out.put_batch is not None
        self._put = out.put_batch

    def write_rows(self, rows: list[Row]) -> None:
        if rows:
            shown = [{**self._place, **{name: _value(value) for name, value in row.items()}} for row in rows]
            for row in shown:
                row |= {name: None for name in self._times & row.keys() if row[name] == NO_TIMESTAMP}
            self._put(pa.RecordBatch.from_pylist(shown, self._schema))

    def write_interleaved(self, batches: RowsOfType, records: RowsOfType, starts: list[int]) -> None:
        table = pa.Table.from_batches([self._batch(batches), self._batch(records)])
        records_order = np.arange(batches.size, batches.size + records.size)
        order = np.insert(records_order, starts, np.arange(batches.size))
        for batch in table.take(pa.array(order)).combine_chunks().to_batches():
            self._put(batch)

    def _batch(self, rows: RowsOfType) -> pa.RecordBatch:
        same = {name: [value] * rows.size for name, value in {"type": rows.type, **self._place}.items()}
        columns: dict[str, Column] = same | rows.columns
        arrays = [
            _array(columns[field.name], field.type) if field.name in columns else pa.nulls(rows.size, field.type)
            for field in self._schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _array(column: Column, kind: pa.DataType) -> pa.Array:
    if isinstance(column, Slices):
        return pa.array(column.values(), kind)
    if isinstance(column, list):
        return pa.array([_value(value) for value in column], kind)
    if column.texts is not None:
        return pa.array(column.texts, kind).take(pa.array(column.values))
    if kind == TIME:
        return pa.array(column.values, pa.int64(), mask=column.is_null).view(kind)
    return pa.array(column.values, kind)


def _shown(value: Any) -> Any:
    """Return a member of the place of a row; a path that is no UTF-8 with escapes."""
    if not isinstance(value, str):
        return value
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _value(value: Any) -> Any:
    if value is ABSENT:
        return None
    return [{"key": java_utf8(key), "value": content} for key, content in value] if isinstance(value, list) else value


class _UnseekableFile:
    """A stream that cannot seek, as a file that pyarrow writes to."""

    closed = False

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._size = 0

    def write(self, content: Any) -> int:
        self._stream.write(bytes(content))
        self._size += len(content)
        return len(content)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        self._stream.flush()


class TableStream:
    """Standard output as an Arrow stream, or as a Parquet file in row groups of some ROW_GROUP_ROW_COUNT rows.

    A group ends sooner at ROW_GROUP_SIZE: it waits in memory.
    """

    def __init__(self, stdout: BinaryIO, options: DumpOptions) -> None:
        schema = schema_of(options)
        self._group_row_count = 1 if options.format == "arrow" else ROW_GROUP_ROW_COUNT
        if options.format == "arrow":
            self._writer = pa.ipc.new_stream(_UnseekableFile(stdout), schema)
        else:
            self._writer = pq.ParquetWriter(_UnseekableFile(stdout), schema)
        self._waiting: list[pa.RecordBatch] = []
        self._row_count = self._size = 0

    def put(self, batch: pa.RecordBatch) -> None:
        """Write a batch, in Parquet with others in a group."""
        self._waiting.append(batch)
        self._row_count += batch.num_rows
        self._size += batch.nbytes
        if self._row_count >= self._group_row_count or self._size >= ROW_GROUP_SIZE:
            self._write()

    def close(self) -> None:
        """Write what is left, and the end of the stream or file."""
        self._write()
        self._writer.close()

    def _write(self) -> None:
        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting))
            self._waiting, self._row_count, self._size = [], 0, 0
