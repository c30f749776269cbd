"""A caller of the dump kernels that does what they leave to Python, with buffers of any size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from logstore.columns.record_table import RecordTable, record_error
from logstore.kernels.decode import records as decode
from logstore.kernels.dump import batches as kernels
from logstore.kernels.dump import lines as dump_lines
from logstore.kernels.dump import state as dump_state
from logstore.kernels.dump.text import SLACK_SIZE
from logstore.kernels.scan import batches as scan
from tests.naive import dump_text as naive
from tests.naive.batch import Row
from tests.naive.record import Record, as_long
from tests.support.kernel_decode import record_at
from tests.support.kernel_forms import run_both

POOL = np.frombuffer(dump_lines.LITERALS, np.uint8)
BIG = 1 << 16
BLANK = 0x2A
UNTOUCHED = -77
PAUSES = (dump_state.OUT_FULL, dump_state.GAPS_FULL)


class DumpCaller:
    """State and buffers of a dump; `text` and `gaps` are what was taken out of them so far.

    Attributes:
        stops: how often each status was met.
        is_stuck: the last call found an empty buffer too small.
    """

    def __init__(self, options: naive.Options, *, out: int = BIG, gaps: int = 100, records: int = 50) -> None:
        self.options = options
        self.text = b""
        self.gaps: list[tuple[int, int]] = []
        self.stops: dict[int, int] = {}
        self._out = np.full(out + SLACK_SIZE, BLANK, np.uint8)
        self._gaps = np.full((2, gaps), UNTOUCHED, np.int64)
        self._records = np.full((decode.COLUMN_COUNT, records), UNTOUCHED, np.int64)
        self.state = np.full(dump_state.STATE_COUNT, UNTOUCHED, np.int64)
        self.state[dump_state.FLAGS] = _flags(options)
        self.state[dump_state.RECORD_CAPACITY] = records
        self.state[dump_state.OUT_CAPACITY] = out
        self.state[dump_state.GAP_CAPACITY] = gaps
        self.state[dump_state.OUT_SIZE] = 0
        self.state[dump_state.GAP_COUNT] = 0
        self.state[dump_state.PREVIOUS_OFFSET] = -1
        self.is_stuck = False

    def batches(self, data: npt.NDArray[np.uint8], table: npt.NDArray[np.int64], row_end: int) -> str | None:
        """All lines of the first rows of a batch table; the message of what stopped it."""
        state, capacity = self.state, table.shape[1]
        state[dump_state.ROW] = state[dump_state.STAGE] = 0
        while True:
            status = self._run(kernels.dump_batches, data, table, capacity, row_end, self._records, self._gaps, POOL)
            row = int(state[dump_state.ROW])
            if status == dump_state.DONE:
                assert row == row_end
                return None
            if status == dump_state.RECORD_ERROR:
                return record_error(int(state[dump_state.DECODE_STATUS]), state).message
            if status == dump_state.OTHER_ROW:
                assert state[dump_state.STAGE] == dump_state.NEW
                self._write(naive.foreign_batch(int(table[scan.POSITION, row])))
                state[dump_state.ROW] = row + 1
            elif self.is_stuck:
                chunk = RecordTable(data, self._records, int(state[decode.ROW_COUNT]))
                record = self._print_record(chunk, int(table[scan.ATTRIBUTES, row]), None)
                self._flush_gaps()
                previous = int(self.state[dump_state.PREVIOUS_OFFSET])
                if record.offset != as_long(previous + 1):
                    self.gaps.append((previous, record.offset))
                self.state[dump_state.PREVIOUS_OFFSET] = record.offset
            else:
                assert status in PAUSES

    def records(
        self,
        chunk: RecordTable,
        table: npt.NDArray[np.int64],
        parts: Sequence[tuple[int, bool, int]],
        texts: Sequence[bytes | None] | None = None,
    ) -> str | None:
        """All lines of some batches and of decoded records; the message of what stopped it."""
        state = self.state
        state[dump_state.ROW] = state[dump_state.STAGE] = state[dump_state.CHUNK_ROW] = 0
        state[dump_state.TEXT_POSITION] = 0
        state[dump_state.RECORD_CAPACITY] = chunk.matrix.shape[1]
        state[decode.END_POSITION] = chunk.data.size
        texts = [None] * chunk.count if texts is None else texts
        sizes = np.array([-1 if text is None else len(text) for text in texts], np.int64)
        arguments = chunk.data, chunk.matrix, table, table.shape[1], np.array(parts, np.int64), len(parts)
        content = np.frombuffer(b"".join(text or b"" for text in texts), np.uint8)
        while True:
            status = self._run(kernels.dump_records, *arguments, content, sizes, POOL)
            if status == dump_state.DONE:
                return None
            attributes = int(table[scan.ATTRIBUTES, parts[int(state[dump_state.ROW])][0]])
            if status == dump_state.UNKNOWN_CODEC:
                return f"Unknown compression type id: {attributes & 7}"
            if self.is_stuck:
                text = texts[int(state[dump_state.CHUNK_ROW])]
                self._print_record(chunk, attributes, text)
                state[dump_state.TEXT_POSITION] += len(text or b"")
            else:
                assert status == dump_state.OUT_FULL

    def finish(self, error: str | None = None) -> naive.Dump:
        """All that came out."""
        self._flush()
        self._flush_gaps()
        return naive.Dump(self.text, self.gaps, error)

    def _run(self, kernel: Any, *arguments: Any) -> int:
        """One call; empties what is full."""
        before = self._out[: self.state[dump_state.OUT_SIZE]].copy()
        status = run_both(kernel, *arguments, self._out, self.state)
        self.stops[status] = self.stops.get(status, 0) + 1
        assert before.size <= self.state[dump_state.OUT_SIZE] <= self.state[dump_state.OUT_CAPACITY]
        assert (self._out[: before.size] == before).all()
        self.is_stuck = status == dump_state.OUT_FULL and self.state[dump_state.OUT_SIZE] == 0
        if status == dump_state.OUT_FULL:
            self._flush()
        if status == dump_state.GAPS_FULL:
            self._flush_gaps()
        return status

    def _flush(self) -> None:
        self.text += self._out[: self.state[dump_state.OUT_SIZE]].tobytes()
        self._out[:] = BLANK
        self.state[dump_state.OUT_SIZE] = 0

    def _flush_gaps(self) -> None:
        count = int(self.state[dump_state.GAP_COUNT])
        self.gaps += zip(*self._gaps[:, :count].tolist(), strict=True)
        self.state[dump_state.GAP_COUNT] = 0

    def _write(self, text: bytes) -> None:
        self._flush()
        self.text += text

    def _print_record(self, chunk: RecordTable, attributes: int, text: bytes | None) -> Record:
        """Print the next record, which is larger than the buffer."""
        row = int(self.state[dump_state.CHUNK_ROW])
        record = record_at(chunk, row)
        self.state[dump_state.CHUNK_ROW] = row + 1
        self._write(naive.record_line(record, attributes, self.options, text))
        return record


def printed(data: bytes, ranges: Sequence[tuple[int, int]], offset: int = 0, *, contents: bool = True) -> bytes:
    """What both forms print of values, each a range of `data`; without contents of the records' metadata."""
    matrix = np.zeros((decode.COLUMN_COUNT, len(ranges)), np.int64)
    matrix[decode.OFFSET] = offset
    matrix[decode.KEY_SIZE] = -1
    matrix[decode.VALUE_POSITION], ends = np.array(ranges).T
    matrix[decode.VALUE_SIZE] = ends - matrix[decode.VALUE_POSITION]
    caller = DumpCaller(naive.Options(contents=contents, skip_metadata=contents), out=400 * len(ranges) + 3 * len(data))
    table = np.zeros((scan.COLUMN_COUNT, 1), np.int64)
    caller.records(RecordTable(np.frombuffer(data, np.uint8), matrix, len(ranges)), table, [(0, False, len(ranges))])
    return caller.finish().text


def printed_text(data: bytes) -> bytes:
    """How a value is printed; the fences of the compiled form go on like any character that is cut off."""
    return printed(data, [(0, len(data))]).removeprefix(b"| payload: ").removesuffix(b"\n")


def printed_number(value: int) -> bytes:
    return printed(b"", [(0, 0)], value, contents=False).removeprefix(b"| offset: ").partition(b" ")[0]


def table_of(rows: list[Row]) -> npt.NDArray[np.int64]:
    """The column matrix of some batches, with a spare row."""
    table = np.full((scan.COLUMN_COUNT, len(rows) + 1), UNTOUCHED, np.int64)
    for index, row in enumerate(rows):
        table[:, index] = row
    return table


def _flags(options: naive.Options) -> int:
    flags = dump_state.DEEP if options.deep else 0
    flags |= dump_state.CONTENTS if options.contents else 0
    return flags | (dump_state.SKIP_METADATA if options.skip_metadata else 0)
