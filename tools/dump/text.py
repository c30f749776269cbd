"""The text of Kafka's tool (`DumpLogSegments`).

Kernels print batches and records; the rows of old entries, indexes and snapshots are printed one by one. numpy is
imported for the first batch that `dump_batches` does not print, because its import takes longer than the dump of a
small log.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from logstore.disk.names import file_name
from logstore.errors import LogstoreError
from logstore.kernels.decode import records as decode
from logstore.kernels.dump import batches as dump_text
from logstore.kernels.dump import state as slots
from logstore.kernels.dump.lines import LITERALS
from logstore.kernels.scan import batches as scan
from logstore.layout.batch import CODEC_MASK, CONTROL_FLAG
from logstore.native.kernel import Kernel

from .options import DumpOptions
from .output import Output, Row

if TYPE_CHECKING:
    from logstore.columns.batch_table import BatchTable, Int64Array
    from logstore.columns.decoded_records import Records

    from .findings import Gaps

RECORD_CAPACITY, GAP_CAPACITY = 2048, 4096


def words(count: int) -> memoryview:
    """Return zeros, int64[count]."""
    return memoryview(bytearray(8 * count)).cast("q")


class SmallTable(NamedTuple):
    """A `BatchTable` without numpy, for kernels; `matrix` is int64[scan.COLUMN_COUNT * capacity]."""

    matrix: memoryview
    capacity: int
    count: int  # type: ignore[assignment]  # of batches; it hides the method of tuples
    status: int
    next_position: int
    bad_length: int

    def to_arrays(self) -> BatchTable:
        """Return the table with arrays of numpy."""
        import numpy as np

        from logstore.columns.batch_table import BatchTable

        matrix = np.frombuffer(self.matrix, np.int64).reshape(scan.COLUMN_COUNT, -1)
        return BatchTable(matrix, self.count, self.status, self.next_position, self.bad_length)


class TextWriter:
    """Writes a file as lines; see `output.Writer`.

    Args:
        data: the whole log, bytes or uint8, 1-D.
    """

    def __init__(self, path: str, options: DumpOptions, out: Output, data: Any = b"") -> None:
        self._path = path
        self._data = data
        self._options = options
        self._out = out

    def write_plain(self, table: SmallTable | BatchTable, row: int, gaps: Gaps) -> int:
        """Print batches from `row` on, and in a deep dump their records; return the first row that is left out."""
        state = self._state
        state[slots.ROW], state[slots.STAGE] = row, slots.NEW
        state[slots.PREVIOUS_OFFSET] = gaps.previous_offset
        pairs, status = self._pairs, slots.GAPS_FULL
        while status == slots.GAPS_FULL:
            arguments = self._data, table.matrix, table.capacity, table.count, self._chunk, pairs
            status = self._run(dump_text.dump_batches, state, *arguments)
            count = state[slots.GAP_COUNT]
            gaps.add(pairs[:count], pairs[GAP_CAPACITY:][:count])
            state[slots.GAP_COUNT] = 0
        gaps.previous_offset = state[slots.PREVIOUS_OFFSET]
        if status == slots.RECORD_ERROR:
            import numpy as np

            from logstore.columns.record_table import record_error

            raise record_error(state[slots.DECODE_STATUS], np.frombuffer(state, np.int64))
        return state[slots.ROW]

    def write_batches(self, table: BatchTable, rows: Int64Array) -> None:
        import numpy as np

        parts = np.stack([rows, np.ones_like(rows), np.zeros_like(rows)], axis=1)
        nothing = np.empty(0, np.int64)
        self._print_parts(table, parts, b"", nothing, b"", nothing)

    def write_records(self, table: BatchTable, batches: Int64Array, window: Records, records: Int64Array) -> None:
        import numpy as np

        matrix, rows = window.matrix, window.rows
        if records.size < window.count:
            matrix, rows = np.ascontiguousarray(matrix[:, records]), rows[records]
        texts, sizes, error = self._texts(window, records, table.attributes[rows] & CONTROL_FLAG != 0)
        if error is not None:
            rows = rows[: sizes.size]
            batches = batches[batches <= rows[-1]]
        all_rows = np.union1d(batches, rows)
        ends = rows.searchsorted(all_rows, "right")
        parts = np.stack([all_rows, np.isin(all_rows, batches), ends], axis=1)
        self._print_parts(table, parts, window.data, matrix, texts, sizes)
        if error is not None:
            raise error

    def write_rows(self, rows: list[Row]) -> None:
        self._out.write(b"".join([f"{_text(row, self._path)}\n".encode("utf-8", "replace") for row in rows]))

    def write_part(self, row: Row) -> None:
        self._out.write(_text(row, self._path).encode())

    @cached_property
    def _state(self) -> memoryview:
        state = self._new_state(RECORD_CAPACITY)
        state[slots.GAP_CAPACITY] = GAP_CAPACITY
        return state

    @cached_property
    def _chunk(self) -> memoryview:
        """The records that `dump_batches` prints, int64[decode.COLUMN_COUNT * RECORD_CAPACITY]."""
        return words(decode.COLUMN_COUNT * RECORD_CAPACITY)

    @cached_property
    def _pairs(self) -> memoryview:
        """Offsets that do not follow each other, int64[2 * GAP_CAPACITY]."""
        return words(2 * GAP_CAPACITY)

    def _new_state(self, record_capacity: int) -> memoryview:
        state, options = words(slots.STATE_COUNT), self._options
        state[slots.FLAGS] = (
            (slots.DEEP if options.is_deep else 0)
            | (slots.CONTENTS if options.prints_contents else 0)
            | (slots.SKIP_METADATA if options.skips_metadata else 0)
        )
        state[slots.RECORD_CAPACITY] = record_capacity
        return state

    def _run(self, dump: Kernel, state: memoryview, *arguments: Any) -> int:
        """Run a kernel until it stops for another reason than a full buffer; return its status."""
        out = self._out
        while True:
            state[slots.OUT_SIZE], state[slots.OUT_CAPACITY] = out.size, out.capacity
            status = dump(*arguments, LITERALS, out.array, state)
            out.size = state[slots.OUT_SIZE]
            if status != slots.OUT_FULL:
                return status
            out.make_room()

    def _print_parts(
        self, table: BatchTable, parts: Int64Array, data: Any, matrix: Int64Array, texts: bytes, sizes: Int64Array
    ) -> None:
        """Run `dump_records`; raise the error of a codec that Kafka does not know behind half of its batch's line."""
        state = self._new_state(matrix.shape[-1])
        state[decode.END_POSITION] = len(data)
        arguments = data, matrix, table.matrix, table.capacity, parts, len(parts), texts, sizes
        if self._run(dump_text.dump_records, state, *arguments) == slots.UNKNOWN_CODEC:
            from logstore.columns.record_table import unknown_codec

            row = int(parts[state[slots.ROW], 0])
            raise unknown_codec(int(table.attributes[row]) & CODEC_MASK, int(table.position[row]))

    def _texts(
        self, window: Records, records: Int64Array, is_control: Any
    ) -> tuple[bytes, Int64Array, LogstoreError | None]:
        """Return the texts that end the lines of records, their sizes (-1: none), and the error that ends them."""
        import numpy as np

        options, texts = self._options, list[bytes]()
        sizes = np.full(records.size, -1)
        is_asked = is_control & (not options.skips_metadata) | ~is_control & options.needs_python
        for index in np.flatnonzero(is_asked).tolist():
            try:
                texts.append(self._record_end(window, int(records[index]), bool(is_control[index])))
            except LogstoreError as error:
                sizes[index] = 0  # its metadata is printed
                return b"".join(texts), sizes[: index + 1], error
            sizes[index] = len(texts[-1])
        return b"".join(texts), sizes, None

    def _record_end(self, window: Records, index: int, is_control: bool) -> bytes:
        """Return what stands behind the metadata of a record; raise the error of a decoder."""
        from .decoders import control_record_text  # here, because the import takes longer than a dump

        options, key, value = self._options, window.key(index), window.value(index)
        if is_control:
            text = control_record_text(key, value, options.kafka_version)
        else:
            key_text, value_text = options.record_texts(int(window.offset[index]), key, value)
            text = _joined("| " if options.skips_metadata else " ", {"key": key_text, "payload": value_text})
        return text.encode("utf-8", "replace") + b"\n"


