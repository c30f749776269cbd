"""What is wrong between files: collected while dumping, printed on stderr at the end.

Five sections in this order, each over all files that have something to say in it:

    Mismatches in :<path>                                    offset index entries that point at another batch
    Found timestamp mismatch in :<path>                      time index entries with another timestamp
    Found out of order timestamp in :<path>                  time index entries not above the one before
    The following indexed offsets are not found in :<path>   time index entries without their batch
    Non-consecutive offsets in <path>                        records not at the previous offset + 1

Paths are absolute and come in the order of Java's HashMap. Where the tool dies of an exception no section is
printed. Source: `DumpLogSegments.main` and its `TimeIndexDumpErrors`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from logstore.disk.names import absolute_path

_CHUNK_ROW_COUNT = 1 << 16
_FIRST_TABLE_SIZE = 16


class Findings:
    """Collects what the sections say; all paths may be given as on the command line.

    Args:
        immediate: called with a line (no line end) that goes to stderr at once, not into a section.
    """

    def __init__(self, immediate: Callable[[str], None]) -> None:
        self.immediate = immediate
        self._index_mismatches: dict[str, dict[int, int]] = {}
        self._timestamp_mismatches: dict[str, list[tuple[int, int]]] = {}
        self._timestamps_out_of_order: dict[str, list[tuple[int, int]]] = {}
        self._offsets_not_found: dict[str, list[tuple[int, int]]] = {}
        self._non_consecutive: dict[str, list[tuple[NDArray[np.int64], NDArray[np.int64]]]] = {}

    def index_mismatch(self, path: str, index_offset: int, log_offset: int) -> None:
        """The batch at the entry's position ends with another offset; the last per index offset counts."""
        self._index_mismatches.setdefault(absolute_path(path), {})[index_offset] = log_offset

    def timestamp_mismatch(self, path: str, index_timestamp: int, log_timestamp: int) -> None:
        """The records of the entry's batch have another largest timestamp."""
        self._timestamp_mismatches.setdefault(absolute_path(path), []).append(
            (index_timestamp, log_timestamp)
        )

    def timestamp_out_of_order(self, path: str, index_timestamp: int, previous_timestamp: int) -> None:
        """The entry's timestamp is not above the previous entry's."""
        pairs = self._timestamps_out_of_order.setdefault(absolute_path(path), [])
        pairs.append((index_timestamp, previous_timestamp))

    def indexed_offset_not_found(self, path: str, index_offset: int, log_offset: int) -> None:
        """No batch ends with the entry's offset; `log_offset` is where the next one ends, else -1."""
        self._offsets_not_found.setdefault(absolute_path(path), []).append((index_offset, log_offset))

    def non_consecutive(self, path: str, previous: NDArray[np.int64], following: NDArray[np.int64]) -> None:
        """Pairs of record offsets that are not consecutive: int64 arrays of one length, kept as they are.

        May be called many times a file; of one previous offset the last pair counts.
        """
        if previous.size:
            self._non_consecutive.setdefault(absolute_path(path), []).append((previous, following))

    def lines(self) -> Iterator[str]:
        """The five sections, line by line without line ends."""
        for path in _hash_map_order(self._index_mismatches):
            yield f"Mismatches in :{path}"
            for index_offset, log_offset in sorted(self._index_mismatches[path].items(), reverse=True):
                yield f"  Index offset: {index_offset}, log offset: {log_offset}"
        for path in _hash_map_order(self._timestamp_mismatches):
            yield f"Found timestamp mismatch in :{path}"
            for index_timestamp, log_timestamp in self._timestamp_mismatches[path]:
                yield f"  Index timestamp: {index_timestamp}, log timestamp: {log_timestamp}"
        for path in _hash_map_order(self._timestamps_out_of_order):
            yield f"Found out of order timestamp in :{path}"
            for index_timestamp, previous_timestamp in self._timestamps_out_of_order[path]:
                yield f"  Index timestamp: {index_timestamp}, Previously indexed timestamp: {previous_timestamp}"
        for path in _hash_map_order(self._offsets_not_found):
            yield f"The following indexed offsets are not found in :{path}"
            for index_offset, log_offset in self._offsets_not_found[path]:
                yield f"Indexed offset: {index_offset}, found log offset: {log_offset}"
        for path in _hash_map_order(self._non_consecutive):
            yield f"Non-consecutive offsets in {path}"
            for previous, following in _last_pairs(self._non_consecutive[path]):
                yield f"  {previous} is followed by {following}"


def _last_pairs(chunks: list[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> Iterator[tuple[int, int]]:
    """All pairs by ascending first number; of equal ones only the last."""
    previous = np.concatenate([chunk[0] for chunk in chunks])
    following = np.concatenate([chunk[1] for chunk in chunks])
    order = np.argsort(previous, kind="stable")
    is_last = np.ones(order.size, dtype=bool)
    is_last[:-1] = previous[order[1:]] != previous[order[:-1]]
    order = order[is_last]
    for start in range(0, order.size, _CHUNK_ROW_COUNT):
        rows = order[start : start + _CHUNK_ROW_COUNT]
        yield from zip(previous[rows].tolist(), following[rows].tolist(), strict=True)


def _hash_map_order(keys: Iterable[str]) -> list[str]:
    """`keys`, in order of insertion, as a `java.util.HashMap<String, …>` iterates over them."""
    keys = list(keys)
    table_size = _FIRST_TABLE_SIZE
    while len(keys) > table_size * 3 // 4:
        table_size *= 2
    return sorted(keys, key=lambda key: _spread_hash(key) & (table_size - 1))


def _spread_hash(text: str) -> int:
    """`String.hashCode` with its high half mixed into the low one, as HashMap does."""
    units: Any = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    code = 0
    for unit in units:
        code = (31 * code + unit) & 0xFFFFFFFF
    return code ^ (code >> 16)
