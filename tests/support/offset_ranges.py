"""Ranges of offsets one by one, where an audit and a report have them in columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from logstore.audit.facts.offsets import Label, OffsetRanges, RangeColumns

LABELS = list(Label)


class OffsetRange(NamedTuple):
    """Offsets `start` … `end` - 1, and the records there."""

    start: int
    end: int
    label: Label
    record_count: int


def each_range(ranges: OffsetRanges) -> Iterator[OffsetRange]:
    """Yield the ranges of a partition."""
    for block in ranges.blocks():
        for start, end, label, count in zip(*(column.tolist() for column in block), strict=True):
            yield OffsetRange(start, end, LABELS[label], count)


class MadeRanges(OffsetRanges):
    """Ranges of no partition."""

    def __init__(self, ranges: Sequence[OffsetRange]) -> None:
        self._made = ranges

    def blocks(self) -> Iterator[RangeColumns]:
        """Yield all at once."""
        rows = [(one.start, one.end, LABELS.index(one.label), one.record_count) for one in self._made]
        yield RangeColumns(*np.array(rows, np.int64).T)
