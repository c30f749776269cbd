"""What a log or a store has acknowledged, and what of it is not so when it is opened again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.naive.batch import V2_HEADER

Place = tuple[str, int]


class Span(NamedTuple):
    """The offsets of a batch, both inclusive."""

    first: int
    last: int


@dataclass
class Transaction:
    """Values of one transaction; `outcome` is "committed" or "aborted" once that was acknowledged."""

    values: list[bytes] = field(default_factory=list)
    outcome: str = ""


@dataclass
class Acknowledged:
    """Records are told by their values, of which no two are alike.

    Attributes:
        told: where each record is that was acknowledged.
        tried: records that were to be appended, in batches: each is there as a whole, once, or not at all.
        transactions: in the order in which they began.
        keys: the key of each value, for a compacted log.
        start_max: by place the largest offset that a log may start at; 0 where nothing was to be deleted.
    """

    told: dict[bytes, tuple[Place, int]] = field(default_factory=dict)
    tried: list[tuple[bytes, ...]] = field(default_factory=list)
    transactions: list[Transaction] = field(default_factory=list)
    keys: dict[bytes, bytes] = field(default_factory=dict)
    start_max: dict[Place, int] = field(default_factory=dict)

    def tell(self, values: Iterable[bytes], place: Place, first_offset: int) -> None:
        """These records have offsets from `first_offset` on."""
        for offset, value in enumerate(values, first_offset):
            self.told[value] = place, offset

    def problems(
        self, records: Mapping[Place, list[tuple[int, bytes]]], spans: Mapping[Place, list[Span]]
    ) -> list[str]:
        """What is wrong with the records that are there, and with the batches that they are in."""
        found: dict[bytes, list[tuple[Place, int]]] = defaultdict(list)
        for place, pairs in records.items():
            for offset, value in pairs:
                found[value].append((place, offset))
        latest: dict[bytes, tuple[Place, int]] = {}
        for value, at in found.items():
            if value in self.keys:
                latest[self.keys[value]] = max(at[-1], latest.get(self.keys[value], at[-1]))
        told = [*self._wrong_records(found, latest), *self._torn(found)]
        for place, batches in spans.items():
            told += _holes(place, batches, self.start_max.get(place, 0), has_holes=bool(self.keys))
        return told

    def _wrong_records(
        self, found: Mapping[bytes, list[tuple[Place, int]]], latest: Mapping[bytes, tuple[Place, int]]
    ) -> Iterator[str]:
        for value, at in found.items():
            if len(at) > 1:
                yield f"{value[:20]!r} is there {len(at)} times: {at[:3]}"
        known = {value for values in self.tried for value in values}
        unknown = [value for value in found if value not in self.told and value not in known]
        if unknown:
            yield f"{len(unknown)} records that nobody wrote: {unknown[0][:20]!r}"
        for value, (place, offset) in self.told.items():
            at = found.get(value, [])
            may_be_gone = offset < self.start_max.get(place, 0) or self._is_outdated(value, (place, offset), latest)
            if at[:1] != [(place, offset)] and (at or not may_be_gone):
                yield f"{value[:20]!r} was acknowledged at {place} {offset} and is at {at[:3]}"

    def _is_outdated(self, value: bytes, at: tuple[Place, int], latest: Mapping[bytes, tuple[Place, int]]) -> bool:
        """Whether a compacted log may have dropped the record."""
        key = self.keys.get(value)
        return key is not None and key in latest and latest[key] > at

    def _torn(self, found: Mapping[bytes, object]) -> Iterator[str]:
        if self.keys or self.start_max:
            return
        for values in self.tried:
            there = sum(value in found for value in values)
            if 0 < there < len(values):
                yield f"{there} of the {len(values)} records of a batch are there: {values[0][:20]!r}"

    def unsettled(self, committed: Collection[bytes]) -> list[str]:
        """What is wrong with what `read_committed` shows."""
        seen, told = set(committed), []
        for number, one in enumerate(self.transactions):
            there = sum(value in seen for value in one.values)
            name = f"transaction {number} of {len(self.transactions)} {one.values[:1]}"
            if one.outcome == "aborted" and there:
                told.append(f"{name} was aborted and is visible")
            elif one.outcome == "committed" and there < len(one.values):
                told.append(f"{name} was committed, and {there} of {len(one.values)} records are visible")
            elif 0 < there < len(one.values):
                told.append(f"{name} is torn: {there} of {len(one.values)} records are visible")
        return told


def _holes(place: Place, batches: list[Span], start_max: int, *, has_holes: bool) -> Iterator[str]:
    expected = 0
    for number, (first, last) in enumerate(batches):
        is_right = first >= expected if has_holes or (number == 0 and first <= start_max) else first == expected
        if not is_right:
            yield f"{place}: a batch of offsets {first} to {last} where {expected} is to come"
        expected = last + 1


def spans_of(directory: Path) -> list[Span]:
    """The offsets of each batch in a partition's directory, read without any code of ours."""
    spans = []
    for path in sorted(directory.glob("*.log")):
        data, position = path.read_bytes(), 0
        while position + V2_HEADER.size <= len(data):
            header = V2_HEADER.unpack_from(data, position)
            spans.append(Span(header[0], header[0] + header[6]))
            position += 12 + header[1]
    return spans
