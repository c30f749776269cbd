"""One partition of `__transaction_state`: its transactional ids, one call at a time (`TransactionStateManager`).

A call logs the decision, stores it in memory and carries it out. After an exception or a signal in the middle of that
the table is dropped: the next call loads it from the log, as after a crash, and finishes what was decided.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from ...calls import TRANSACTIONS, alone
from ...coordinator.transactions.ending import AbortTimedOut
from ...coordinator.transactions.outcomes import Answer, Append, Context, TransactionRules, is_taken_over
from ...coordinator.transactions.requests import Request
from ...coordinator.transactions.table import TransactionTable
from ...coordinator.transactions.transaction import Transaction
from ...coordinator.transactions.transitions import PREPARE_COMMIT, prepare_complete, supports_epoch_bump
from ...errors import ConcurrentTransactionsError, LogstoreError
from ...log.partition_log import PartitionLog
from ...replay.internal_topic import ReplayedRecord, errors_of, replayed
from ...topics.transaction_state import PREPARED, unknown_version
from ..host import Host
from ..internal_topic import CoordinatorTopic, for_each_then_raise
from .markers import MarkerWriter

T = TypeVar("T")

_LOGGER = logging.getLogger("logstore")


class TransactionStatePartition:
    """The transactional ids of one partition.

    Attributes:
        table: their states; changed in `run` only.
        unfinished: transactional id to the error that kept its decision from being carried out.
        timed_out: transactional id to its state before its last abort by timeout, of this process.
    """

    def __init__(
        self, number: int, host: Host, topic: CoordinatorTopic, markers: MarkerWriter, rules: TransactionRules
    ) -> None:
        self.number = number
        self.timed_out: dict[str, Transaction] = {}
        self._host, self._topic, self._markers, self._rules = host, topic, markers, rules
        self._lock = threading.Lock()
        self._is_whole = False
        self._load()

    def run(self, act: Callable[[TransactionTable], T]) -> T:
        """Return what `act` returns, which has sole access to table and log; raises as it does, or as `_load`."""
        with alone(TRANSACTIONS), self._lock:
            if not self._is_whole:
                self._load()
            self._is_whole = False  # until `act` has returned: after an exception the next call loads the log anew
            result = act(self.table)
            self._is_whole = True
            return result

    def get(self, transactional_id: str) -> Transaction | None:
        """Return the state of a transactional id; never waits."""
        self._load_if_idle()
        return self.table.get(transactional_id)

    def transactions(self) -> list[Transaction]:
        """Return all states; never waits."""
        self._load_if_idle()
        return list(self.table)

    def apply(self, request: Request) -> Answer:
        """Carry out a request and return its answer; raise the answer if it is an error.

        An earlier decided transaction is finished first. Where Kafka aborts another producer's transaction and answers
        to try again, the request is repeated here.
        """
        answer = self.run(lambda table: self._answer(table, request))
        if isinstance(answer, Answer):
            return answer
        cause = self.unfinished.get(request.transactional_id)
        if isinstance(answer, ConcurrentTransactionsError) and cause is not None:
            answer.advice = "the transaction before is decided, but its markers cannot be written; see the cause"
            raise answer from cause
        raise answer

    def finish_decided(self) -> None:
        """Try to finish all decided transactions (`loadTransactionsForTxnTopicPartition`)."""
        for decided in self.transactions():
            if decided.state in PREPARED:
                name = decided.transactional_id
                self.run(lambda table, name=name: self._finish_decided(table, name))  # type: ignore[misc]

    def abort_timed_out(self) -> None:
        """Fence and abort the transactions that have timed out; raise the first error, when all were tried."""
        timed_out = self.run(lambda table: table.timed_out(now_ms=self._host.now_ms()))
        for_each_then_raise(timed_out, lambda transactional_id: self.apply(AbortTimedOut(transactional_id)))

    def remove_expired(self) -> None:
        """Forget expired transactional ids, with tombstones."""

        def remove(table: TransactionTable) -> None:
            keys = table.expired(now_ms=self._host.now_ms())
            for batch in self._topic.append_tombstones(self.number, keys, needs_sync=False):
                for key in batch:
                    table.replay(key, None)
            self.timed_out = {name: ended for name, ended in self.timed_out.items() if table.get(name) is not None}

        self.run(remove)

    def replace(self, transaction: Transaction) -> None:
        """Replace the state of a transactional id, in the log and in memory."""

        def write(table: TransactionTable) -> None:
            self._topic.append(self.number, [table.record(transaction)])
            table.put(transaction)

        self.run(write)

    @property
    def _log(self) -> PartitionLog:
        return self._topic.log(self.number)

    def _answer(self, table: TransactionTable, request: Request) -> Answer | LogstoreError:
        transactional_id = request.transactional_id
        self._finish_decided(table, transactional_id)
        while True:
            current, now_ms = table.get(transactional_id), self._host.now_ms()
            outcome = request.decide(current, Context(self._rules, self._host.next_producer_id, now_ms))
            if not isinstance(outcome, Append):
                return outcome
            if isinstance(request, AbortTimedOut) and current is not None:
                # before the write: its producer may ask as soon as it is fenced
                self.timed_out[transactional_id] = current
            self._write(outcome.following)
            if not isinstance(outcome.answer, ConcurrentTransactionsError):
                return outcome.answer
            # that was the abort of an earlier producer: Kafka's client asks again until it is done, here it is

    def _write(self, following: Transaction) -> None:
        """Log a transition, and carry it out if it is a decision."""
        is_commit = following.state is PREPARE_COMMIT
        # the data before the decision: a commit must not outlive its records
        if is_commit:
            self._markers.sync(following.partitions)
        self._topic.append(self.number, [self.table.record(following)], needs_sync=is_commit)
        self.table.put(following)
        if following.state in PREPARED:
            self._complete(following)

    def _finish_decided(self, table: TransactionTable, transactional_id: str) -> None:
        """Carry out the decision of an earlier call, whose record may not be durable yet.

        Does nothing if another coordinator has taken over.
        """
        decided = table.get(transactional_id)
        if decided is None or decided.state not in PREPARED:
            return
        if is_taken_over(self.unfinished.get(transactional_id)):
            return
        try:
            if decided.state is PREPARE_COMMIT:
                self._topic.sync(self._log)
            self._markers.pass_over_written(table, decided)
        except LogstoreError as error:
            self.unfinished[transactional_id] = error
            return
        self._complete(decided)

    def _complete(self, decided: Transaction) -> None:
        """Write the missing markers, then log the completion.

        A failure goes into `unfinished` and is not raised: the transaction is decided, whatever happens now. If another
        coordinator has taken over, nothing is tried again until the partition is loaded anew.
        """
        transactional_id = decided.transactional_id
        completed = prepare_complete(decided, now_ms=self._host.now_ms())
        # It need not be durable: without it the same markers are written again. But before version 2 a later
        # transaction may have the same epoch, and these markers would decide it too.
        needs_sync = not supports_epoch_bump(decided.client_transaction_version)
        try:
            failure = self._markers.write_all(self.table, decided)
            if failure is None:
                self._topic.append(self.number, [self.table.record(completed)], needs_sync=needs_sync)
        except LogstoreError as error:
            failure = error
        if failure is not None:
            self.unfinished[transactional_id] = failure
            return
        self.table.put(completed)
        self.unfinished.pop(transactional_id, None)

    def _load_if_idle(self) -> None:
        if not self._is_whole and not self._lock.locked():
            self.run(lambda _: None)

    def _load(self) -> None:
        """Load the log; of each key only the last record counts.

        Records that only a newer Kafka can read are skipped, as by `TransactionStateManager`. Behind a damaged record a
        broker reads nothing more, and forgets fenced producers; here it is an error.
        """
        log, last, passed_over = self._log, dict[bytes, ReplayedRecord](), set[tuple[str, int]]()
        for record in replayed(log):
            if isinstance(record, ReplayedRecord) and record.key is not None:
                with errors_of(log.path, record.offset):
                    unknown = unknown_version(record.key, record.value)
                if unknown is None:
                    last[record.key] = record
                else:
                    passed_over.add(unknown)
        for what, version in sorted(passed_over):
            _LOGGER.warning(
                "Unknown message %s with version %d while loading transaction state from %s. Ignoring it. "
                "It could be a left over from an aborted upgrade.",
                *(what, version, log.path),
            )
        table = TransactionTable(self._rules, coordinator_epoch=log.leader_epoch)
        for key, record in last.items():
            with errors_of(log.path, record.offset):
                table.replay(key, record.value)
        self.table, self.unfinished = table, dict[str, LogstoreError]()
        self._is_whole = True
