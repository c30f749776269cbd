"""The page as a whole: a verdict, figures, findings, transactions, partitions."""

from __future__ import annotations

import base64
import hashlib
import pkgutil
import re
from collections.abc import Sequence
from functools import partial

from logstore.audit.cluster import Cluster
from logstore.audit.directory_audit import AuditedDirectory
from logstore.audit.durations import duration
from logstore.audit.open_transactions import OpenTransaction, held_back
from logstore.layout.meta_properties import MetaProperties

from .commands import command_line, shell_quoted
from .findings import findings_section, rule_links, severity_counts, unasked_lines
from .markup import Markup, byte_text, first_and_more, name_text, section, swatches, table, text, time_text
from .partitions import Shown, overview, pictures_section, shown_partitions
from .pictures import timeline

PAGE_START = b"<!DOCTYPE html>"
OPEN_COUNT_MAX = 12  # open transactions in their table, before the rest is folded
FOLDED_COUNT_MAX = 500  # open transactions on the page at all
_MINOR = (2, 3, 4, 5)  # their columns that a narrow window leaves out
_HEADING = re.compile('<section id="([^"]*)"><h2>([^<]*)</h2>')


def page(path: str, audited: AuditedDirectory, now_ms: int) -> str:
    """Return the page about the data directory at `path`; ages are counted to `now_ms`."""
    partitions, script = shown_partitions(audited), _asset("script.js")
    whose, time = _identity(path), time_text(now_ms)
    parts = [
        findings_section(audited.findings, path),
        _open_transactions(path, audited),
        _transactions(audited, partitions),
        overview(partitions),
        pictures_section(partitions, audited.transactions.log.owners, path),
    ]
    return "".join(
        [
            f'{PAGE_START.decode()}\n<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(script)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>logstore report: {text(whose)}, {text(path)}, {time}</title>",
            f"<style>\n{_asset('style.css')}</style></head><body>",
            f'<header><h1><bdi>{text(path)}</bdi></h1><p class="note">{text(whose)}, {time}. ',
            f"{_state(audited)}</p>{_verdict(audited)}{rule_links(audited.findings)}",
            f"{_figures(audited, partitions)}{_contents(parts)}</header>",
            *parts,
            f"<script>{script}</script></body></html>\n",
        ]
    )


def _asset(name: str) -> str:
    found = pkgutil.get_data(__package__, name)
    if found is None:
        raise FileNotFoundError(name)
    return found.decode()


def _policy(script: str) -> str:
    """Return a policy by which the browser runs our script alone, so that injected markup could run nothing."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def _identity(path: str) -> str:
    """Return the cluster and the node that `meta.properties` names."""
    found = Cluster(path).identity
    ids = (found.cluster_id, found.node_id) if isinstance(found, MetaProperties) else (None, None)
    cluster, node = ("not known" if one is None else str(one) for one in ids)
    return f"Cluster {cluster}, node {node}"


def _state(audited: AuditedDirectory) -> str:
    if audited.transactions.is_closed:
        return "It was shut down cleanly."
    return "It was not shut down cleanly, or a broker is running on it."


def _verdict(audited: AuditedDirectory) -> str:
    """Return what is wrong, in two lines, and what was not asked; green only if no consumer waits for too long."""
    findings, opened = audited.findings, audited.transactions.open
    stuck = [one for one in opened if one.is_overdue]
    severity = min((finding.severity.value for finding in findings), default="warning" if stuck else "fine")
    words = "Nothing is wrong."
    if findings:
        words = f"{severity_counts(findings)} found."
    elif stuck:
        words = "read_committed consumers are held back."
    unasked = "".join(f'<p class="note">Not asked: {text(line)}.</p>' for line in unasked_lines(audited))
    more = text(_waiting(opened, stuck))
    return f'<div class="verdict {severity}"><strong>{words}</strong><span>{more}</span></div>{unasked}'


def _waiting(opened: Sequence[OpenTransaction], overdue: Sequence[OpenTransaction]) -> str:
    if not opened:
        return "read_committed consumers get everything."
    oldest = max(opened, key=lambda one: one.age_ms)
    return f"{held_back(opened)}, {len(overdue) or 'none'} of them overdue; the oldest began {_ago(oldest)}."


def _ago(one: OpenTransaction) -> str:
    """Return when a transaction began, and by which clock."""
    return one.age.text(f"{duration(one.age_ms)} ago")


def _contents(parts: Sequence[str]) -> str:
    """Return links to the sections of the page."""
    found = [_HEADING.match(part) for part in parts]
    links = "".join(f'<li><a href="#{one[1]}">{one[2]}</a></li>' for one in found if one is not None)
    return f'<nav aria-label="Contents"><ul>{links}</ul></nav>'


def _figures(audited: AuditedDirectory, partitions: Sequence[Shown]) -> str:
    read = [one.verified.evidence for one in partitions]
    figures = [
        (f"{len(partitions):,}", "partitions"),
        (f"{sum(one.segment_count for one in read):,}", "segments"),
        (byte_text(sum(one.size for one in read)), "in logs"),
        (f"{sum(one.batch_count for one in read):,}", "batches"),
        (f"{len(audited.transactions.log.history):,}", "transactional ids"),
        (f"{len(audited.transactions.open):,}", "open transactions"),
    ]
    return '<dl class="figures">' + "".join(f"<div><dt>{name}</dt><dd>{n}</dd></div>" for n, name in figures) + "</dl>"


def _open_transactions(path: str, audited: AuditedDirectory) -> str:
    found = sorted(audited.transactions.open, key=lambda one: -one.age_ms)
    if not found:
        return ""
    heads = ("partition", "transactional id", "producer id", "epoch", "first offset", "records", "began", "state")
    rows = [_open_row(one) for one in found[:FOLDED_COUNT_MAX]]
    inside: str = command_line(f"logstore txns list {shell_quoted(path)}")
    inside += first_and_more(rows, OPEN_COUNT_MAX, partial(table, heads, minor=_MINOR), "{:,} younger ones")
    if len(found) > len(rows):
        left_out = len(found) - len(rows)
        inside += f'<p class="note">{left_out:,} younger ones are left out; `logstore txns list` tells them all.</p>'
    return section("open", "Open transactions", inside)


def _open_row(one: OpenTransaction) -> tuple[object, ...]:
    transaction = one.transaction
    name = "not known" if one.transactional_id is None else name_text(one.transactional_id)
    ids = (transaction.producer_id, transaction.producer_epoch)
    counts = (transaction.first_offset, transaction.record_count)
    began = Markup(f'<span data-key="{-one.age_ms}">{text(_ago(one))}</span>')
    return name_text(one.name), name, *ids, *counts, began, one.verdict.value


def _transactions(audited: AuditedDirectory, partitions: Sequence[Shown]) -> str:
    """Return all transactions on one axis; one of several partitions stands there once for each of them."""
    placed = [each for one in partitions for each in one.placed]
    count = sum(len(one.history.table) for one in partitions)
    if not count:
        return ""
    until_ms = max(one.history.largest_timestamp for one in partitions if len(one.history.table))
    legend = f'<p class="legend">{swatches(("committed", "aborted", "open"))}</p>'
    picture = timeline(placed, audited.transactions.log.owners, until_ms, count)
    return section("transactions", "Transactions in time", legend + picture)
