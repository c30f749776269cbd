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
from typing import TYPE_CHECKING, Any, TypeVar

from logstore.disk.names import absolute_path

if TYPE_CHECKING:
    from .offset_pairs import OffsetArray, OffsetPairs

T = TypeVar("T")

_FIRST_TABLE_SIZE = 16


class Findings:
    """Collects what the sections say; all paths may be given as on the command line.

    Args:
        immediate: called with a line (no line end) that goes to stderr at once, not into a section.
    """

    def __init__(self, immediate: Callable[[str], None]) -> None:
        self.immediate = immediate
        self._index_mismatches = _HashMap[tuple[int, int]]()
        self._timestamp_mismatches = _HashMap[tuple[int, int]]()
        self._timestamps_out_of_order = _HashMap[tuple[int, int]]()
        self._offsets_not_found = _HashMap[tuple[int, int]]()
        self._non_consecutive: _HashMap[OffsetPairs] = _HashMap()

    def index_mismatch(self, path: str, index_offset: int, log_offset: int) -> None:
        """The batch at the entry's position ends with another offset; the last per index offset counts."""
        self._index_mismatches.append(path, (index_offset, log_offset))

    def timestamp_mismatch(self, path: str, index_timestamp: int, log_timestamp: int) -> None:
        """The records of the entry's batch have another largest timestamp."""
        self._timestamp_mismatches.append(path, (index_timestamp, log_timestamp))

    def timestamp_out_of_order(self, path: str, index_timestamp: int, previous_timestamp: int) -> None:
        """The entry's timestamp is not above the previous entry's."""
        self._timestamps_out_of_order.append(path, (index_timestamp, previous_timestamp))

    def indexed_offset_not_found(self, path: str, index_offset: int, log_offset: int) -> None:
        """No batch ends with the entry's offset; `log_offset` is where the next one ends, else -1."""
        self._offsets_not_found.append(path, (index_offset, log_offset))

    def non_consecutive(
        self, path: str, previous: OffsetArray | memoryview, following: OffsetArray | memoryview
    ) -> None:
        """Pairs of record offsets that are not consecutive: int64 arrays of one length.

        May be called many times a file, best with thousands of pairs; of one previous offset the last pair counts.
        """
        from .offset_pairs import OffsetPairs  # numpy, which a log without gaps does without

        start = 0
        if absolute_path(path) not in self._non_consecutive and len(previous) > 1:
            # Java asks its map once a pair; for its order only the first two times matter
            self._non_consecutive.append(path, OffsetPairs(previous[:1], following[:1]))
            start = 1
        if len(previous):
            self._non_consecutive.append(path, OffsetPairs(previous[start:], following[start:]))

    def merge(self, other: Findings) -> None:
        """Add what `other` found, as if it had been found here, after all that was."""
        for own, others in zip(self._sections(), other._sections(), strict=True):
            own.merge(others)

    def _sections(self) -> tuple[_HashMap[Any], ...]:
        return (
            self._index_mismatches,
            self._timestamp_mismatches,
            self._timestamps_out_of_order,
            self._offsets_not_found,
            self._non_consecutive,
        )

    def lines(self) -> Iterator[str]:
        """The five sections, line by line without line ends."""
        yield from _section(
            "Mismatches in :{}",
            "  Index offset: {}, log offset: {}",
            self._index_mismatches,
            lambda mismatches: sorted(dict(mismatches).items(), reverse=True),
        )
        yield from _section(
            "Found timestamp mismatch in :{}",
            "  Index timestamp: {}, log timestamp: {}",
            self._timestamp_mismatches,
            iter,
        )
        yield from _section(
            "Found out of order timestamp in :{}",
            "  Index timestamp: {}, Previously indexed timestamp: {}",
            self._timestamps_out_of_order,
            iter,
        )
        yield from _section(
            "The following indexed offsets are not found in :{}",
            "Indexed offset: {}, found log offset: {}",
            self._offsets_not_found,
            iter,
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
    findings_by_path: _HashMap[T],
    pairs: Callable[[list[T]], Iterable[tuple[int, int]]],
) -> Iterator[str]:
    """`title` with each path, and `line` with each of the path's pairs."""
    for path in findings_by_path.java_order():
        yield title.format(path)
        for pair in pairs(findings_by_path[path]):
            yield line.format(*pair)


def _last_pairs(chunks: list[OffsetPairs]) -> Iterable[tuple[int, int]]:
    from .offset_pairs import last_pairs

    return last_pairs(chunks)


class _HashMap(dict[str, list[T]]):
    """Lists by path, in the order that a `java.util.HashMap` filled with `computeIfAbsent` has.

    That method doubles the table before it looks, when the one before left it too full, and puts a new key first
    in its bucket.
    """

    def __init__(self) -> None:
        super().__init__()
        self._table_size = _FIRST_TABLE_SIZE

    def append(self, path: str, finding: T) -> None:
        """Add to the list of the absolute `path`, a new one if there is none."""
        if len(self) > self._table_size * 3 // 4:
            self._table_size *= 2
        self.setdefault(absolute_path(path), []).append(finding)

    def merge(self, other: _HashMap[T]) -> None:
        """Append everything in `other`."""
        for path, findings in other.items():
            for finding in findings:
                self.append(path, finding)

    def java_order(self) -> list[str]:
        """The keys as Java iterates over them."""
        order = list(self)
        order.reverse()
        order.sort(key=lambda path: _spread_hash(path) & (self._table_size - 1))
        return order


def _spread_hash(text: str) -> int:
    """`String.hashCode` with its high half mixed into the low one, as HashMap does."""
    units: Any = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    code = 0
    for unit in units:
        code = (31 * code + unit) & 0xFFFFFFFF
    return code ^ (code >> 16)
