"""Partitions on the page: a row each in a table, those in trouble first, and a section with pictures for each."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from logstore.audit.directory_audit import AuditedDirectory
from logstore.audit.facts.offsets import ReadableOffsets
from logstore.audit.facts.transactions import PartitionTransactions
from logstore.audit.finding import Finding
from logstore.audit.open_transactions import Explanation, OpenTransaction
from logstore.audit.partition import unless_gone
from logstore.audit.verify import PartitionFacts
from logstore.disk.directory import SegmentFiles
from logstore.disk.mapped import segment_size

from ..tables import count_of
from .commands import command_line, shell_quoted
from .findings import severity_counts
from .markup import (
    Markup,
    byte_text,
    first_and_more,
    name_text,
    prose,
    section,
    size_text,
    swatches,
    table,
    text,
)
from .pictures import BAR_COUNT_MAX, Placed, legend, mini_map, offset_map, timeline
from .scale import percent

SECTION_COUNT_MAX = 200  # partitions with pictures; browsers do not like a page with more
ROW_COUNT_MAX = 50  # rows of the table, before the rest is folded
OPEN_COUNT_MAX = 12  # up to so many partitions, no section is folded
SEGMENT_COUNT_MAX = 40  # rows for the segments of one partition
_SUFFIXES = ("log", "index", "timeindex", "txnindex")

_Sizes = Sequence[int | None]  # bytes of the files of one segment, by suffix; None for a file that is not there


class Shown(NamedTuple):
    """A partition with the facts that the page shows."""

    verified: PartitionFacts
    findings: Sequence[Finding]
    open: Sequence[OpenTransaction]
    view: ReadableOffsets

    @property
    def name(self) -> str:
        return self.verified.partition.name

    @property
    def history(self) -> PartitionTransactions:
        return self.verified.transactions

    @property
    def placed(self) -> list[Placed]:
        """The transactions of a timeline."""
        return [Placed(self.name, transaction) for transaction in self.history.last(BAR_COUNT_MAX)]

    @property
    def is_trouble(self) -> bool:
        return bool(self.findings or self.open)


def shown_partitions(audited: AuditedDirectory) -> list[Shown]:
    """Return the partitions: those with findings first, then those with open transactions, then by name."""
    findings: dict[tuple[str | None, int | None], list[Finding]] = defaultdict(list)
    for finding in audited.findings:
        findings[finding.where.topic, finding.where.partition].append(finding)
    opened: dict[str, list[OpenTransaction]] = defaultdict(list)
    for one in audited.transactions.open:
        opened[one.name].append(one)
    found = []
    for verified in audited.partitions:
        key, view = verified.partition.key, audited.groups.view(*verified.partition.key)
        if verified.partition.is_live and view is not None:  # else its findings stand above
            found.append(Shown(verified, findings[key], opened[verified.partition.name], view))
    return sorted(found, key=_order)


def _order(one: Shown) -> tuple[bool, bool, bool, str, int]:
    files = one.verified.partition.files
    return not one.findings, not one.open, not one.view.end, files.topic, files.partition


def overview(partitions: Sequence[Shown]) -> str:
    """Return the table of all partitions."""
    heads = ("partition", "offsets", "log start", "last stable", "log end", "held back", "size", "findings")
    rows = [_row(one, number) for number, one in enumerate(partitions)]
    draw = partial(table, heads, minor=(2, 3, 4, 6))
    return section("partitions", "Partitions", first_and_more(rows, ROW_COUNT_MAX, draw, "{:,} more partitions"))


def pictures_section(partitions: Sequence[Shown], names: dict[int, str], root: str) -> str:
    """Return a section with pictures of each partition; of many partitions fold those without trouble."""
    parts = [
        _pictures(one, number, names, root, is_open=one.is_trouble or len(partitions) <= OPEN_COUNT_MAX)
        for number, one in enumerate(partitions[:SECTION_COUNT_MAX])
    ]
    if len(partitions) > SECTION_COUNT_MAX:
        count = len(partitions) - SECTION_COUNT_MAX
        parts.append(f'<p class="note">{count:,} more are not shown in pictures; those in trouble come first.</p>')
    return section("pictures", "Each partition", "".join(parts))


def _pictures(one: Shown, number: int, names: dict[int, str], root: str, *, is_open: bool) -> str:
    return (
        f'<details class="partition" id="p{number}"{" open" if is_open else ""}>'
        f'<summary><h3>{name_text(one.name)}</h3> <span class="note">{_state(one)}</span></summary>'
        f"{_held_back(one, root)}{legend(one.view)}{offset_map(one.view)}"
        f"{timeline(one.placed, names, one.history.largest_timestamp, len(one.history.table))}"
        f"{_segments(one.verified)}</details>"
    )


def _row(one: Shown, number: int) -> tuple[object, ...]:
    name = name_text(one.name)
    link = Markup(f'<a href="#p{number}">{name}</a>') if number < SECTION_COUNT_MAX else name
    view, held, size = one.view, one.view.end - one.view.stable_end, one.verified.evidence.size
    back = Markup(f'<span class="number{" held" if held else ""}">{held:,}</span>')
    found = Markup(_badge(one.findings)) if one.findings else Markup('<span class="fine">none</span>')
    return link, mini_map(view), view.start, view.stable_end, view.end, back, size_text(size), found


def _badge(findings: Sequence[Finding]) -> str:
    severity = min(finding.severity.value for finding in findings)  # "error" comes before "warning"
    return f'<span class="badge {severity}">{severity_counts(findings)}</span>'


def _state(one: Shown) -> str:
    """Return the line that stands beside the name, also when the section is folded."""
    view, read = one.view, one.verified.evidence
    parts = [_badge(one.findings)] if one.findings else []
    parts.append(f"log start {view.start:,}, last stable {view.stable_end:,}, log end {view.end:,}")
    parts.append(f"{count_of(read.batch_count, 'batch')} in {count_of(read.segment_count, 'segment')}")
    return " · ".join(parts)


def _held_back(one: Shown, root: str) -> str:
    """Return why read_committed consumers do not reach the end of the log."""
    if not one.open:
        return ""
    told = Explanation(one.history, one.open)
    held = one.view.end - one.view.stable_end
    return (
        f'<p class="held-back">read_committed consumers stop at offset {one.view.stable_end:,}, '
        f"{count_of(held, 'offset')} before the log's end: {text(told.why)}. "
        f"<b>What to do:</b> {prose(told.advice)}.</p>"
        f"{command_line(f'logstore txns explain {shell_quoted(os.path.join(root, one.name))}')}"
    )


def _segments(one: PartitionFacts) -> str:
    """Return a table with a row for each of the last segments, and the sizes of all of them."""
    rows = [(segment.base_offset, _sizes(segment)) for segment in one.partition.files.segments]
    if not rows:
        return '<p class="note">There is no segment.</p>'
    shown = rows[-SEGMENT_COUNT_MAX:]
    largest = max(_total(sizes) for _, sizes in shown)
    index_size = sum(_total(sizes[1:]) for _, sizes in rows)
    log_size = sum(_total(sizes[:1]) for _, sizes in rows)
    about = f"{count_of(len(rows), 'segment')}: logs {byte_text(log_size)}, indexes {byte_text(index_size)}."
    if len(shown) < len(rows):
        about += f" The last {len(shown)}:"
    heads = ("base offset", *(f".{suffix}" for suffix in _SUFFIXES), f"of {byte_text(largest)}")
    cells = [
        (base_offset, *(None if size is None else size_text(size) for size in sizes), _bar(sizes, largest))
        for base_offset, sizes in shown
    ]
    return f'<p class="legend">{about} {swatches(_SUFFIXES)}</p>{table(heads, cells, minor=(2, 3, 4))}'


def _bar(sizes: _Sizes, largest: int) -> Markup:
    """Draw the files of a segment one after the other, on a scale that ends at the size of the largest segment."""
    parts, position = [], 0
    for suffix, size in zip(_SUFFIXES, sizes, strict=True):
        if size:
            x, width = percent(position, largest), percent(size, largest)
            parts.append(f'<rect x="{x}" width="{width}" height="10" class="{suffix}"/>')
            position += size
    return Markup(f'<svg class="sizes" height="10" aria-hidden="true">{"".join(parts)}</svg>')


def _sizes(segment: SegmentFiles) -> _Sizes:
    paths = (segment.log, segment.offset_index, segment.time_index, segment.transaction_index)
    return [unless_gone(segment_size, path) for path in paths]


def _total(sizes: _Sizes) -> int:
    return sum(size or 0 for size in sizes)
