"""The head of the page: whose directory it is, what is wrong in two lines, and what holds readers back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..timestamps import duration
from .findings import severity_counts
from .markup import count_of, text

if TYPE_CHECKING:
    from logstore.audit.directory_audit import AuditedDirectory
    from logstore.audit.open_transactions import OpenTransaction

DEFAULT_TIMEOUT_MS = 60_000  # transaction.timeout.ms of a producer, where no coordinator tells


def identity(path: str) -> str:
    """The cluster and the node that the directory at `path` says it is of."""
    from logstore.audit.evidence import Cluster
    from logstore.layout.meta_properties import MetaProperties

    found = Cluster(path).identity
    ids = (found.cluster_id, found.node_id) if isinstance(found, MetaProperties) else (None, None)
    cluster, node = ("not known" if one is None else str(one) for one in ids)
    return f"Cluster {cluster}, node {node}"


def state(audited: AuditedDirectory) -> str:
    """How the last broker left the directory."""
    if audited.transactions.is_closed:
        return "It was shut down cleanly."
    return "It was not shut down cleanly, or a broker is running on it."


def verdict(audited: AuditedDirectory) -> str:
    """What is wrong, in two lines, and what was not asked; green only if nobody waits for longer than is in order."""
    findings, opened = audited.findings, audited.transactions.open
    stuck = [one for one in opened if is_stuck(one)]
    severity = min((finding.severity.value for finding in findings), default="warning" if stuck else "fine")
    words = "Nothing is wrong."
    if findings:
        words = f"{severity_counts(findings)} found."
    elif stuck:
        words = "read_committed consumers are held back."
    unasked = "".join(
        f'<p class="note">Not asked: {text(rule)} in {count_of(count, "partition")}: {text(reason)}.</p>'
        for (rule, reason), count in sorted(audited.unasked.items())
    )
    more = text(_waiting(opened, stuck))
    return f'<div class="verdict {severity}"><strong>{words}</strong><span>{more}</span></div>{unasked}'


def is_stuck(one: OpenTransaction) -> bool:
    """Whether an open transaction stops readers for longer than its timeout, or until somebody ends it by hand."""
    from logstore.audit.rules.transactions import VERDICTS

    timeout_ms = DEFAULT_TIMEOUT_MS if one.coordinator is None else one.coordinator.metadata.transaction_timeout_ms
    return one.verdict in VERDICTS or one.age_ms > timeout_ms


def _waiting(opened: Sequence[OpenTransaction], stuck: Sequence[OpenTransaction]) -> str:
    """What readers wait for."""
    if not opened:
        return "read_committed consumers get everything."
    oldest = max(opened, key=lambda one: one.age_ms)
    return (
        f"In {count_of(len({one.name for one in opened}), 'partition')} read_committed consumers wait for "
        f"{count_of(len(opened), 'open transaction')} ({len(stuck) or 'none'} overdue); the oldest began "
        f"{ago(oldest.age_ms)}."
    )


def ago(age_ms: int) -> str:
    """When something began that is `age_ms` old; timestamps are a producer's, whose clock may be ahead."""
    return f"{duration(age_ms)} ago" if age_ms >= 0 else f"{duration(-age_ms)} ahead of now"
