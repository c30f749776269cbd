"""The public questions to a data directory: what is wrong, what is open, and why readers wait. Nothing is written."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import Any

from ..clock import now_ms as current_ms
from ..disk.names import path_text
from ..disk.recognition import names_partition
from ..model import whole_number
from ..rows.findings import AuditedRow, FindingRow, NotAskedRow, VerifiedRow
from ..rows.listing import Rows
from ..rows.schema import row_of, unless_missing
from ..rows.transactions import CoordinatorStateRow, ExplanationRow, OpenTransactionRow
from ..view.walk import Advance
from .directory_audit import AuditedDirectory, audit_directory, follow_all, read_transactions
from .directory_verify import verify_directory
from .finding import Finding
from .listings import Path, data_directory_at, place_at, unlisted
from .open_transactions import Explanation, OpenTransaction
from .verify import PartitionFacts, verify_partition_directory


class AuditedFindings(Rows[FindingRow]):
    """What is wrong, and what was looked at: no rows say that nothing is wrong there, and nothing of anything else.

    Attributes:
        partitions: the partitions that were looked at.
        audited: what was looked at in all; None of `logstore.verify`.
    """

    def __init__(
        self, findings: Iterable[Finding], partitions: Sequence[VerifiedRow], audited: AuditedRow | None = None
    ) -> None:
        super().__init__(FindingRow, list(map(finding_row, findings)))
        self.partitions = tuple(partitions)
        self.audited = audited

    def __repr__(self) -> str:
        size = sum(one.size for one in self.partitions)
        return f"<{len(self):,} findings in {len(self.partitions):,} partitions, {size:,} bytes>"


def audit(
    path: Path, *, now_ms: int | None = None, checksums_only: bool = False, advance: Advance = lambda size: None
) -> AuditedFindings:
    """Check a data directory against every rule: its bytes, its side files, its transactions, its groups.

    A broker may be running. Findings in a directory that changes are told only if a second reading confirms them.

    Args:
        now_ms: reference time for ages, ms since 1970; None for now.
        checksums_only: trust records whose batch has the right checksum, do not decode them.
        advance: told of the bytes that are read.

    Raises:
        UsageError: `path` is no data directory.
        DataDirectoryError: it cannot be listed.
    """
    root, now = data_directory_at(path), _judged_ms(now_ms)
    audited = audit_directory(root, now, partial(follow_all, decodes=not checksums_only, advance=advance))
    rows = verified_rows(audited.partitions, audited.findings)
    return AuditedFindings(audited.findings, rows, audited_row(root, audited))


def verify(path: Path, *, checksums_only: bool = False, advance: Advance = lambda size: None) -> AuditedFindings:
    """Prove that partitions are what a broker wrote: every batch, and every file beside the log.

    Args:
        path: a partition, or a data directory for all partitions in it.
        checksums_only, advance: as of `audit`.

    Raises:
        UsageError: `path` is neither a data directory nor a partition.
        DataDirectoryError: it cannot be listed.
    """
    if names_partition(path_text(path)):
        facts = verify_partition_directory(path_text(path), decodes=not checksums_only, advance=advance)
        return AuditedFindings(facts.findings, verified_rows([facts], facts.findings))
    found = verify_directory(path_text(path), decodes=not checksums_only, advance=advance)
    return AuditedFindings(found.findings, verified_rows(found.partitions, found.findings))


def transactions(
    path: Path, *, beside: Iterable[Path] = (), now_ms: int | None = None, advance: Advance = lambda size: None
) -> Rows[OpenTransactionRow]:
    """List the open transactions of a data directory or a partition, and what becomes of each.

    What hangs or is late is told only if a second reading confirms it. Reads `__transaction_state`, and other logs from
    the newest snapshot or the first open transaction on; all of a log if nobody is going to end one. Table
    `transactions` of the Spark data source has the decided ones too.

    Args:
        beside: other data directories, of which coordinators in those of the same broker are asked.
        now_ms: reference time for ages, ms since 1970; None for now.
        advance: told of the bytes that are read.

    Raises:
        UsageError: `path` is neither a data directory nor a partition.
        DataDirectoryError: it cannot be listed, or the partition cannot be read.
    """
    root, only = place_at(path)
    others = list(map(data_directory_at, beside))
    found, findings = read_transactions(root, _judged_ms(now_ms), only, advance, others)
    return Rows(OpenTransactionRow, list(map(open_transaction_row, found.open)), [*findings, *unlisted(root)])


def explain(
    path: Path, *, beside: Iterable[Path] = (), now_ms: int | None = None, advance: Advance = lambda size: None
) -> Rows[ExplanationRow]:
    """Say why read_committed consumers get no further: of a partition, or of each one in which they wait.

    Args:
        beside, now_ms, advance: as of `transactions`.

    Raises:
        UsageError: `path` is neither a data directory nor a partition.
        DataDirectoryError: it cannot be listed, or the partition cannot be read.
    """
    root, only = place_at(path)
    others = list(map(data_directory_at, beside))
    found, findings = read_transactions(root, _judged_ms(now_ms), only, advance, others)
    explanations = [
        Explanation(history, [one for one in found.open if one.history is history])
        for history in found.histories.values()
    ]
    rows = [explanation_row(one) for one in explanations if one.blocking is not None or only is not None]
    return Rows(ExplanationRow, rows, [*findings, *unlisted(root)])


def _judged_ms(now_ms: int | None) -> int:
    return current_ms() if now_ms is None else whole_number("now_ms", now_ms)


def finding_row(finding: Finding) -> FindingRow:
    """Return a finding as a row."""
    return row_of(FindingRow, finding, finding.where, severity=finding.severity.value)


def verified_rows(partitions: Iterable[PartitionFacts], findings: Collection[Finding]) -> list[VerifiedRow]:
    """Return partitions as rows; those of their findings count that are among `findings`, which lasted."""
    told = set(findings)
    return [
        row_of(
            VerifiedRow,
            one.partition.files,
            one.evidence,
            finding_count=sum(finding in told for finding in one.findings),
        )
        for one in partitions
    ]


def audited_row(path: str, audited: AuditedDirectory) -> AuditedRow:
    """Return what an audit looked at."""
    unasked, opened = sorted(audited.unasked.items()), audited.transactions.open
    return AuditedRow(
        path=path,
        partition_count=len(audited.partitions),
        size=sum(one.evidence.size for one in audited.partitions),
        batch_count=sum(one.evidence.batch_count for one in audited.partitions),
        transaction_count=sum(len(history.table) for history in audited.transactions.histories.values()),
        open_count=len(opened),
        overdue_count=sum(one.is_overdue for one in opened),
        held_back_count=len({one.name for one in opened}),
        group_offset_count=len(audited.groups.commits),
        not_asked=tuple(NotAskedRow(rule, count, reason) for (rule, reason), count in unasked),
    )


def open_transaction_row(one: OpenTransaction) -> OpenTransactionRow:
    """Return an open transaction as a row."""
    return row_of(
        OpenTransactionRow,
        one.where,
        one.transaction,
        one,
        age_clock=one.age.clock.value,
        coordinator=_coordinator(one),
        judged_at=one.judged_ms if one.judged_ms > 0 else None,
        verdict=one.verdict.value,
    )


def _coordinator(one: OpenTransaction) -> CoordinatorStateRow | None:
    if one.coordinator is None:
        return None
    metadata: Any = one.coordinator.metadata
    return row_of(
        CoordinatorStateRow,
        one.coordinator,
        metadata,
        state=metadata.state.name,
        transaction_start_time=unless_missing(metadata.start_timestamp_ms),
        partitions=tuple(f"{topic}-{number}" for topic, number in metadata.partitions),
    )


def explanation_row(explanation: Explanation) -> ExplanationRow:
    """Return the reason why readers of a partition wait as a row."""
    history, blocking = explanation.history, explanation.blocking
    return row_of(
        ExplanationRow,
        history.partition.files,
        last_stable_offset=history.last_stable_offset,
        log_end_offset=history.log_end_offset,
        open_count=len(explanation.open),
        why=explanation.why,
        missing=explanation.missing,
        advice=explanation.advice,
        blocking=blocking and open_transaction_row(blocking),
    )
