"""Rules about `.index` and `.timeindex`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...columns.batch_table import BoolArray, Int64Array
from ..facts.indexes import IndexFacts, OffsetIndexFacts, TimeIndexFacts
from ..finding import Broken, rule
from .log import ERROR, WARNING

# without `.index` a broker reads the segment, and makes both; without `.timeindex` it makes an empty one
_REBUILD = (
    "`logstore repair`; or delete the segment's `.index` while the broker is down: both indexes are made anew on its "
    "next start"
)


@rule(ERROR, _REBUILD)
def offset_index(index: OffsetIndexFacts) -> Iterator[Broken]:
    """An entry of an `.index` does not lead to the batch of its offset."""
    size = index.evidence.segment_size
    is_beyond = index.values >= size
    leads_nowhere = ~index.is_proven & ~(is_beyond & index.evidence.is_growing)
    kept = index.kept(index.wrong | leads_nowhere, is_beyond)
    yield from _odd_size(index)
    yield from _order(index, index.offsets[:kept], "offset", is_strict=True)
    for entry in np.flatnonzero((index.wrong | leads_nowhere)[:kept]).tolist():
        offset, position = int(index.offsets[entry]), int(index.values[entry])
        if leads_nowhere[entry]:
            yield index.where(entry), f"a position of a batch in {size} bytes of log", position
            continue
        expected = f"offset {int(index.batch_offsets[entry])} at byte {int(index.batch_values[entry])} of the log"
        yield index.where(entry), expected, f"offset {offset} at byte {position}"


@rule(WARNING, "a broker makes it anew on its next start")
def offset_index_missing(index: OffsetIndexFacts) -> Iterator[Broken]:
    """A segment has no `.index`."""
    return _missing(index)


@rule(ERROR, "`logstore repair`")
def time_index(index: TimeIndexFacts) -> Iterator[Broken]:
    """An entry of a `.timeindex` is not what the log says."""
    leads_nowhere = ~index.is_proven & _is_judged(index)
    kept = index.kept(index.wrong | leads_nowhere, index.offsets >= index.evidence.end_offset)
    yield from _odd_size(index)
    yield from _order(index, index.values[:kept], "timestamp", is_strict=True)
    yield from _order(index, index.offsets[:kept], "offset", is_strict=False)
    for entry in np.flatnonzero((index.wrong | leads_nowhere)[:kept]).tolist():
        expected = "an offset of a batch in the segment"
        if not leads_nowhere[entry]:
            expected = f"a batch that ends with offset {int(index.batch_offsets[entry])} and has the largest timestamp "
            expected += f"so far, {int(index.batch_values[entry])}"
        found = f"timestamp {int(index.values[entry])} at offset {int(index.offsets[entry])}"
        yield index.where(entry), expected, found


@rule(WARNING, "a broker goes on with an empty one, and looks for times in vain: `logstore repair`")
def time_index_missing(index: TimeIndexFacts) -> Iterator[Broken]:
    """A segment has no `.timeindex`."""
    return _missing(index)


@rule(WARNING, "retention by time goes by that entry: `logstore repair`")
def time_index_end(index: TimeIndexFacts) -> Iterator[Broken]:
    """The last entry of a closed segment's `.timeindex` is not its largest timestamp."""
    is_closed = not index.evidence.partition.is_active(index.segment)
    last = int(index.values[-1]) if index.values.size else -1
    if _is_judged(index) and is_closed and index.path is not None and last < index.largest:
        yield index.where(), f"timestamp {index.largest} at the end", last


@rule(ERROR, _REBUILD)
def index_zeros(index: IndexFacts) -> Iterator[Broken]:
    """An index that is not going to be rebuilt ends in zeros, which count as entries."""
    if index.zero_count and not index.is_in_use:
        yield index.where(), "entries up to the end", f"{index.zero_count} of zeros"


def _is_judged(index: TimeIndexFacts) -> bool:
    """Return whether all batches of the segment are known."""
    return not (index.evidence.segment_has_damage or index.evidence.is_growing)


def _missing(index: IndexFacts) -> Iterator[Broken]:
    if index.path is None and not index.is_in_use:
        yield index.evidence.partition.where(index.segment.log), f"a {index.suffix} beside it", "none"


def _odd_size(index: IndexFacts) -> Iterator[Broken]:
    """Find a size of no whole entries; an index in use may have been copied while it was made smaller."""
    if index.size_bytes % index.entry_size and not index.is_in_use:
        yield index.where(), f"a multiple of {index.entry_size} bytes", index.size_bytes


def _order(index: IndexFacts, values: Int64Array, name: str, *, is_strict: bool) -> Iterator[Broken]:
    wrong: BoolArray = values[1:] <= values[:-1] if is_strict else values[1:] < values[:-1]
    for entry in np.flatnonzero(wrong).tolist():
        above = "above" if is_strict else "not below"
        yield index.where(), f"entry {entry + 1} with a {name} {above} {values[entry]}", int(values[entry + 1])
