"""Rules about transactions across partitions, and between partitions and their coordinator."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...disk.names import child
from ...layout.file_names import METADATA_TOPIC, directory_name
from ...topics.transaction_state import TOPIC, TransactionState
from ..cluster import Known
from ..facts.states import CoordinatorEntry
from ..facts.transactions import NONE, PartitionTransactions
from ..finding import Broken, Place, Silence, Where, rule
from ..lives import Lives, Mismatch, has_data, is_of_one
from ..open_transactions import Transactions, Verdict
from .batches import DAMAGED, ERROR, UNSETTLED, WARNING

CLOSED = Silence.CLOSED


_UNMATCHED = (UNSETTLED, Silence.MADE_AGAIN)  # of a marker or a decision without its other half
_UNJUDGED = {
    Verdict.RECENT: UNSETTLED,
    Verdict.DAMAGED: DAMAGED,
    Verdict.UNKNOWN: Silence.COORDINATOR_MISSING,
}


@rule(
    ERROR,
    "`kafka-transactions.sh --bootstrap-server … abort --topic … --partition … --start-offset …` with its first offset",
    unless=tuple(_UNJUDGED.values()),
)
def transaction_hanging(facts: Transactions) -> Iterator[Place]:
    """An open transaction that no coordinator is going to end."""
    yield from _open(facts, Verdict.HANGING, "a coordinator that knows of it")
    for verdict, silence in _UNJUDGED.items():
        yield from ((*place, silence) for place in _open(facts, verdict, "a coordinator that knows of it"))


@rule(
    WARNING,
    "the coordinator should have aborted it: is the broker of its partition of __transaction_state up?",
    unless=(CLOSED,),
)
def transaction_timeout(facts: Transactions) -> Iterator[Place]:
    """A transaction has been open for longer than its timeout."""
    return _late(facts, Verdict.TIMED_OUT, "an end within its timeout")


@rule(WARNING, "the coordinator goes on trying: can it reach the partition's leader?", unless=(CLOSED,))
def marker_late(facts: Transactions) -> Iterator[Place]:
    """A transaction was decided longer than its timeout ago, and a marker has not come."""
    return _late(facts, Verdict.LATE, "a marker, soon after the decision")


@rule(
    ERROR,
    "`kafka-transactions.sh … abort --start-offset …` writes an ABORT, which is right only for an aborted transaction",
    unless=(*_UNMATCHED, Silence.NOT_ON_RECORD),
)
def marker_missing(facts: Transactions) -> Iterator[Place]:
    """A transaction is decided and closed, and a partition has no marker of it.

    Also one that goes on under another epoch: between the two there should have been a marker.
    """
    yield from _open(facts, Verdict.MARKER_MISSING, "a marker")
    for history in facts.histories.values():
        for row in history.table[history.table["earlier_epoch"] != NONE]:
            if facts.lives.is_compared(int(row["producer_id"]), history.partition.key):
                continue  # it is among the discrepancies
            where = history.partition.where(offset=int(row["first_offset"]))
            found = f"producer {row['producer_id']} goes on from epoch {row['earlier_epoch']}"
            yield where, f"a marker before data of epoch {row['producer_epoch']}", found
    yield from _different(facts, Mismatch.MISSING)
    yield from _uncompared(facts)


@rule(
    WARNING,
    "let this replica fetch the partition anew, and give `delete.retention.ms` more time than a replica may be down",
)
def marker_cleaned(facts: Transactions) -> Iterator[Place]:
    """The leader's cleaner took the marker of a transaction before this replica fetched it.

    The data came before the cleaner was there. If this replica is elected, read_committed ends at the transaction.
    """
    return _open(facts, Verdict.MARKER_CLEANED, "a marker with its record")


def _open(facts: Transactions, verdict: Verdict, expected: str) -> Iterator[tuple[Where, str, str]]:
    return ((one.where, expected, one.story) for one in facts.open if one.verdict is verdict)


def _late(facts: Transactions, verdict: Verdict, expected: str) -> Iterator[Place]:
    return ((*place, CLOSED if facts.is_closed else None) for place in _open(facts, verdict, expected))


@rule(WARNING, "it holds nobody back; look for a producer that begins transactions and stops", unless=(CLOSED, DAMAGED))
def transaction_no_data(facts: Transactions) -> Iterator[Place]:
    """A transaction has been open for longer than its timeout, and has no data in a partition that it claims."""
    for transactional_id, rows in facts.log.history.items():
        metadata = facts.log.entries(rows[-1:])[0].metadata
        due_ms = metadata.start_timestamp_ms + metadata.transaction_timeout_ms
        if metadata.state is not TransactionState.ONGOING or due_ms >= facts.moment.judged_ms:
            continue
        for place in metadata.partitions:
            history = facts.histories.get(place)
            if history is not None and not history.is_open(metadata.producer_id):
                found = f"producer {metadata.producer_id} has nothing open"
                silence = DAMAGED if history.evidence.has_damage else CLOSED if facts.is_closed else None
                yield history.partition.where(), f"data of {transactional_id}", found, silence


@rule(ERROR, "its records are there in part: find them by producer id and epoch, `logstore dump --producer-id`")
def transaction_atomicity(facts: Transactions) -> Iterator[Place]:
    """A transaction was committed in one partition and aborted in another."""
    lives = facts.lives
    for ends in lives.groups("producer_id", "marker_epoch"):
        ends = ends[is_of_one(ends)]
        committed, aborted = ends[ends["is_commit"]], ends[~ends["is_commit"]]
        if committed.size and aborted.size:
            name = "-".join(map(str, lives.places[committed[0]["place"]]))
            expected = f"producer {ends[0]['producer_id']}, epoch {ends[0]['marker_epoch']}: committed, as in {name}"
            yield _place(lives, aborted[0]), expected, "aborted"


@rule(WARNING, "nothing is wrong with the records; a coordinator sent it again, as after a failover", unless=_UNMATCHED)
def marker_doubled(facts: Transactions) -> Iterator[Place]:
    """A transaction has two markers in one partition."""
    yield from _repeated(facts.lives, is_same=True)
    yield from _different(facts, Mismatch.DOUBLED)


@rule(
    ERROR,
    "the first marker counts for readers; find the records by producer id and epoch, `logstore dump --producer-id`",
    unless=_UNMATCHED,
)
def marker_contradicting(facts: Transactions) -> Iterator[Place]:
    """Markers of one transaction say different things, or another than its coordinator decided."""
    yield from _repeated(facts.lives, is_same=False)
    yield from _different(facts, Mismatch.CONTRADICTING)


@rule(
    WARNING,
    "it ends nothing, so that no records are lost by it: what wrote it?",
    unless=(*_UNMATCHED, Silence.NOT_ON_RECORD),
)
def marker_unexplained(facts: Transactions) -> Iterator[Place]:
    """There is an ABORT marker of no transaction, that no coordinator decided."""
    yield from _different(facts, Mismatch.UNEXPLAINED)
    yield from _uncompared(facts)


@rule(WARNING, "the leader refuses the producer's next markers if their epochs are lower: what wrote it?")
def marker_epoch(facts: Transactions) -> Iterator[Place]:
    """A marker has a coordinator epoch below that of an earlier one, or above all that the coordinators have come to.

    It is the leader epoch of a partition of `__transaction_state`, which never goes back; a leader refuses a marker of
    a lower one (`ProducerAppendInfo.checkCoordinatorEpoch`).
    """
    for before, end in facts.lives.falling_epochs():
        who = f"producer {end['producer_id']}: coordinator epoch"
        yield _place(facts.lives, end), f"{who} {before['coordinator_epoch']} or above", end["coordinator_epoch"]
    for _, history in sorted(facts.histories.items()):
        yield from _above_all(history)


def _above_all(history: PartitionTransactions) -> Iterator[Place]:
    """Find epochs that no coordinator has; only metadata that was closed after the log has all of them."""
    cluster, topic = history.evidence.cluster, history.evidence.cluster.topic(TOPIC)
    if topic is None or not history.partition.surroundings.was_closed or cluster.is_alone is not Known.YES:
        return
    highest = max(one.leader_epoch for one in topic.partitions.values())
    for end in history.markers(lambda rows: rows["coordinator_epoch"] > highest):
        expected = f"producer {end['producer_id']}: coordinator epochs up to {highest}, as {METADATA_TOPIC} has"
        yield history.partition.where(offset=int(end["marker_offset"])), expected, end["coordinator_epoch"]


@rule(
    ERROR,
    "partitions may have got markers of either kind: compare them by `logstore audit` of all brokers",
    unless=(DAMAGED, Silence.NEWER_KAFKA),
)
def coordinator_state(facts: Transactions) -> Iterator[Place]:
    """A record of a coordinator contradicts the one before it of its transactional id."""
    for before, entry, expected, found in facts.log.misfits:
        path = child(facts.moment.cluster.root, directory_name(TOPIC, entry.partition))
        where = Where(path, TOPIC, entry.partition, offset=entry.offset)
        if before not in (None, entry):
            expected += f", as {before.metadata.state.name} at offset {before.offset} is before"
        newer = Silence.NEWER_KAFKA if facts.log.is_newer else None
        yield where, expected, found, DAMAGED if facts.log.bad_count else newer


def _different(facts: Transactions, mismatch: Mismatch) -> Iterator[Place]:
    for one in facts.lives.discrepancies:
        if one.mismatch is mismatch:
            expected = "no marker more" if one.decision is None else f"a marker of {_decision(one.decision)}"
            if one.mismatch is Mismatch.DOUBLED and one.before is not None:
                expected = f"one marker, at offset {one.before['marker_offset']}"
            found = "none" if one.end is None else f"{_outcome(one.end)}, epoch {one.end['marker_epoch']}"
            name = "first_offset" if mismatch is Mismatch.MISSING else "marker_offset"
            offset = None if one.end is None else int(one.end[name])
            where = facts.histories[one.place].partition.where(offset=offset)
            yield where, f"{one.who}: {expected}", found, one.silence


def _uncompared(facts: Transactions) -> Iterator[Place]:
    for place in sorted(facts.lives.uncompared):
        yield facts.histories[place].partition.where(), None, None, Silence.NOT_ON_RECORD


def _decision(entry: CoordinatorEntry) -> str:
    metadata = entry.metadata
    return f"{metadata.state.name}, epoch {metadata.producer_epoch}, at {TOPIC}-{entry.partition} offset {entry.offset}"


def _repeated(lives: Lives, *, is_same: bool) -> Iterator[Place]:
    """Find two markers of one transaction in one partition, by the epoch that it alone has."""
    for ends in lives.groups("producer_id", "marker_epoch", "place"):
        place = lives.places[ends[0]["place"]]
        if lives.is_compared(int(ends[0]["producer_id"]), place):
            continue
        cleaned_up_to = lives.histories[place].evidence.cleaned_up_to  # from there on, a marker has the data it ended
        first: np.void | None = None
        for end in ends if not has_data(ends).all() and is_of_one(ends).any() else ():
            if has_data(end):  # after a transaction that shares the epoch nobody knows whose marker comes next
                first = end if is_of_one(end) and end["marker_offset"] >= cleaned_up_to else None
            elif first is not None and (first["is_commit"] == end["is_commit"]) == is_same:
                who = f"producer {end['producer_id']}, epoch {end['marker_epoch']}"
                expected = f"{who}: one marker, at offset {first['marker_offset']}, {_outcome(first)}"
                yield _place(lives, end), expected, f"another one, {_outcome(end)}"


def _place(lives: Lives, end: np.void) -> Where:
    return lives.histories[lives.places[end["place"]]].partition.where(offset=int(end["marker_offset"]))


def _outcome(end: np.void) -> str:
    return "committed" if end["is_commit"] else "aborted"


_OF_ALL = (
    transaction_hanging,
    transaction_timeout,
    marker_late,
    marker_missing,
    marker_cleaned,
    transaction_no_data,
    transaction_atomicity,
    marker_doubled,
    marker_contradicting,
    marker_unexplained,
    marker_epoch,
    coordinator_state,
)


def crossing_transactions(facts: Transactions) -> Iterator[Broken]:
    """Yield what is wrong with transactions, also of one partition alone."""
    for one in _OF_ALL:
        yield from one(facts)
