"""Records of a call as arrays, which is what kernels see: keys and values joined, and a row of numbers for each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from types import NoneType

import numpy as np

from ..columns.batch_table import Int64Array
from ..kernels.append_request import KEY_SIZE, ROW_WIDTH, TIMESTAMP, VALUE_SIZE

_BYTES, _BYTES_OR_NULL, _INTS = {bytes}, {bytes, NoneType}, {int}
_LIST_OR_NONE = (list, NoneType)
_ROW_COUNT_MIN = 1024


class RequestRows:
    """The rows of one request after the other, in memory that is used again.

    Attributes:
        rows: int64[n, ROW_WIDTH], n at least `count`.
        count: records of the last request.
    """

    __slots__ = ("_first", "count", "rows")

    def __init__(self) -> None:
        self.count = 0
        self._reserve(_ROW_COUNT_MIN)

    def _reserve(self, count: int) -> None:
        self.rows: Int64Array = np.empty((count, ROW_WIDTH), np.int64)
        self._first = self.rows.reshape(-1).data  # whose items are set more quickly than those of an array

    def take(
        self,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None,
        timestamps: Sequence[int] | None,
        now_ms: int,
    ) -> bytes | None:
        """Return the keys and values, one behind the other, and fill the rows; None for what is no list of such items.

        Items of exact types are taken only, so no code of the caller's runs.
        """
        if type(values) is not list or type(keys) not in _LIST_OR_NONE or type(timestamps) not in _LIST_OR_NONE:
            return None
        values = values.copy()  # which no other thread changes, as are the others
        keys = None if keys is None else keys[:]
        timestamps = None if timestamps is None else timestamps[:]
        self.count = count = len(values)
        if keys is None and timestamps is None and count == 1 and type(values[0]) is bytes:
            first = self._first
            first[KEY_SIZE], first[VALUE_SIZE], first[TIMESTAMP] = -1, len(values[0]), now_ms
            return values[0]
        if not count or (keys is not None and len(keys) != count):
            return None
        if timestamps is not None and (len(timestamps) != count or set(map(type, timestamps)) != _INTS):
            return None
        if count > len(self.rows):
            self._reserve(2 * count)
        rows = self.rows[:count]
        try:
            rows[:, TIMESTAMP] = now_ms if timestamps is None else timestamps
        except OverflowError:
            return None
        rows[:, KEY_SIZE] = -1
        if not _fill_sizes(rows, VALUE_SIZE, values) or (keys is not None and not _fill_sizes(rows, KEY_SIZE, keys)):
            return None
        parts = values if keys is None else chain.from_iterable(zip(keys, values, strict=True))
        return b"".join(filter(None, parts))


def _fill_sizes(rows: Int64Array, column: int, items: Sequence[bytes | None]) -> bool:
    kinds = set(map(type, items))
    if kinds == _BYTES:
        rows[:, column] = np.fromiter(map(len, items), np.int64, len(items))  # type: ignore[arg-type]
    elif kinds <= _BYTES_OR_NULL:
        rows[:, column] = [-1 if item is None else len(item) for item in items]
    return kinds <= _BYTES_OR_NULL
