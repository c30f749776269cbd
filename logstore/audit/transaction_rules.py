"""Rules about transactions across partitions, and between partitions and their coordinator."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ..topics.transaction_state import TransactionState
from . import rules
from .coordinator_log import PREPARED, CoordinatorEntry, CoordinatorLog
from .finding import Finding, Rule, Where
from .markers import Marker
from .open_transactions import OpenTransaction, Verdict
from .partition_transactions import PartitionTransaction, PartitionTransactions

Histories = Mapping[tuple[str, int], PartitionTransactions]

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


def atomicity_findings(histories: Histories) -> list[Finding]:
    """Transactions whose markers have an epoch of their own: in all partitions they must say the same."""
    parts: dict[tuple[int, int], list[tuple[PartitionTransactions, PartitionTransaction]]] = defaultdict(list)
    for history in histories.values():
        for transaction in history.transactions:
            if transaction.has_own_epoch and transaction.marker is not None:
                parts[transaction.producer_id, transaction.marker.producer_epoch].append((history, transaction))
    findings = []
    for (producer_id, epoch), found in parts.items():
        committed = [part for part in found if _marker(part[1]).is_commit]
        aborted = [part for part in found if not _marker(part[1]).is_commit]
        if committed and aborted:
            history, transaction = aborted[0]
            other = committed[0][0].partition.name
            findings.append(
                rules.TRANSACTION_ATOMICITY.finding(
                    _place(history, _marker(transaction).offset),
                    expected=f"producer {producer_id}, epoch {epoch}: committed, as in {other}",
                    found="aborted",
                )
            )
    return findings


def repeated_findings(histories: Histories) -> list[Finding]:
    """Two markers of one transaction in one partition, by the epoch that is its own."""
    findings = []
    for history in histories.values():
        ends = {
            (transaction.producer_id, _marker(transaction).producer_epoch): _marker(transaction)
            for transaction in history.transactions
            if transaction.has_own_epoch
        }
        for marker in history.empty_markers:
            first = ends.get((marker.producer_id, marker.producer_epoch))
            if first is None or first.offset > marker.offset:
                continue
            rule = rules.MARKER_DOUBLED if first.is_commit == marker.is_commit else rules.MARKER_CONTRADICTING
            findings.append(
                rule.finding(
                    _place(history, marker.offset),
                    expected=f"producer {marker.producer_id}, epoch {marker.producer_epoch}: one marker, at offset "
                    f"{first.offset}, {first.outcome}",
                    found=f"another one, {marker.outcome}",
                )
            )
    return findings


def decision_findings(histories: Histories, log: CoordinatorLog) -> list[Finding]:
    """Each partition has as many COMMIT markers of a producer as the coordinator has decided, where all is on record.

    ABORT markers are not counted: an administrator may write them.
    """
    whole = {
        place: (history, _commit_markers(history)) for place, history in histories.items() if history.evidence.is_whole
    }
    findings = []
    for transactional_id, entries in log.history.items():
        for (place, producer_id, epoch), (count, first_ms) in _decided(entries).items() if _is_whole(entries) else ():
            if place not in whole:
                continue
            history, committed = whole[place]
            if first_ms < history.born_ms:
                continue  # some were of a topic of this name that was deleted
            markers = committed.get((producer_id, epoch), [])
            if len(markers) == count or _is_waiting(history, producer_id):
                continue
            findings.append(
                rules.MARKER_CONTRADICTING.finding(
                    _place(history, markers[-1] if markers else None),
                    expected=f"{transactional_id}, producer {producer_id}, epoch {epoch}: {count} committed "
                    "transactions, as its coordinator decided",
                    found=f"{len(markers)} COMMIT markers",
                )
            )
    return findings


def no_data_findings(histories: Histories, log: CoordinatorLog, now_ms: int) -> list[Finding]:
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
            history = histories.get(place)
            if history is not None and not _is_waiting(history, metadata.producer_id):
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


def _decided(entries: Sequence[CoordinatorEntry]) -> dict[tuple[tuple[str, int], int, int], tuple[int, int]]:
    """How often each (partition, producer id, epoch of the marker) was decided to be committed, or 0; when first."""
    decided: dict[tuple[tuple[str, int], int, int], tuple[int, int]] = {}
    for entry in entries:
        metadata = entry.metadata
        if metadata.state in PREPARED:
            for place in metadata.partitions:
                is_commit = metadata.state is TransactionState.PREPARE_COMMIT
                key = (place, metadata.producer_id, metadata.producer_epoch)
                count, first_ms = decided.get(key, (0, entry.timestamp))
                decided[key] = count + int(is_commit), min(first_ms, entry.timestamp)
    return decided


def _commit_markers(history: PartitionTransactions) -> dict[tuple[int, int], list[int]]:
    """From producer id and epoch to the offsets of their COMMIT markers."""
    ends = [transaction.marker for transaction in history.transactions if transaction.marker is not None]
    found: dict[tuple[int, int], list[int]] = defaultdict(list)
    for marker in sorted(ends + history.empty_markers):
        if marker.is_commit:
            found[marker.producer_id, marker.producer_epoch].append(marker.offset)
    return found


def _is_waiting(history: PartitionTransactions, producer_id: int) -> bool:
    """A transaction of the producer is open, which is a finding of its own if it should not be."""
    return any(transaction.producer_id == producer_id for transaction in history.open_transactions)


def _marker(transaction: PartitionTransaction) -> Marker:
    if transaction.marker is None:
        raise ValueError("the transaction is open")
    return transaction.marker


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
