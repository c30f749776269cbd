"""Prints typical batches of a log file as text, by kernels, which stop for the others.

It imports no numpy, whose import takes longer than the dump of a small log.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from logstore.kernels.decode import records as decode
from logstore.kernels.dump import batches as dump_text
from logstore.kernels.dump import lines as dump_lines
from logstore.kernels.dump import state as dump_state
from logstore.kernels.primitives import add64
from logstore.kernels.scan import batches as scan
from logstore.native.kernel import Kernel

from .options import DumpOptions
from .output import Output

if TYPE_CHECKING:
    from logstore.columns.batch_table import BatchTable

    from .findings import Findings

RECORD_CAPACITY, GAP_CAPACITY = 2048, 4096


class SmallTable(NamedTuple):
    """A `BatchTable` without numpy, for kernels; `matrix` is int64[scan.COLUMN_COUNT * capacity]."""

    matrix: memoryview
    capacity: int
    count: int  # type: ignore[assignment]  # of batches; it hides the method of tuples
    status: int
    next_position: int
    bad_length: int


def words(count: int) -> memoryview:
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


class OtherRows(Protocol):
    """Prints the rows that kernels stop for."""

    def go_on(self, status: int, table: BatchTable, row_end: int) -> None:
        """Print the row that `dump_batches` stopped for on its way to `row_end`, or raise its error."""


class LogPrinter:
    """One log file on its way to text.

    Args:
        other_rows: makes the printer of the rows that kernels stop for, at the first of them.
        is_deep: False prints no records, whatever the options say.

    Attributes:
        data: the whole file, bytes or uint8, 1-D.
        records: int64[decode.COLUMN_COUNT * RECORD_CAPACITY]: the chunk of records being printed.
        gaps: int64[2 * GAP_CAPACITY]: pairs of offsets that do not follow each other, not yet in the findings.
        state: int64[dump_state.STATE_COUNT]: progress of the kernels.
        findings: gets the gaps; None drops them.
    """

    def __init__(
        self,
        path: str,
        data: Any,
        options: DumpOptions,
        out: Output,
        findings: Findings | None,
        other_rows: Callable[[LogPrinter], OtherRows],
        *,
        is_deep: bool = True,
    ) -> None:
        self.path = path
        self.data = data
        self.options = options
        self.out = out
        self.findings = findings
        self._make_other_rows = other_rows
        self.records = words(decode.COLUMN_COUNT * RECORD_CAPACITY)
        self.gaps = words(2 * GAP_CAPACITY)
        self.state = words(dump_state.STATE_COUNT)
        self.state[dump_state.FLAGS] = (
            (dump_state.DEEP if is_deep and options.is_deep else 0)
            | (dump_state.CONTENTS if options.prints_contents else 0)
            | (dump_state.PYTHON_RECORDS if options.needs_python else 0)
            | (dump_state.SKIP_METADATA if options.skips_metadata else 0)
        )
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
        while (status := self.run(dump_text.dump_batches, RECORD_CAPACITY, *arguments)) != dump_state.DONE:
            self._other_rows.go_on(status, as_arrays(table), end)

    def run(self, dump: Kernel, record_capacity: int, *arguments: Any) -> int:
        """Run a kernel of `dump_text` until it stops for another reason than a full buffer; return its status.

        Args:
            record_capacity: columns of the matrix of records among the arguments.
        """
        state, out = self.state, self.out
        state[dump_state.RECORD_CAPACITY] = record_capacity
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
    def headers(self) -> LogPrinter:
        """Prints the lines of batches alone."""
        return LogPrinter(self.path, self.data, self.options, self.out, None, self._make_other_rows, is_deep=False)

    @cached_property
    def _other_rows(self) -> OtherRows:
        return self._make_other_rows(self)

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
