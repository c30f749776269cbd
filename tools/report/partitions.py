"""Partitions on the page: a row each in a table, those in trouble first, and a section with pictures for each."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from .commands import command_line, shell_quoted
from .findings import severity_counts
from .markup import Markup, count_of, folded, name_text, prose, section, size_text, table, text
from .pictures import Placed, legend, mini_map, offset_map, timeline
from .segments import segments

if TYPE_CHECKING:
    from logstore.audit.directory_audit import AuditedDirectory
    from logstore.audit.facts.offsets import ReadableOffsets
    from logstore.audit.facts.transactions import PartitionTransactions
    from logstore.audit.finding import Finding
    from logstore.audit.open_transactions import OpenTransaction
    from logstore.audit.verify import PartitionFacts

SECTION_COUNT_MAX = 200  # with pictures; more would be a page that no browser likes
ROW_COUNT_MAX = 50  # of the table, before the rest is folded
OPEN_COUNT_MAX = 12  # partitions without trouble whose sections are not folded


class Shown(NamedTuple):
    """A partition with all that is known of it."""

    verified: PartitionFacts
    findings: Sequence[Finding]
    history: PartitionTransactions
    open: Sequence[OpenTransaction]
    view: ReadableOffsets

    @property
    def name(self) -> str:
        return self.verified.partition.name

    @property
    def is_trouble(self) -> bool:
        return bool(self.findings or self.open)


def shown_partitions(audited: AuditedDirectory) -> list[Shown]:
    """Those with findings first, then those with open transactions, then by name."""
    findings: dict[tuple[str | None, int | None], list[Finding]] = defaultdict(list)
    for finding in audited.findings:
        findings[finding.where.topic, finding.where.partition].append(finding)
    opened: dict[str, list[OpenTransaction]] = defaultdict(list)
    for one in audited.transactions.open:
        opened[one.name].append(one)
    found = []
    for verified in audited.partitions:
        key = verified.partition.key
        history, view = audited.transactions.histories.get(key), audited.groups.view(*key)
        if not verified.partition.is_live or history is None or view is None:
            continue  # its findings stand above
        found.append(Shown(verified, findings[key], history, opened[verified.partition.name], view))
    return sorted(found, key=_order)


def _order(one: Shown) -> tuple[bool, bool, bool, str, int]:
    files = one.verified.partition.files
    return not one.findings, not one.open, not one.view.end, files.topic, files.partition


def overview(partitions: Sequence[Shown]) -> str:
    """The table of all partitions."""
    rest = partitions[ROW_COUNT_MAX:]
    more = folded(f"{len(rest):,} more partitions", _rows(rest, ROW_COUNT_MAX), kind="more") if rest else ""
    return section("partitions", "Partitions", _rows(partitions[:ROW_COUNT_MAX], 0) + more)


def pictures_section(partitions: Sequence[Shown], names: dict[int, str], root: str) -> str:
    """Pictures of each, folded where nothing is to be seen and there are many."""
    parts = [
        _pictures(one, number, names, root, is_open=one.is_trouble or len(partitions) <= OPEN_COUNT_MAX)
        for number, one in enumerate(partitions[:SECTION_COUNT_MAX])
    ]
    if len(partitions) > SECTION_COUNT_MAX:
        count = len(partitions) - SECTION_COUNT_MAX
        parts.append(f'<p class="note">{count:,} more are not shown in pictures; those in trouble come first.</p>')
    return section("pictures", "Each partition", "".join(parts))


def _pictures(one: Shown, number: int, names: dict[int, str], root: str, *, is_open: bool) -> str:
    placed = [Placed(one.name, transaction) for transaction in one.history.transactions]
    return (
        f'<details class="partition" id="p{number}"{" open" if is_open else ""}>'
        f'<summary><h3>{name_text(one.name)}</h3> <span class="note">{_state(one)}</span></summary>'
        f"{_held_back(one, root)}{legend(one.view)}{offset_map(one.view)}"
        f"{timeline(placed, names, one.history.largest_timestamp)}{segments(one.verified)}</details>"
    )


def _rows(partitions: Sequence[Shown], first: int) -> str:
    heads = ("partition", "offsets", "log start", "last stable", "log end", "held back", "size", "findings")
    return table(heads, [_row(one, first + index) for index, one in enumerate(partitions)], minor=(2, 3, 4, 6))


def _row(one: Shown, number: int) -> tuple[object, ...]:
    name = name_text(one.name)
    link = Markup(f'<a href="#p{number}">{name}</a>') if number < SECTION_COUNT_MAX else name
    view, held = one.view, one.view.end - one.view.stable_end
    back = Markup(f'<span class="number{" held" if held else ""}">{held:,}</span>')
    found = Markup(_badge(one.findings)) if one.findings else Markup('<span class="fine">none</span>')
    return link, mini_map(view), view.start, view.stable_end, view.end, back, size_text(one.verified.size.size), found


def _badge(findings: Sequence[Finding]) -> str:
    severity = min(finding.severity.value for finding in findings)  # "error" comes before "warning"
    return f'<span class="badge {severity}">{severity_counts(findings)}</span>'


def _state(one: Shown) -> str:
    """What is to be known of it when its section is folded."""
    view, size = one.view, one.verified.size
    parts = [_badge(one.findings)] if one.findings else []
    parts.append(f"log start {view.start:,}, last stable {view.stable_end:,}, log end {view.end:,}")
    parts.append(f"{count_of(size.batch_count, 'batch')} in {count_of(size.segment_count, 'segment')}")
    return " · ".join(parts)


def _held_back(one: Shown, root: str) -> str:
    """Why read_committed consumers do not come to the log's end."""
    from logstore.audit.open_transactions import Explanation

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
