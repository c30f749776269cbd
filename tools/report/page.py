"""The page as a whole: a verdict, figures, findings, transactions, partitions."""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..timestamps import duration, utc_text
from .findings import findings_section, rule_links, severity_counts
from .markup import byte_text, count_of, folded, name_text, section, swatches, table, text
from .partitions import Shown, overview, sections, shown_partitions
from .pictures import Placed, timeline

if TYPE_CHECKING:
    from logstore.audit.directory_audit import AuditedDirectory
    from logstore.audit.open_transactions import OpenTransaction

OPEN_COUNT_MAX = 12  # open transactions in their table, before the rest is folded
FOLDED_COUNT_MAX = 500  # of them on the page at all
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # if markup gets through in spite of all, it stays dead


def page(path: str, audited: AuditedDirectory, now_ms: int) -> str:
    """The whole page about the data directory at `path`; ages are counted to `now_ms`."""
    partitions = shown_partitions(audited)
    return "".join(
        [
            '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>logstore report: {text(path)}</title><style>\n{_style()}</style></head><body>",
            f'<header><h1><bdi>{text(path)}</bdi></h1><p class="note">As of {utc_text(now_ms)} UTC. ',
            f"{_state(audited)}</p>{_verdict(audited, partitions)}{rule_links(audited.findings)}"
            f"{_figures(audited, partitions)}</header>",
            findings_section(audited.findings, path),
            _open_transactions(audited),
            _transactions(audited, partitions),
            overview(partitions),
            *sections(partitions, audited.transactions.log.owners),
            "</body></html>\n",
        ]
    )


def _style() -> str:
    found = pkgutil.get_data(__package__, "style.css")
    if found is None:
        raise FileNotFoundError("style.css")
    return found.decode()


def _state(audited: AuditedDirectory) -> str:
    if audited.transactions.is_closed:
        return "It was shut down cleanly."
    return "It was not shut down cleanly, or a broker is running on it."


def _verdict(audited: AuditedDirectory, partitions: Sequence[Shown]) -> str:
    """What is wrong, in two lines."""
    findings = audited.findings
    severity = min((finding.severity.value for finding in findings), default="fine")
    words = "Nothing is wrong." if not findings else f"{severity_counts(findings)} found."
    held = [one for one in partitions if one.open]
    more = "read_committed consumers get everything."
    if held:
        oldest = max(audited.transactions.open, key=lambda one: one.age_ms)
        more = (
            f"In {count_of(len(held), 'partition')} read_committed consumers wait for "
            f"{count_of(len(audited.transactions.open), 'open transaction')}; the oldest began "
            f"{_ago(oldest.age_ms)}."
        )
    return f'<div class="verdict {severity}"><strong>{words}</strong><span>{text(more)}</span></div>'


def _figures(audited: AuditedDirectory, partitions: Sequence[Shown]) -> str:
    sizes = [one.verified.size for one in partitions]
    figures = [
        (f"{len(partitions):,}", "partitions"),
        (f"{sum(size.segment_count for size in sizes):,}", "segments"),
        (byte_text(sum(size.size for size in sizes)), "in logs"),
        (f"{sum(size.batch_count for size in sizes):,}", "batches"),
        (f"{len(audited.transactions.log.history):,}", "transactional ids"),
        (f"{len(audited.transactions.open):,}", "open transactions"),
    ]
    return '<dl class="figures">' + "".join(f"<div><dt>{name}</dt><dd>{n}</dd></div>" for n, name in figures) + "</dl>"


def _open_transactions(audited: AuditedDirectory) -> str:
    found = sorted(audited.transactions.open, key=lambda one: -one.age_ms)
    if not found:
        return ""
    heads = ("partition", "transactional id", "producer id", "epoch", "first offset", "records", "began", "state")
    rows = [_open_row(one) for one in found[:FOLDED_COUNT_MAX]]
    inside = table(heads, rows[:OPEN_COUNT_MAX], minor=(2, 3, 5))
    if len(rows) > OPEN_COUNT_MAX:
        younger = table(heads, rows[OPEN_COUNT_MAX:], minor=(2, 3, 5))
        inside += folded(f"{len(rows) - OPEN_COUNT_MAX:,} younger ones", younger)
    if len(found) > len(rows):
        left_out = len(found) - len(rows)
        inside += f'<p class="note">{left_out:,} younger ones are left out; `logstore txns list` tells them all.</p>'
    return section("open", "Open transactions", inside)


def _open_row(one: OpenTransaction) -> tuple[object, ...]:
    transaction = one.transaction
    name = "not known" if one.transactional_id is None else name_text(one.transactional_id)
    ids = (transaction.producer_id, transaction.producer_epoch)
    counts = (transaction.first_offset, transaction.record_count)
    return name_text(one.name), name, *ids, *counts, _ago(one.age_ms), one.verdict.value


def _ago(age_ms: int) -> str:
    """When something began that is `age_ms` old; timestamps are a producer's, whose clock may be ahead."""
    return f"{duration(age_ms)} ago" if age_ms >= 0 else f"{duration(-age_ms)} ahead of now"


def _transactions(audited: AuditedDirectory, partitions: Sequence[Shown]) -> str:
    """All of the directory on one axis; one of several partitions is there once for each, in the same place."""
    placed = [Placed(one.name, transaction) for one in partitions for transaction in one.history.transactions]
    if not placed:
        return ""
    until_ms = max(one.history.largest_timestamp for one in partitions if len(one.history.table))
    legend = f'<p class="legend">{swatches(("committed", "aborted", "open"))}</p>'
    picture = timeline(placed, audited.transactions.log.owners, until_ms)
    return section("transactions", "Transactions in time", legend + picture)
