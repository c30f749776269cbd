"""Findings about an index beside its log, and about gaps: collected while dumping, printed on stderr at the end.

There are five sections, each for all files that have such findings:

    Mismatches in :<path>                                    offset index entries that point at another batch
    Found timestamp mismatch in :<path>                      time index entries with another timestamp
    Found out of order timestamp in :<path>                  time index entries not above the one before
    The following indexed offsets are not found in :<path>   time index entries without their batch
    Non-consecutive offsets in <path>                        records not at the previous offset + 1

Paths are absolute and in the order of Java's HashMap. An exception that ends the tool leaves no section printed.
Source: `DumpLogSegments.main` and its `TimeIndexDumpErrors`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from logstore.disk.names import absolute_path
from logstore.errors import CorruptRecordError

if TYPE_CHECKING:
    from logstore.columns.batch_table import BatchTable

    from .offset_pairs import OffsetArray

T = TypeVar("T")

_FIRST_TABLE_SIZE = 16


class Section(Enum):
    """The sections in their order: the title for a path, and the line for a pair of numbers."""

    INDEX_MISMATCH = ("Mismatches in :{}", "  Index offset: {}, log offset: {}")
    TIMESTAMP_MISMATCH = ("Found timestamp mismatch in :{}", "  Index timestamp: {}, log timestamp: {}")
    TIMESTAMP_ORDER = (
        "Found out of order timestamp in :{}",
        "  Index timestamp: {}, Previously indexed timestamp: {}",
    )
    OFFSET_NOT_FOUND = (
        "The following indexed offsets are not found in :{}",
        "Indexed offset: {}, found log offset: {}",
    )
    NON_CONSECUTIVE = ("Non-consecutive offsets in {}", "  {} is followed by {}")


class Findings:
    """The lines of all sections. Paths may be relative.

    Args:
        immediate: prints a line, given without its end, to stderr at once.

    Attributes:
        is_any_left_out: what was asked for is not in the output: a corrupt batch, a file deleted since it was listed.
    """

    def __init__(self, immediate: Callable[[str], None]) -> None:
        self.immediate = immediate
        self.is_any_left_out = False
        self._sections: dict[Section, _HashMap[Any]] = {section: _HashMap() for section in Section}

    def print(self) -> None:
        """Print all sections at once, and forget them."""
        for line in self.lines():
            self.immediate(line)
        self._sections = {section: _HashMap() for section in Section}

    def add(self, section: Section, path: str, first: int, second: int) -> None:
        """Add a pair to a section other than NON_CONSECUTIVE; of an offset in INDEX_MISMATCH the last pair counts."""
        self._sections[section].append(path, (first, second))

    def non_consecutive(
        self, path: str, previous: OffsetArray | memoryview, following: OffsetArray | memoryview
    ) -> None:
        """Add pairs of record offsets that are not consecutive: int64 arrays of one length.

        May be called many times for a file, best with thousands of pairs. Of a previous offset the last pair counts.
        """
        from .offset_pairs import OffsetPairs  # here, because a small log without gaps is dumped without numpy

        found = self._sections[Section.NON_CONSECUTIVE]
        start = 0
        if absolute_path(path) not in found and len(previous) > 1:
            # Java calls its map for each pair, but only the first two calls can matter for the order
            found.append(path, OffsetPairs(previous[:1], following[:1]))
            start = 1
        if len(previous):
            found.append(path, OffsetPairs(previous[start:], following[start:]))

    def left_out(self, path: str, table: BatchTable, row: int) -> None:
        """Tell at once that the records of a batch are left out, because its checksum is wrong."""
        from shlex import quote  # here, because a small dump starts sooner without it

        self.is_any_left_out = True
        error = CorruptRecordError(
            "Records are left out: the checksum of their batch is wrong",
            path=path,
            position=int(table.position[row]),
            offset=int(table.base_offset[row]),
            found=f"stored {table.row(row)['crc']:#010x}",
            advice=f"see them with `logstore dump {quote(path)} --print-data-log`",
        )
        self.immediate(f"logstore: {error}")

    def merge(self, other: Findings) -> None:
        """Add the findings of `other` behind all findings here."""
        self.is_any_left_out |= other.is_any_left_out
        for section, found in other._sections.items():
            self._sections[section].merge(found)

    def lines(self) -> Iterator[str]:
        """Yield the sections, line by line without line ends."""
        for section, found in self._sections.items():
            title, line = section.value
            for path in found.java_order():
                yield title.format(path)
                pairs: Iterable[tuple[int, int]] = found[path]
                if section is Section.INDEX_MISMATCH:
                    pairs = sorted(dict(pairs).items(), reverse=True)
                elif section is Section.NON_CONSECUTIVE:
                    from .offset_pairs import last_pairs

                    pairs = last_pairs(found[path])
                for pair in pairs:
                    yield line.format(*pair)


class Gaps:
    """Offsets of the records of a log that do not follow each other.

    Args:
        findings: gets them; None drops them.

    Attributes:
        previous_offset: of the last record; -1 before the first, as in Kafka's tool, where a log that begins above 0
            has a gap.
    """

    def __init__(self, path: str, findings: Findings | None, previous_offset: int = -1) -> None:
        self._path = path
        self._findings = findings
        self.previous_offset = previous_offset

    def add(self, previous: OffsetArray | memoryview, following: OffsetArray | memoryview) -> None:
        """Add pairs of offsets, the second of which do not follow the first."""
        if self._findings is not None and len(previous):
            self._findings.non_consecutive(self._path, previous, following)

    def note(self, offsets: OffsetArray) -> None:
        """Compare the next offsets, each with the one before."""
        if offsets.size and self._findings is not None:
            previous = offsets.copy()
            previous[0], previous[1:] = self.previous_offset, offsets[:-1]
            is_gap = offsets != previous + 1
            self.add(previous[is_gap], offsets[is_gap])
            self.previous_offset = int(offsets[-1])


class _HashMap(dict[str, list[T]]):
    """Lists by path, in the order of a `java.util.HashMap` that `computeIfAbsent` fills.

    That method doubles a table that is too full before it looks for the key, and puts a new key first in its bucket.
    """

    def __init__(self) -> None:
        super().__init__()
        self._table_size = _FIRST_TABLE_SIZE

    def append(self, path: str, finding: T) -> None:
        """Add to the list of the absolute `path`."""
        if len(self) > self._table_size * 3 // 4:
            self._table_size *= 2
        self.setdefault(absolute_path(path), []).append(finding)

    def merge(self, other: _HashMap[T]) -> None:
        """Append everything in `other`."""
        for path, findings in other.items():
            for finding in findings:
                self.append(path, finding)

    def java_order(self) -> list[str]:
        """Return the keys as Java iterates over them."""
        newest_first = list(self)[::-1]
        return sorted(newest_first, key=lambda path: _spread_hash(path) & (self._table_size - 1))


def _spread_hash(text: str) -> int:
    """Return `String.hashCode` as `HashMap.hash` mixes it: its high half into the low one."""
    units: Any = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
    code = 0
    for unit in units:
        code = (31 * code + unit) & 0xFFFFFFFF
    return code ^ (code >> 16)
