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
        yield from _section(
            "Mismatches in :{}",
            "  Index offset: {}, log offset: {}",
            self._index_mismatches,
            lambda log_offsets: sorted(log_offsets.items(), reverse=True),
        )
        yield from _section(
            "Found timestamp mismatch in :{}",
            "  Index timestamp: {}, log timestamp: {}",
            self._timestamp_mismatches,
        )
        yield from _section(
            "Found out of order timestamp in :{}",
            "  Index timestamp: {}, Previously indexed timestamp: {}",
            self._timestamps_out_of_order,
        )
        yield from _section(
            "The following indexed offsets are not found in :{}",
            "Indexed offset: {}, found log offset: {}",
            self._offsets_not_found,
        )
        yield from _section(
            "Non-consecutive offsets in {}",
            "  {} is followed by {}",
            self._non_consecutive,
            _last_pairs,
        )


def _section(
    title: str,
    line: str,
    findings_by_path: dict[str, Any],
    pairs: Callable[[Any], Iterable[tuple[int, int]]] = iter,
) -> Iterator[str]:
    """`title` with each path, and `line` with each of the path's pairs."""
    for path in _hash_map_order(findings_by_path):
        yield title.format(path)
        for pair in pairs(findings_by_path[path]):
            yield line.format(*pair)


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
