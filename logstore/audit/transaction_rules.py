"""Rules about transactions across partitions, and between partitions and their coordinator."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..topics.transaction_state import TransactionState
from . import rules
from .coordinator_log import PREPARED, CoordinatorEntry, CoordinatorLog
from .finding import Finding, Rule, Where
from .lives import Histories, Lives
from .markers import Marker
from .open_transactions import OpenTransaction, Verdict
from .partition_transactions import PartitionTransactions

_RULES: dict[Verdict, tuple[Rule, str]] = {
    Verdict.HANGING: (rules.TRANSACTION_HANGING, "a coordinator that knows of it"),
    Verdict.TIMED_OUT: (rules.TRANSACTION_TIMEOUT, "an end within its timeout"),
    Verdict.LATE: (rules.MARKER_LATE, "a marker, soon after the decision"),
    Verdict.MARKER_MISSING: (rules.MARKER_MISSING, "a marker"),
}


def open_findings(transactions: Iterable[OpenTransaction], *, is_closed: bool) -> list[Finding]:
    """What is wrong with transactions that are open.

    Args:
        is_closed: no broker runs, so that nothing can be late.
    """
    at_rest = (Verdict.TIMED_OUT, Verdict.LATE)
    found = (open_finding(one) for one in transactions if not (is_closed and one.verdict in at_rest))
    return [finding for finding in found if finding is not None]


def open_finding(one: OpenTransaction) -> Finding | None:
    """What is wrong with one of them, if anything is."""
    if one.verdict not in _RULES:
        return None
    rule, expected = _RULES[one.verdict]
    return rule.finding(_place(one.history, one.transaction.first_offset), expected=expected, found=_told(one))


def epoch_findings(histories: Histories) -> list[Finding]:
    """Transactions that go on under another epoch: between the two there should have been a marker."""
    return [
        rules.MARKER_MISSING.finding(
            _place(history, transaction.first_offset),
            expected=f"a marker before data of epoch {transaction.producer_epoch}",
            found=f"producer {transaction.producer_id} goes on from epoch {transaction.earlier_epoch}",
        )
        for history in histories.values()
        for transaction in history.transactions
        if transaction.earlier_epoch is not None
    ]


def atomicity_findings(lives: Lives) -> list[Finding]:
    """Transactions whose markers have an epoch of their own: in all partitions they must say the same."""
    findings = []
    for parts in lives.across_partitions():
        ends = [end for life in parts for end in life.ends if end.is_of_one]
        committed = [end for end in ends if end.marker.is_commit]
        aborted = [end for end in ends if not end.marker.is_commit]
        if committed and aborted:
            marker, other = aborted[0].marker, committed[0].history.partition.name
            findings.append(
                rules.TRANSACTION_ATOMICITY.finding(
                    _place(aborted[0].history, marker.offset),
                    expected=f"producer {marker.producer_id}, epoch {marker.producer_epoch}: committed, as in {other}",
                    found="aborted",
                )
            )
    return findings


def repeated_findings(lives: Lives) -> list[Finding]:
    """Two markers of one transaction in one partition, by the epoch that is its own."""
    findings = []
    for life in lives:
        first: Marker | None = None
        for end in life.ends:
            if end.is_of_one:
                first = end.marker
            elif first is not None and end.transaction is None:
                is_same = first.is_commit == end.marker.is_commit
                rule = rules.MARKER_DOUBLED if is_same else rules.MARKER_CONTRADICTING
                findings.append(
                    rule.finding(
                        _place(end.history, end.marker.offset),
                        expected=f"producer {life.producer_id}, epoch {life.epoch}: one marker, at offset "
                        f"{first.offset}, {first.outcome}",
                        found=f"another one, {end.marker.outcome}",
                    )
                )
    return findings


def decision_findings(lives: Lives, log: CoordinatorLog) -> list[Finding]:
    """Each partition has as many COMMIT markers of a producer as the coordinator has decided, where all is on record.

    ABORT markers are not counted: an administrator may write them.
    """
    findings = []
    whole_ids = {transactional_id for transactional_id, entries in log.history.items() if _is_whole(entries)}
    for life in lives:
        history = lives.histories.get(life.place)
        if history is None or life.transactional_id not in whole_ids or not history.evidence.is_whole:
            continue
        if any(entry.timestamp < history.born_ms for entry in life.decisions):
            continue  # some were of a topic of this name that was deleted
        count, commits = life.commit_decision_count, life.commits
        if len(commits) == count or lives.is_open(life.place, life.producer_id):
            continue
        findings.append(
            rules.MARKER_CONTRADICTING.finding(
                _place(history, commits[-1].offset if commits else None),
                expected=f"{life.transactional_id}, producer {life.producer_id}, epoch {life.epoch}: {count} committed "
                "transactions, as its coordinator decided",
                found=f"{len(commits)} COMMIT markers",
            )
        )
    return findings


def no_data_findings(lives: Lives, log: CoordinatorLog, now_ms: int) -> list[Finding]:
    """Transactions beyond their timeout that have claimed partitions, and written nothing to them."""
    findings = []
    for transactional_id in log.history:
        entry = log.current(transactional_id)
        if entry is None or entry.metadata.state is not TransactionState.ONGOING:
            continue
        metadata = entry.metadata
        if metadata.start_timestamp_ms + metadata.transaction_timeout_ms >= now_ms:
            continue
        for place in metadata.partitions:
            history = lives.histories.get(place)
            if history is not None and not lives.is_open(place, metadata.producer_id):
                found = f"producer {metadata.producer_id} has nothing open"
                findings.append(
                    rules.TRANSACTION_NO_DATA.finding(
                        _place(history, None), expected=f"data of {transactional_id}", found=found
                    )
                )
    return findings


def _is_whole(entries: Sequence[CoordinatorEntry]) -> bool:
    """Whether every decision is on record: the first record is there, so none was compacted; and none is under way."""
    first, last = entries[0].metadata, entries[-1].metadata
    is_new = first.state is TransactionState.EMPTY and first.start_timestamp_ms < 0 and first.producer_epoch == 0
    return is_new and last.state not in PREPARED


def _place(history: PartitionTransactions, offset: int | None) -> Where:
    files = history.partition.files
    return Where(files.path, files.topic, files.partition, offset=offset)


def _told(one: OpenTransaction) -> str:
    who = f"producer {one.transaction.producer_id}, epoch {one.transaction.producer_epoch}, open for {one.age_ms} ms"
    if one.coordinator is None:
        return f"{who}; no transactional id has this producer"
    metadata = one.coordinator.metadata
    return (
        f"{who}; {one.transactional_id} is {metadata.state.name}, epoch {metadata.producer_epoch}, "
        f"timeout {metadata.transaction_timeout_ms} ms"
    )
