"""Sending of a producer's batches to the logs of their partitions: tried, retried, or given up (`Sender`).

A partition knows a producer by its id, epoch, and sequences that begin at 0 with both. Batches go into a partition one
after the other, each before the next is tried, so a sequence is used only once the log has taken it: a refused batch
leaves no gap, and a repeated one is recognized by its sequence.
"""

from __future__ import annotations

import logging

from ...columns.record_columns import RecordColumns
from ...coordinator.transactions.outcomes import NO_IDENTITY, ProducerIdentity
from ...errors import (
    KafkaStorageError,
    LogstoreError,
    OutOfOrderSequenceError,
    ProducerFailedError,
    RecordTooLargeError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)
from ...folds.verification import VerificationGuard
from ...layout.batch import NO_SEQUENCE
from ...layout.record import PRODUCER_EPOCH_MAX, EncodedHeaders
from ...log.append.request import AppendInfo
from ...model import Codec
from ...store.data_directory import DataDirectory
from .batch import Batch
from .config import ProducerConfig
from .queues import PartitionQueue
from .retry import RETRIABLE, backoff_s
from .transactions import TransactionManager

_LOGGER = logging.getLogger("logstore")


class Sender:
    """Appends the batches of one producer. Not thread-safe: the caller holds the producer's mutex."""

    def __init__(self, store: DataDirectory, config: ProducerConfig, transactions: TransactionManager | None) -> None:
        self._store, self._config, self._transactions = store, config, transactions
        self._is_idempotent: bool = config["enable.idempotence"]
        self._identity = NO_IDENTITY  # of a producer without transactions
        self._retries: int = config["retries"]
        self._codec = Codec[config["compression.type"].upper()]
        self._level: int | None = config.get(f"compression.{config['compression.type']}.level")
        self._lost: tuple[Batch, LogstoreError] | None = None  # the first records whose error the program has not seen
        self._lost_count = 0  # refused records since then

    # -- records that the program must hear of ------------------------------------------------------------------------

    @property
    def unreported_error(self) -> LogstoreError | None:
        """Error of records that are not in the log and whose futures nobody asked."""
        return None if self._lost is None or self._lost[0].is_reported else self._lost[1]

    def raise_unreported(self) -> None:
        """Raise the error of the first refused record, once, unless the program has seen it."""
        error, count = self.unreported_error, self._lost_count
        self.forget_unreported()
        if error is not None:
            error.add_note(f"{count} record(s) were not written; this is why the first was not, as its future says")
            raise error

    def forget_unreported(self) -> None:
        """Count all errors as seen, as the end of a transaction tells them."""
        self._lost, self._lost_count = None, 0

    def give_up(self, batch: Batch, count: int, error: LogstoreError) -> None:
        """Fail the next records of a batch, which the program has to hear of."""
        if self.unreported_error is None:
            self._lost, self._lost_count = (batch, error), 0
        self._lost_count += count
        batch.set_outcome(count, error)

    # -- a batch ------------------------------------------------------------------------------------------------------

    def append(self, queue: PartitionQueue, batch: Batch, now_s: float) -> bool:
        """Append the rest of a batch, halved while it is too large; False if a rest waits until `batch.retry_s`."""
        failure = None if self._transactions is None else self._transactions.error
        if failure is not None and batch.left_count:
            batch.set_outcome(batch.left_count, failure)
        ends: list[int] = []  # of the halves, the next one last
        while left_count := batch.left_count:
            start = batch.done_count
            while ends and ends[-1] <= start:
                ends.pop()
            count = ends[-1] - start if ends else left_count
            try:
                self._append(queue, batch, start, count)
            except RecordTooLargeError as error:
                if count > 1:
                    ends.append(start + count // 2)
                else:
                    self._refuse(batch, count, error)
            except LogstoreError as error:
                if self._must_wait(queue, batch, count, error, now_s):
                    return False
            except Exception as error:
                unexpected = ProducerFailedError("Unexpected error while records were written", found=repr(error))
                unexpected.__cause__ = error
                self._refuse(batch, count, unexpected)
        return True

    def append_columns(self, queue: PartitionQueue, columns: RecordColumns) -> AppendInfo:
        """Append columns, in one attempt.

        If it is cut off after some batches, sequences start anew, as only the log knows which were used. A transaction
        has failed then, even if it was an interrupt: else half of the columns would count.
        """
        identity = self._current_identity()
        sequence = queue.next_sequence(identity) if self._is_idempotent else NO_SEQUENCE
        log = queue.log
        end_offset = log.log_end_offset
        try:
            info = log.append_columns(
                columns,
                codec=self._codec,
                level=self._level,
                guard=self._join(queue, sequence),
                producer_id=identity.producer_id,
                producer_epoch=identity.producer_epoch,
                base_sequence=sequence,
                is_transactional=self._transactions is not None,
            )
            self._written(queue, identity, sequence + len(columns))
        except BaseException as error:
            if log.log_end_offset != end_offset:
                if self._transactions is not None and not isinstance(error, LogstoreError):
                    broken_off = ProducerFailedError("Columns were broken off", found=repr(error))
                    self._transactions.batch_failed(broken_off)
                elif self._transactions is None and self._is_idempotent:
                    self._bump()
            raise
        return info

    # -- steps --------------------------------------------------------------------------------------------------------

    def _append(self, queue: PartitionQueue, batch: Batch, start: int, count: int) -> None:
        identity = self._current_identity()
        sequence = NO_SEQUENCE
        if self._is_idempotent:
            sequence = batch.sequence((start, identity, queue.log), queue.next_sequence(identity))
        guard = self._join(queue, sequence)
        keys, values, timestamps, headers = batch.columns(start, count)
        info = queue.log.append_records(
            values,
            keys if any(keys) or keys.count(None) < count else None,  # `any` first: counting None is slow with keys
            timestamps,
            None if headers.count(b"") == count else EncodedHeaders(headers),
            producer_id=identity.producer_id,
            producer_epoch=identity.producer_epoch,
            base_sequence=sequence,
            is_transactional=self._transactions is not None,
            codec=self._codec,
            level=self._level,
            guard=guard,
        )
        self._written(queue, identity, sequence + count)  # the batch's own sequence: an interrupt may repeat this
        batch.set_outcome(count, info)

    def _must_wait(self, queue: PartitionQueue, batch: Batch, count: int, error: LogstoreError, now_s: float) -> bool:
        """Return whether refused records must be retried later; else fail them (`Sender.completeBatch`, `canRetry`)."""
        if isinstance(error, KafkaStorageError):
            try:
                if queue.rebind_log(self._store):
                    return False  # the log of a recreated topic may take them at once
            except UnknownTopicOrPartitionError as gone:
                error = gone
        is_plain = self._is_idempotent and self._transactions is None
        is_gap = isinstance(error, OutOfOrderSequenceError) and is_plain
        if not (isinstance(error, RETRIABLE) or is_gap):
            self._refuse(batch, count, error)
            return False
        batch.attempt_count += 1
        if batch.attempt_count > self._retries:
            self._refuse(batch, count, error)
            return False
        if now_s >= batch.expiry_s:
            expired = RequestTimedOutError(
                f"Expiring {count} record(s) for {batch.topic_partition}: delivery.timeout.ms has passed since batch "
                "creation"
            )
            expired.__cause__ = error
            self._refuse(batch, count, expired)
            return False
        if is_gap:
            self._bump()
        batch.retried_error, batch.retry_s = error, now_s + backoff_s(self._config, batch.attempt_count)
        return True

    def _refuse(self, batch: Batch, count: int, error: LogstoreError) -> None:
        error = error if self._transactions is None else self._transactions.explained(error)
        self.give_up(batch, count, error)
        if self._transactions is not None:
            self._transactions.batch_failed(error)
            return
        _LOGGER.warning("%d record(s) for %s were not written: %s", count, batch.topic_partition, error)

    # -- who writes ---------------------------------------------------------------------------------------------------

    def _current_identity(self) -> ProducerIdentity:
        if self._transactions is not None:
            return self._transactions.identity
        if self._is_idempotent and self._identity is NO_IDENTITY:
            self._identity = ProducerIdentity(self._store.next_producer_id(), 0)
        return self._identity

    def _bump(self) -> None:
        """Start all sequences anew, with the next epoch (`bumpIdempotentProducerEpoch`)."""
        current = self._identity
        is_exhausted = current.producer_epoch >= PRODUCER_EPOCH_MAX
        self._identity = (
            NO_IDENTITY if is_exhausted else ProducerIdentity(current.producer_id, current.producer_epoch + 1)
        )

    def _join(self, queue: PartitionQueue, sequence: int) -> VerificationGuard | None:
        """Add the queue's partition to the transaction, if any; return the guard for the first batch."""
        if self._transactions is None or queue.transaction == self._transactions.number:
            return None
        return self._transactions.join(queue.topic_partition, sequence)

    def _written(self, queue: PartitionQueue, identity: ProducerIdentity, sequence: int) -> None:
        """Note that the log has all records below `sequence`, and so belongs to the transaction."""
        queue.advance(identity, sequence)
        if self._transactions is not None:
            queue.transaction = self._transactions.number
