"""Lines of many rows at once, from a template: literals, numbers, and bytes that differ from row to row.

A kernel fills it, five times as fast as Python fills a format string. Python says what is in a line; the kernel writes
decimals, and backslashes before quotes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from logstore.columns.batch_table import ByteArray, Int64Array
from logstore.columns.window_memory import new_buffer
from logstore.kernels.dump.fill import FIELD, LITERAL, NUMBER, NUMBER_SIZE_MAX, QUOTED, TEXT, fill_lines
from logstore.kernels.dump.lines import LITERALS
from logstore.kernels.dump.text import SLACK_SIZE


class LineTemplate:
    """A template for `row_count` rows, at least one, to which parts are added from left to right.

    Args:
        data: uint8, what fields are of.
    """

    def __init__(self, row_count: int, data: ByteArray) -> None:
        self._row_count = row_count
        self._data = data
        self._parts: list[tuple[int, int, int]] = []
        self._columns: list[Int64Array] = []
        self._pool = bytearray()
        self._size_max = 0  # bytes of all lines

    def literal(self, text: bytes) -> None:
        """Add what is the same in all rows."""
        position = len(self._pool)
        self._pool += text
        if self._parts and self._parts[-1][0] == LITERAL:  # which ends where this one begins
            position = self._parts.pop()[1]
        self._parts.append((LITERAL, position, len(self._pool) - position))
        self._size_max += len(text) * self._row_count

    def numbers(self, values: Int64Array) -> None:
        """Add a decimal for each row."""
        if (values == values[0]).all():
            self.literal(b"%d" % values[0])
            return
        self._parts.append((NUMBER, len(self._columns), 0))
        self._columns.append(values)
        self._size_max += NUMBER_SIZE_MAX * self._row_count

    def texts(self, texts: Sequence[bytes], indices: Int64Array) -> None:
        """Add for each row the text of its index."""
        if (indices == indices[0]).all():
            self.literal(texts[indices[0]])
            return
        sizes = np.fromiter(map(len, texts), np.int64, len(texts))
        positions = len(self._pool) + np.cumsum(sizes) - sizes
        self._pool += b"".join(texts)
        self._slices(TEXT, positions[indices], sizes[indices])

    def fields(self, positions: Int64Array, sizes: Int64Array, *, has_quotes: bool) -> None:
        """Add for each row some bytes of the data, with backslashes if there are quotes; no size is below 0."""
        self._slices(QUOTED if has_quotes else FIELD, positions, sizes)

    def _slices(self, kind: int, positions: Int64Array, sizes: Int64Array) -> None:
        self._parts.append((kind, len(self._columns), 0))
        self._columns += [positions, sizes]
        self._size_max += int(sizes.sum()) * (2 if kind == QUOTED else 1)

    def lines(self) -> tuple[memoryview, Int64Array]:
        """Return the lines, one after another, and where each begins and the last one ends."""
        out = new_buffer(self._size_max + SLACK_SIZE)
        bounds = np.zeros(self._row_count + 1, np.int64)
        ends = bounds[1:]
        parts, pool = np.array(self._parts, np.int64), np.frombuffer(self._pool, np.uint8)
        columns = np.concatenate(self._columns) if self._columns else ends
        filled_count = fill_lines(
            *(self._data, self._data.size, pool, pool.size, parts, len(parts), columns, self._row_count),
            *(out, self._size_max, LITERALS, ends),
        )
        assert filled_count == self._row_count
        return out.data, bounds
