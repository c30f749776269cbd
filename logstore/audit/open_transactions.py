"""Verdicts on open transactions: data in a partition beside its coordinator's records, and why readers wait.

A transaction is open in a partition from its first record to its marker. It should be while its coordinator says
Ongoing, and for a moment after the decision. Otherwise nobody is going to end it: it hangs (KIP-664, KIP-890).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from ..topics.transaction_state import PREPARED, TransactionMetadata, TransactionState
from .facts.coordinators import CoordinatorLog
from .facts.states import CoordinatorEntry
from .facts.transactions import PartitionTransaction, PartitionTransactions
from .finding import Where
from .lives import Lives

_EPOCH_MAX = 32767
_EPOCH_BUMPING_VERSION = 2  # transaction.version whose markers carry the next epoch


class Verdict(Enum):
    """The fate of an open transaction."""

    ONGOING = "ongoing"  # the coordinator will end it
    TIMED_OUT = "timed out"  # it should have, by now
    ENDING = "ending"  # decided, the marker is on its way
    LATE = "marker is late"
    MARKER_MISSING = "marker is missing"  # decided and closed, without a marker here
    HANGING = "hanging"  # no coordinator knows of it
    UNKNOWN = "unknown"  # the coordinator's records are not here
    RECENT = "recent"  # they may be older than those of the partition, or newer


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """One open transaction in one partition.

    Attributes:
        age_ms: age of the whole transaction if its coordinator says when it began, else of this part.
        transactional_id, coordinator: None without a record of its producer.
    """

    history: PartitionTransactions
    transaction: PartitionTransaction
    verdict: Verdict
    age_ms: int
    transactional_id: str | None
    coordinator: CoordinatorEntry | None

    @property
    def name(self) -> str:
        """Of the partition."""
        return self.history.partition.name

    @property
    def where(self) -> Where:
        """Where it begins."""
        return self.history.partition.where(offset=self.transaction.first_offset)

    @property
    def story(self) -> str:
        """Whose it is, and what its coordinator says, in words."""
        transaction, entry = self.transaction, self.coordinator
        who = f"producer {transaction.producer_id}, epoch {transaction.producer_epoch}, open for {self.age_ms} ms"
        if entry is None:
            return f"{who}; no transactional id has this producer"
        metadata = entry.metadata
        return (
            f"{who}; {self.transactional_id} is {metadata.state.name}, epoch {metadata.producer_epoch}, "
            f"timeout {metadata.transaction_timeout_ms} ms"
        )


@dataclass(frozen=True, slots=True)
class Transactions:
    """The transactions of a directory.

    Attributes:
        histories: of each live partition.
        lives: their markers beside the decisions of coordinators.
        open: of all partitions, the oldest of each first.
        is_closed: no broker runs on the directory.
        late_ms: anything due before this time is late; see `Cluster.settled_ms`.
    """

    histories: dict[tuple[str, int], PartitionTransactions]
    lives: Lives
    log: CoordinatorLog
    open: tuple[OpenTransaction, ...]
    is_closed: bool
    late_ms: int


def judge(
    history: PartitionTransactions, transaction: PartitionTransaction, lives: Lives, now_ms: int, settled_ms: int
) -> OpenTransaction:
    """Return the verdict on an open transaction of a partition, with its age at `now_ms`."""
    transactional_id, entry = lives.log.owner(transaction.producer_id) or (None, None)
    started_ms, entries = transaction.first_timestamp, list[CoordinatorEntry]()
    if transactional_id is not None and entry is not None:
        entries = lives.log.entries(lives.log.history[transactional_id])
        if is_same_transaction(entry.metadata, transaction) and entry.metadata.start_timestamp_ms >= 0:
            started_ms = entry.metadata.start_timestamp_ms
    verdict = _verdict(history, transaction, entries, lives, min(now_ms, settled_ms))
    behind = [entry.timestamp for entry in entries if entry.timestamp > transaction.last_timestamp]
    is_recent = max(transaction.last_timestamp, min(behind, default=0)) > settled_ms
    if is_recent and verdict in (Verdict.HANGING, Verdict.MARKER_MISSING):
        verdict = Verdict.RECENT
    return OpenTransaction(history, transaction, verdict, now_ms - started_ms, transactional_id, entry)


def _verdict(
    history: PartitionTransactions,
    transaction: PartitionTransaction,
    entries: list[CoordinatorEntry],
    lives: Lives,
    late_ms: int,
) -> Verdict:
    """Judge by the last record of the transactional id; earlier ones say whether it ever had the transaction."""
    place = history.partition.key
    last = entries[-1].metadata if entries else None
    if last is not None and is_same_transaction(last, transaction) and place in last.partitions:
        if last.state is TransactionState.ONGOING:
            is_over = last.start_timestamp_ms + last.transaction_timeout_ms < late_ms
            return Verdict.TIMED_OUT if is_over else Verdict.ONGOING
        if last.state in PREPARED:
            is_late = last.last_update_timestamp_ms + last.transaction_timeout_ms < late_ms
            return Verdict.LATE if is_late else Verdict.ENDING
    if history.may_be_ended(transaction) or not (entries or lives.log.is_complete):
        return Verdict.UNKNOWN
    earlier = [entry for entry in entries[:-1] if is_same_transaction(entry.metadata, transaction)]
    return Verdict.MARKER_MISSING if lives.has_unanswered(place, earlier) else Verdict.HANGING


def is_same_transaction(metadata: TransactionMetadata, transaction: PartitionTransaction) -> bool:
    """Return whether a coordinator's record can be about this transaction, by producer and epoch.

    Before the decision the record has the epoch of the data, after it that of the marker: the next epoch with
    transaction version 2; with older versions the same, or the next if the producer was fenced.
    """
    if metadata.producer_id != transaction.producer_id:
        return False
    epoch, next_epoch = transaction.producer_epoch, min(transaction.producer_epoch + 1, _EPOCH_MAX)
    if metadata.state is TransactionState.ONGOING:
        return metadata.producer_epoch == epoch
    if metadata.state not in PREPARED:
        return False
    if metadata.client_transaction_version >= _EPOCH_BUMPING_VERSION:
        return metadata.producer_epoch == next_epoch
    return metadata.producer_epoch in (epoch, next_epoch)


class Explanation(NamedTuple):
    """The reason why readers of a partition wait: the first of its open transactions holds them back."""

    history: PartitionTransactions
    open: Sequence[OpenTransaction]

    @property
    def blocking(self) -> OpenTransaction | None:
        """The transaction that readers wait for; None if they do not wait."""
        return self.open[0] if self.open else None

    @property
    def why(self) -> str:
        """The reason in one sentence."""
        if self.blocking is None:
            return "no transaction is open: read_committed consumers get all there is"
        return _WHY[self.blocking.verdict]

    @property
    def advice(self) -> str:
        """What to do."""
        return "nothing" if self.blocking is None else _ADVICE[self.blocking.verdict].format(self.blocking.where)

    @property
    def missing(self) -> str | None:
        """The marker that would let readers on."""
        if self.blocking is None:
            return None
        producer_id = self.blocking.transaction.producer_id
        return f"a COMMIT or ABORT marker of producer {producer_id} in {self.blocking.name}"


_ABORT = (
    "`kafka-transactions.sh --bootstrap-server … abort --topic {0.topic} --partition {0.partition} "
    "--start-offset {0.offset}` ends it in this partition"
)
_WHY = {
    Verdict.ONGOING: "its producer is not done, and within its timeout",
    Verdict.TIMED_OUT: "its producer is not done, and its coordinator has not aborted it although its time is over",
    Verdict.ENDING: "it is decided, and its marker is on its way",
    Verdict.LATE: "it is decided, and its coordinator has not got its marker written for longer than its timeout",
    Verdict.MARKER_MISSING: "it was decided and closed, and its marker is not in this partition",
    Verdict.HANGING: "it hangs: its coordinator does not count this partition among its transaction, or knows nothing "
    "of its producer, so that nobody is going to end it",
    Verdict.UNKNOWN: "its coordinator's records are not in this directory, so what becomes of it is not known here",
    Verdict.RECENT: "it is less than a minute older than the newest file: it, or what its coordinator says of it, may "
    "be in a file that was copied, or read, before the other",
}
_ADVICE = {
    Verdict.ONGOING: "wait: its coordinator aborts it when its timeout is over",
    Verdict.TIMED_OUT: "start a broker on the directory, or see what keeps the leader of its partition of "
    "__transaction_state from working: it aborts the transaction",
    Verdict.ENDING: "wait, or start a broker on the directory: the coordinator sends the marker again",
    Verdict.LATE: "see whether the coordinator can reach the leader of this partition: it goes on sending the marker",
    Verdict.MARKER_MISSING: "find out whether it was committed, in the other partitions: then its records here are "
    "lost to readers whatever is done; " + _ABORT,
    Verdict.HANGING: _ABORT,
    Verdict.UNKNOWN: "ask the data directory of the broker that leads its partition of __transaction_state",
    Verdict.RECENT: "ask again in a minute, or make a copy while no broker writes",
}
