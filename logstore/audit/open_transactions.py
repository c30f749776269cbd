"""Verdicts on open transactions: data in a partition beside its coordinator's records, and why readers wait.

A transaction is open in a partition from its first record to its marker. `verdicts` judges them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from .cluster import Cluster
from .durations import duration
from .facts.coordinators import CoordinatorLog
from .facts.states import CoordinatorEntry
from .facts.times import Clock
from .facts.transactions import PartitionTransaction, PartitionTransactions
from .finding import Where
from .lives import Lives


class Verdict(Enum):
    """The fate of an open transaction."""

    ONGOING = "ongoing"  # the coordinator will end it
    TIMED_OUT = "timed out"  # it should have, by now
    ENDING = "ending"  # decided, the marker is on its way
    LATE = "marker is late"
    MARKER_MISSING = "marker is missing"  # decided and closed, without a marker here
    MARKER_CLEANED = "marker was cleaned away"  # by the leader's cleaner, before this replica had it
    HANGING = "hanging"  # no coordinator knows of it
    DAMAGED = "damaged"  # its marker, or what its coordinator says, may have been in damaged bytes
    UNKNOWN = "unknown"  # the coordinator's records are not here
    RECENT = "recent"  # they may be older than those of the partition, or newer


#: the rules that open transactions break, by verdict
RULE_OF = {
    Verdict.HANGING: "transaction-hanging",
    Verdict.TIMED_OUT: "transaction-timeout",
    Verdict.LATE: "marker-late",
    Verdict.MARKER_MISSING: "marker-missing",
    Verdict.MARKER_CLEANED: "marker-cleaned",
}


class Moment(NamedTuple):
    """When transactions are judged: the time that ages are counted to, and the cluster, whose files tell up to when."""

    now_ms: int
    cluster: Cluster

    @property
    def judged_ms(self) -> int:
        """What was due before is late."""
        return min(self.now_ms, self.cluster.settled_ms)

    @property
    def is_at_rest(self) -> bool:
        """Whether no file is of the last minute before `now_ms`, so that nobody writes."""
        return self.cluster.is_at_rest(self.now_ms)


class Age(NamedTuple):
    """How old a transaction is by the clock that told when it began; by that of a file or a broker at least so old."""

    age_ms: int
    clock: Clock

    def text(self, words: str) -> str:
        """Return the age, which is given in words, with its clock."""
        return {
            Clock.COORDINATOR: f"{words} by its coordinator's clock",
            Clock.PRODUCER: f"{words} by its producer's clock",
            Clock.BROKER: f"at least {words} by a broker's clock",
            Clock.FILE: f"at least {words} by the time of its file",
        }[self.clock]


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """One open transaction in one partition.

    Attributes:
        age: of the whole transaction if its coordinator says when it began, else of this part.
        transactional_id, coordinator: None without a record of its producer.
        moment: when it was judged.
        is_overdue: it should have ended by now, whatever was known when it was judged.
    """

    history: PartitionTransactions
    transaction: PartitionTransaction
    verdict: Verdict
    age: Age
    transactional_id: str | None
    coordinator: CoordinatorEntry | None
    moment: Moment
    is_overdue: bool

    @property
    def judged_ms(self) -> int:
        """What was due before is late."""
        return self.moment.judged_ms

    @property
    def age_ms(self) -> int:
        """Age in ms, never negative."""
        return self.age.age_ms

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
        age = self.age.text(duration(self.age_ms))
        who = f"producer {transaction.producer_id}, epoch {transaction.producer_epoch}, open for {age}"
        if entry is None:
            return f"{who}; no transactional id has this producer"
        metadata = entry.metadata
        return (
            f"{who}; {self.transactional_id} is {metadata.state.name}, epoch {metadata.producer_epoch}, "
            f"timeout {duration(metadata.transaction_timeout_ms)}"
        )


@dataclass(frozen=True, slots=True)
class Transactions:
    """The transactions of a directory.

    Attributes:
        histories: of each live partition.
        lives: their markers beside the decisions of coordinators.
        open: of all partitions, the oldest of each first.
        is_closed: no broker runs on the directory.
        moment: when they were judged.
    """

    histories: dict[tuple[str, int], PartitionTransactions]
    lives: Lives
    log: CoordinatorLog
    open: tuple[OpenTransaction, ...]
    is_closed: bool
    moment: Moment


def held_back(opened: Sequence[OpenTransaction]) -> str:
    """Return how many open transactions hold back how many partitions, in words.

    >>> held_back([])
    'no open transaction holds back a partition'
    """
    if not opened:
        return "no open transaction holds back a partition"
    count, partition_count = len(opened), len({one.name for one in opened})
    transactions = "transaction holds" if count == 1 else "transactions hold"
    partitions = "partition" if partition_count == 1 else "partitions"
    return f"{count:,} open {transactions} back {partition_count:,} {partitions}"


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
        return self._told(_WHY)

    @property
    def advice(self) -> str:
        """What to do."""
        return "nothing" if self.blocking is None else self._told(_ADVICE).format(self.blocking.where)

    def _told(self, texts: Mapping[Verdict | tuple[Verdict, str], str]) -> str:
        """Return the text of the verdict, for its circumstances where there is one."""
        assert self.blocking is not None
        verdict, circumstance = self.blocking.verdict, ""
        if verdict is Verdict.ONGOING and self.blocking.is_overdue:
            circumstance = _PASSED
        elif verdict is Verdict.DAMAGED and not self.history.may_be_ended(self.blocking.transaction):
            circumstance = _COORDINATOR
        elif verdict is Verdict.RECENT and self.blocking.moment.is_at_rest:
            circumstance = _AT_REST
        return texts.get((verdict, circumstance), texts[verdict])

    @property
    def missing(self) -> str | None:
        """The marker that would let readers on."""
        if self.blocking is None:
            return None
        producer_id = self.blocking.transaction.producer_id
        return f"a COMMIT or ABORT marker of producer {producer_id} in {self.blocking.name}"


_PASSED, _COORDINATOR, _AT_REST = "passed", "coordinator", "at rest"  # circumstances of verdicts
_ABORT = (
    "`kafka-transactions.sh --bootstrap-server … abort --topic {0.topic} --partition {0.partition} "
    "--start-offset {0.offset}` ends it in this partition"
)
_WHY: dict[Verdict | tuple[Verdict, str], str] = {
    Verdict.ONGOING: "its producer is not done, and within its timeout",
    (Verdict.ONGOING, _PASSED): "its producer was not done, and within its timeout, when the newest file here was "
    "written; the timeout has passed since",
    Verdict.TIMED_OUT: "its producer is not done, and its coordinator has not aborted it although its time is over",
    Verdict.ENDING: "it is decided, and its marker is on its way",
    Verdict.LATE: "it is decided, and its coordinator has not got its marker written for longer than its timeout",
    Verdict.MARKER_MISSING: "it was decided and closed, and its marker is not in this partition",
    Verdict.MARKER_CLEANED: "it was ended, and the cleaner of the leader took its marker before this replica had "
    "fetched it; readers wait only if this replica leads",
    Verdict.HANGING: "it hangs: its coordinator does not count this partition among its transaction, or knows nothing "
    "of its producer, so that nobody is going to end it",
    Verdict.DAMAGED: "bytes of this partition behind it are damaged, and its marker may have been in them",
    (Verdict.DAMAGED, _COORDINATOR): "bytes of __transaction_state are damaged, and what its coordinator decided may "
    "have been in them",
    Verdict.UNKNOWN: "its coordinator's records are not in this directory, so what becomes of it is not known here",
    Verdict.RECENT: "it, or what its coordinator says of it, may be in a file that was copied, or read, before the "
    "other; or this replica is behind its leader",
}
_ADVICE: dict[Verdict | tuple[Verdict, str], str] = {
    Verdict.ONGOING: "wait: its coordinator aborts it when its timeout is over",
    (Verdict.ONGOING, _PASSED): "start a broker on the directory, which aborts it; if this is a copy, make a newer "
    "one: a coordinator that runs has ended it since",
    Verdict.TIMED_OUT: "start a broker on the directory, or see what keeps the leader of its partition of "
    "__transaction_state from working: it aborts the transaction",
    Verdict.ENDING: "wait, or start a broker on the directory: the coordinator sends the marker again",
    Verdict.LATE: "see whether the coordinator can reach the leader of this partition: it goes on sending the marker",
    Verdict.MARKER_MISSING: "find out whether it was committed, in the other partitions: then its records here are "
    "lost to readers whatever is done; " + _ABORT,
    Verdict.MARKER_CLEANED: "let this replica fetch the partition anew; if it leads, " + _ABORT,
    Verdict.HANGING: _ABORT,
    Verdict.DAMAGED: "do not abort it yet: see what a healthy replica has there, `logstore diff`, or save what is "
    "behind the damage, `logstore salvage`",
    (Verdict.DAMAGED, _COORDINATOR): "do not abort it yet: ask the data directory of another replica of "
    "__transaction_state; `logstore verify` says where the damage is",
    Verdict.UNKNOWN: "ask the data directory of the broker that leads its partition of __transaction_state; of a "
    "broker with several, name all of them to `logstore txns list`",
    Verdict.RECENT: "ask again in a minute; if it stays so, ask the data directory of the broker that leads its "
    "partition of __transaction_state",
    (Verdict.RECENT, _AT_REST): "do not abort it yet: make a newer copy, or one while no broker writes; if this is no "
    "copy, start a broker on the directory",
}
