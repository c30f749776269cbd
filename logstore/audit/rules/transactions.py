"""Rules about transactions across partitions, and between partitions and their coordinator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ...topics.transaction_state import TransactionState
from ..facts.coordinators import PREPARED, CoordinatorEntry
from ..facts.transactions import NONE
from ..finding import Broken, Where, rule
from ..lives import Lives
from ..open_transactions import Transactions, Verdict
from .log import ERROR, WARNING

VERDICTS = {  # the rules that open transactions break, by what is to become of them
    Verdict.HANGING: "transaction-hanging",
    Verdict.TIMED_OUT: "transaction-timeout",
    Verdict.LATE: "marker-late",
    Verdict.MARKER_MISSING: "marker-missing",
}


@rule(
    ERROR,
    "`kafka-transactions.sh --bootstrap-server … abort --topic … --partition … --start-offset …` with its first offset",
)
def transaction_hanging(facts: Transactions) -> Iterator[Broken]:
    """An open transaction that no coordinator is going to end."""
    return _open(facts, Verdict.HANGING, "a coordinator that knows of it")


@rule(WARNING, "the coordinator should have aborted it: is the broker of its partition of __transaction_state up?")
def transaction_timeout(facts: Transactions) -> Iterator[Broken]:
    """A transaction has been open for longer than its timeout."""
    if not facts.is_closed:  # no broker runs, so that nothing can be late
        yield from _open(facts, Verdict.TIMED_OUT, "an end within its timeout")


@rule(WARNING, "the coordinator goes on trying: can it reach the partition's leader?")
def marker_late(facts: Transactions) -> Iterator[Broken]:
    """A transaction was decided longer than its timeout ago, and a marker has not come."""
    if not facts.is_closed:
        yield from _open(facts, Verdict.LATE, "a marker, soon after the decision")


@rule(
    ERROR,
    "`kafka-transactions.sh … abort --start-offset …` writes an ABORT, which is right only for an aborted transaction",
)
def marker_missing(facts: Transactions) -> Iterator[Broken]:
    """A transaction is decided and closed, and a partition has no marker of it.

    Also one that goes on under another epoch: between the two there should have been a marker.
    """
    yield from _open(facts, Verdict.MARKER_MISSING, "a marker")
    for history in facts.histories.values():
        for row in history.table[history.table["earlier_epoch"] != NONE]:
            where = history.partition.where(offset=int(row["first_offset"]))
            found = f"producer {row['producer_id']} goes on from epoch {row['earlier_epoch']}"
            yield where, f"a marker before data of epoch {row['producer_epoch']}", found


def _open(facts: Transactions, verdict: Verdict, expected: str) -> Iterator[Broken]:
    return ((one.where, expected, one.story) for one in facts.open if one.verdict is verdict)


@rule(WARNING, "it holds nobody back; look for a producer that begins transactions and stops")
def transaction_no_data(facts: Transactions) -> Iterator[Broken]:
    """A transaction has been open for longer than its timeout, and has no data in a partition that it claims."""
    for transactional_id, entries in facts.log.history.items() if not facts.is_closed else ():
        metadata = entries[-1].metadata
        is_over = metadata.start_timestamp_ms + metadata.transaction_timeout_ms < facts.now_ms
        if metadata.state is not TransactionState.ONGOING or not is_over:
            continue
        for place in metadata.partitions:
            history = facts.histories.get(place)
            if history is not None and not history.is_open(metadata.producer_id):
                found = f"producer {metadata.producer_id} has nothing open"
                yield history.partition.where(), f"data of {transactional_id}", found


@rule(ERROR, "its records are there in part: find them by producer id and epoch, `logstore dump --producer-id`")
def transaction_atomicity(facts: Transactions) -> Iterator[Broken]:
    """A transaction was committed in one partition and aborted in another."""
    lives = facts.lives
    for ends in lives.groups("producer_id", "epoch"):
        committed, aborted = ends[ends["is_of_one"] & ends["is_commit"]], ends[ends["is_of_one"] & ~ends["is_commit"]]
        if committed.size and aborted.size:
            name = "-".join(map(str, lives.places[committed[0]["place"]]))
            expected = f"producer {ends[0]['producer_id']}, epoch {ends[0]['epoch']}: committed, as in {name}"
            yield _place(lives, aborted[0]), expected, "aborted"


@rule(WARNING, "nothing is wrong with the records; a coordinator sent it again, as after a failover")
def marker_doubled(facts: Transactions) -> Iterator[Broken]:
    """A transaction has two markers in one partition."""
    return _repeated(facts.lives, is_same=True)


@rule(
    ERROR,
    "the first marker counts for readers; find the records by producer id and epoch, `logstore dump --producer-id`",
)
def marker_contradicting(facts: Transactions) -> Iterator[Broken]:
    """Markers of one transaction say different things, or another than its coordinator decided.

    Each partition has as many COMMIT markers of a producer as its coordinator has decided, where all is on record.

    ABORT markers are not counted: an administrator may write them.
    """
    yield from _repeated(facts.lives, is_same=False)
    whole_ids = {transactional_id for transactional_id, entries in facts.log.history.items() if _is_whole(entries)}
    for (producer_id, epoch, place), (transactional_id, entries) in sorted(facts.lives.decisions.items()):
        history = facts.histories.get(place)
        if history is None or transactional_id not in whole_ids or not history.evidence.is_whole:
            continue
        if any(entry.timestamp < history.born_ms for entry in entries):
            continue  # some were of a topic of this name that was deleted
        count = sum(entry.metadata.state is TransactionState.PREPARE_COMMIT for entry in entries)
        ends = facts.lives.ends_of(place, producer_id, epoch)
        offsets = ends["offset"][ends["is_commit"]].tolist()
        if len(offsets) == count or history.is_open(producer_id):
            continue
        who = f"{transactional_id}, producer {producer_id}, epoch {epoch}"
        expected = f"{who}: {count} committed transactions, as its coordinator decided"
        where = history.partition.where(offset=offsets[-1] if offsets else None)
        yield where, expected, f"{len(offsets)} COMMIT markers"


def _repeated(lives: Lives, *, is_same: bool) -> Iterator[Broken]:
    """Two markers of one transaction in one partition, by the epoch that is its own."""
    for ends in lives.groups("producer_id", "epoch", "place"):
        first: np.void | None = None
        for end in ends if not ends["has_data"].all() and ends["is_of_one"].any() else ():
            if end["is_of_one"]:
                first = end
            elif first is not None and not end["has_data"] and (first["is_commit"] == end["is_commit"]) == is_same:
                who = f"producer {end['producer_id']}, epoch {end['epoch']}"
                expected = f"{who}: one marker, at offset {first['offset']}, {_outcome(first)}"
                yield _place(lives, end), expected, f"another one, {_outcome(end)}"


def _is_whole(entries: Sequence[CoordinatorEntry]) -> bool:
    """Whether every decision is on record: the first record is there, so none was compacted; and none is under way."""
    first, last = entries[0].metadata, entries[-1].metadata
    is_new = first.state is TransactionState.EMPTY and first.start_timestamp_ms < 0 and first.producer_epoch == 0
    return is_new and last.state not in PREPARED


def _place(lives: Lives, end: np.void) -> Where:
    return lives.histories[lives.places[end["place"]]].partition.where(offset=int(end["offset"]))


def _outcome(end: np.void) -> str:
    return "committed" if end["is_commit"] else "aborted"