_FIELDS = {  # in the order of Kafka's lines
    "batch": ("lastOffset", "position", "maxTimestamp", "size", "magic", "codec", "crc", "isValid"),
    "record": ("offset", "timestamp", "keySize", "valueSize", "isValid", "crc", "key", "value"),
}
_LABELS = {
    "batch": {"lastOffset": "offset", "codec": "compresscodec", "isValid": "isvalid"},
    "record": {"value": "payload"},
}


def _text(row: Row, path: str) -> str:
    """Return the line of a row, or the beginning that its fields make."""
    of = row["type"]
    if of == "message":
        return str(row["message"])
    if of == "trailer":
        return f"Found {row['invalidBytes']} invalid bytes at the end of {file_name(path)}"
    if of not in _FIELDS:  # an entry of an index or a snapshot
        fields = {name: "OptionalLong.empty" if value is None else value for name, value in row.items()}
        del fields["type"]
        return _joined("", fields)
    labels = _LABELS[of] | dict.fromkeys(("timestamp", "maxTimestamp"), str(row.get("timestampType")))
    fields = {labels.get(name, name): row[name] for name in _FIELDS[of] if name in row}
    return _joined("| " if of == "record" else "", fields)


def _joined(prefix: str, fields: Row) -> str:
    """Return the names and values of the fields that are not None."""
    texts = [
        f"{name}: {str(value).lower() if isinstance(value, bool) else value}"
        for name, value in fields.items()
        if value is not None
    ]
    return prefix + " ".join(texts) if texts else ""
