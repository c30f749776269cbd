"""One partition of `__transaction_state`: its transactional ids, one call at a time (`TransactionStateManager`).

A call logs the decision, stores it in memory and carries it out. After an interrupt between two steps the log is right:
the next call replays what was logged (`run`), and finishes what was decided.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ...calls import TRANSACTIONS, alone
from ...coordinator.transactions.ending import abort_timed_out
from ...coordinator.transactions.outcomes import (
    Answer,
    Append,
    MarkerOutcome,
    Outcome,
    TransactionRules,
    marker_outcome,
)
from ...coordinator.transactions.table import TransactionTable
from ...coordinator.transactions.transaction import Transaction
from ...coordinator.transactions.transitions import (
    PREPARE_COMMIT,
    prepare_complete,
    supports_epoch_bump,
)
from ...errors import ConcurrentTransactionsError, LogstoreError
from ...log.partition_log import PartitionLog
from ...replay.internal_topic import ReplayedRecord, errors_of, replayed
from ...topics.transaction_state import PREPARED, unknown_version
from ..internal_topic import CoordinatorTopic, for_each_then_raise
from .markers import MarkerWriter

if TYPE_CHECKING:
    from ..data_directory import DataDirectory

T = TypeVar("T")

_LOGGER = logging.getLogger("logstore")


class StatePartition:
    """The transactional ids of one partition.

    Attributes:
        table: their states; changed in `run` only.
        unfinished: transactional id to the error that kept its decision from being carried out.
        timed_out: transactional id to its state before its last abort by timeout, of this process.
    """

    def __init__(
        self,
        number: int,
        store: DataDirectory,
        topic: CoordinatorTopic,
        markers: MarkerWriter,
        rules: TransactionRules,
    ) -> None:
        """Replay the log.

        Records that only a newer Kafka can read are skipped, as by `TransactionStateManager`. Behind a damaged record a
        broker reads nothing more, and forgets fenced producers; here the opening fails.

        Raises:
            SchemaError, LogstoreError: a record or batch cannot be read, with its path and offset.
        """
        self.number = number
        self.table = TransactionTable(rules, coordinator_epoch=topic.log(number).leader_epoch)
        self.unfinished: dict[str, BaseException] = {}
        self.timed_out: dict[str, Transaction] = {}
        self._store, self._topic, self._markers = store, topic, markers
        self._lock = threading.Lock()
        self._next_offset = 0  # the table covers everything below it
        self._replay()
        self._is_settled = True

    def run(self, act: Callable[[TransactionTable], T]) -> T:
        """Call `act` with sole access to the table and the log, and return its result.

        Raises:
            ReentrantCallError: this thread is in here already, through a clock or a signal handler.
            LogstoreError: of `act`; or the log cannot be read.
        """
        with alone(TRANSACTIONS), self._lock:
            if not self._is_settled:
                self._settle()
            self._is_settled = False  # until `act` has returned: an error or an interrupt leaves it so
            result = act(self.table)
            self._next_offset = self._log.log_end_offset
            self._is_settled = True
            return result

    def get(self, transactional_id: str) -> Transaction | None:
        """Return the state of a transactional id, None if it is unknown; never waits."""
        self._settle_if_idle()
        return self.table.get(transactional_id)

    def transactions(self) -> list[Transaction]:
        """Return the states of all transactional ids; never waits."""
        self._settle_if_idle()
        return list(self.table)

    def request(self, transactional_id: str, decide: Callable[[Transaction | None], Outcome]) -> Answer:
        """Carry out a request and return its answer; raise the answer if it is an error.

        An earlier decided transaction is finished first. Where Kafka aborts another producer's transaction and answers
        to try again, the request is repeated here.

        Raises:
            LogstoreError: the answer; or the log cannot be written.
        """
        answer = self.run(partial(self._answer, transactional_id=transactional_id, decide=decide))
        if isinstance(answer, Answer):
            return answer
        cause = self.unfinished.get(transactional_id)
        if isinstance(answer, ConcurrentTransactionsError) and cause is not None:
            answer.advice = "the transaction before is decided, but its markers cannot be written; see the cause"
            raise answer from cause
        raise answer

    def finish_decided(self) -> None:
        """Try to finish all decided transactions (`loadTransactionsForTxnTopicPartition`)."""
        for one in self.transactions():
            if one.state in PREPARED:
                self.run(partial(self._finish_decided, transactional_id=one.transactional_id))

    def abort_timed_out(self) -> None:
        """Fence and abort the transactions that have timed out.

        Raises:
            LogstoreError: of the first that could not be aborted; all were tried.
        """
        now_ms, allocate = self._store.now_ms(), self._store.next_producer_id

        def decide(current: Transaction | None) -> Outcome:
            outcome = abort_timed_out(current, rules=self.table.rules, allocate=allocate, now_ms=now_ms)
            if current is not None and isinstance(outcome, Append):
                # before the write: its producer may ask as soon as it is fenced
                self.timed_out[current.transactional_id] = current
            return outcome

        timed_out = self.run(lambda table: table.timed_out(now_ms=now_ms))
        for_each_then_raise(timed_out, lambda transactional_id: self.request(transactional_id, decide))

    def remove_expired(self) -> None:
        """Forget expired transactional ids, with tombstones.

        Raises:
            LogstoreError: the partition cannot be written; the remaining ids stay.
        """

        def remove(table: TransactionTable) -> None:
            keys = table.expired(now_ms=self._store.now_ms())
            for batch in self._topic.append_tombstones(self.number, keys, needs_sync=False):
                for key in batch:
                    table.replay(key, None)
            self.timed_out = {name: one for name, one in self.timed_out.items() if table.get(name) is not None}

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

    def _answer(
        self, table: TransactionTable, transactional_id: str, decide: Callable[[Transaction | None], Outcome]
    ) -> Answer | LogstoreError:
        self._finish_decided(table, transactional_id)
        outcome = decide(table.get(transactional_id))
        # the abort of the earlier producer's transaction: Kafka's client asks again until it is done, here it is
        if isinstance(outcome, Append) and isinstance(outcome.answer, ConcurrentTransactionsError):
            self._write(outcome.following)
            outcome = decide(table.get(transactional_id))
        if isinstance(outcome, Append):
            self._write(outcome.following)
            return outcome.answer
        return outcome

    def _write(self, following: Transaction) -> None:
        """Log a transition, and carry it out if it is a decision."""
        is_commit = following.state is PREPARE_COMMIT
        # the data before the decision: a commit must not outlive its records
        if is_commit:
            self._markers.sync(following.partitions)
        # the log before memory: an interrupt in between is repaired by the next `run`, which replays the log
        self._topic.append(self.number, [self.table.record(following)], needs_sync=is_commit)
        self.table.put(following)
        if following.state in PREPARED:
            self._complete(following)

    def _finish_decided(self, table: TransactionTable, transactional_id: str) -> None:
        """Carry out the decision of an interrupted call, whose record may not be durable yet.

        Does nothing if another coordinator has taken over.
        """
        decided = table.get(transactional_id)
        if decided is None or decided.state not in PREPARED:
            return
        if marker_outcome(self.unfinished.get(transactional_id)) is MarkerOutcome.STOP:
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
        completed = prepare_complete(decided, now_ms=self._store.now_ms())
        # It need not be durable: without it the same markers are written again. But before version 2 a later
        # transaction may have the same epoch, and these markers would decide it too.
        needs_sync = not supports_epoch_bump(decided.client_transaction_version)
        try:
            failure = self._markers.write_all(self.table, decided)
            if failure is None:
                self._topic.append(self.number, [self.table.record(completed)], needs_sync=needs_sync)
        except LogstoreError as error:
            failure = error
        except BaseException as error:
            self.unfinished[transactional_id] = error
            raise
        if failure is not None:
            self.unfinished[transactional_id] = failure
            return
        self.table.put(completed)
        self.unfinished.pop(transactional_id, None)

    def _settle_if_idle(self) -> None:
        if not self._is_settled and not self._lock.locked():
            self.run(lambda _: None)

    def _settle(self) -> None:
        """Replay the log after an interrupted call, so that the table agrees with it."""
        self._replay()
        decided = {one.transactional_id for one in self.table if one.state in PREPARED}
        self.unfinished = {name: error for name, error in self.unfinished.items() if name in decided}

    def _replay(self) -> None:
        """Replay what is new in the log; of each key only the last record counts."""
        log, last, passed_over = self._log, dict[bytes, ReplayedRecord](), set[tuple[str, int]]()
        end_offset = log.log_end_offset
        for record in replayed(log, self._next_offset):
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
        for key, record in last.items():
            with errors_of(log.path, record.offset):
                self.table.replay(key, record.value)
        self._next_offset = end_offset
