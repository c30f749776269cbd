"""Why read_committed consumers of a partition get no further: who holds them back, what is missing, what to do."""

from __future__ import annotations

from typing import Any, NamedTuple

from .open_transactions import OpenTransaction, Verdict
from .partition_transactions import PartitionTransactions


class Explanation(NamedTuple):
    """The answer about one partition.

    Attributes:
        last_stable_offset: read_committed consumers get what is below.
        log_end_offset: read_uncommitted consumers get what is below, once it is replicated.
        blocking: the transaction that they wait for; None if they wait for none.
        open_count: transactions that are open, this one included.
    """

    partition: str
    last_stable_offset: int
    log_end_offset: int
    blocking: OpenTransaction | None
    open_count: int

    @property
    def why(self) -> str:
        """In one sentence."""
        if self.blocking is None:
            return "no transaction is open: read_committed consumers get all there is"
        return _WHY[self.blocking.verdict]

    @property
    def advice(self) -> str:
        """What to do."""
        return "nothing" if self.blocking is None else _ADVICE[self.blocking.verdict].format(**self._words())

    @property
    def missing(self) -> str | None:
        """The marker that would let readers on."""
        if self.blocking is None:
            return None
        transaction = self.blocking.transaction
        return f"a COMMIT or ABORT marker of producer {transaction.producer_id} in {self.partition}"

    def _words(self) -> dict[str, Any]:
        topic, _, number = self.partition.rpartition("-")
        first_offset = 0 if self.blocking is None else self.blocking.transaction.first_offset
        return {"topic": topic, "number": number, "first_offset": first_offset}


def explain(history: PartitionTransactions, open_transactions: list[OpenTransaction]) -> Explanation:
    """Of one partition, by its open transactions, the first of which holds readers back."""
    blocking = open_transactions[0] if open_transactions else None
    return Explanation(
        history.partition.name, history.last_stable_offset, history.log_end_offset, blocking, len(open_transactions)
    )


def transaction_json(one: OpenTransaction) -> dict[str, Any]:
    """An open transaction in plain values, named as Kafka names them."""
    transaction, entry = one.transaction, one.coordinator
    found: dict[str, Any] = {
        "topic": one.history.partition.files.topic,
        "partition": one.history.partition.files.partition,
        "producerId": transaction.producer_id,
        "producerEpoch": transaction.producer_epoch,
        "transactionalId": one.transactional_id,
        "firstOffset": transaction.first_offset,
        "lastOffset": transaction.last_offset,
        "records": transaction.record_count,
        "ageMs": one.age_ms,
        "verdict": one.verdict.value,
        "coordinator": None,
    }
    if entry is not None:
        metadata = entry.metadata
        found["coordinator"] = {
            "partition": f"__transaction_state-{entry.partition}",
            "offset": entry.offset,
            "state": metadata.state.name,
            "producerEpoch": metadata.producer_epoch,
            "transactionTimeoutMs": metadata.transaction_timeout_ms,
            "transactionStartTimeMs": metadata.start_timestamp_ms,
            "partitions": [f"{topic}-{number}" for topic, number in metadata.partitions],
        }
    return found


def explanation_json(explanation: Explanation) -> dict[str, Any]:
    """The answer in plain values."""
    blocking = explanation.blocking
    return {
        "partition": explanation.partition,
        "lastStableOffset": explanation.last_stable_offset,
        "logEndOffset": explanation.log_end_offset,
        "openTransactions": explanation.open_count,
        "why": explanation.why,
        "missing": explanation.missing,
        "advice": explanation.advice,
        "blocking": None if blocking is None else transaction_json(blocking),
    }


_ABORT = (
    "`kafka-transactions.sh --bootstrap-server … abort --topic {topic} --partition {number} "
    "--start-offset {first_offset}` ends it in this partition"
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
}
