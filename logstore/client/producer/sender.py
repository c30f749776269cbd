"""Sending of a producer's batches to the logs of their partitions: tried, retried, or given up (`Sender`).

A partition knows a producer by its id, epoch, and sequences that begin at 0 with both. Batches go into a partition one
after the other, each before the next is tried, so a sequence is used only once the log has taken it: a refused batch
leaves no gap, and a repeated one is recognized by its sequence.
"""

from __future__ import annotations

import logging
from typing import cast

from ...columns.record_columns import PythonRecord, RecordColumns
from ...columns.small_batch import build_batch_from_records
from ...coordinator.transactions.outcomes import NO_IDENTITY, ProducerIdentity
from ...coordinator.transactions.transaction import EPOCH_MAX
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
from ...layout.record import EncodedHeaders
from ...log.append.request import AppendInfo
from ...model import Codec
from ...store.data_directory import DataDirectory
from .batch import Batch
from .config import ProducerConfig
from .queues import PartitionQueue
from .retry import RETRIABLE, Backoff
from .transactions import TransactionManager

_LOGGER = logging.getLogger("logstore")


class Sender:
    """Appends the batches of one producer. Not thread-safe: the caller holds the producer's mutex."""

    def __init__(self, store: DataDirectory, config: ProducerConfig, transactions: TransactionManager | None) -> None:
        self._store, self._transactions = store, transactions
        self._is_idempotent: bool = config["enable.idempotence"]
        self._identity = NO_IDENTITY  # of a producer without transactions
        self._retries: int = config["retries"]
        self._backoff = Backoff(config)
        self._codec = Codec[config["compression.type"].upper()]
        self._level: int | None = config.get(f"compression.{config['compression.type']}.level")
        self._lost: tuple[Batch, LogstoreError] | None = None  # the first records whose error the program has not seen
        self._lost_count = 0  # refused records since then

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

    def give_up(self, batch: Batch, error: LogstoreError) -> None:
        """Settle what is left of a batch as not written, which the program has to hear of."""
        self._note_lost(batch, batch.left_count, error)
        batch.settle(batch.left_count, error)

    def try_append(self, queue: PartitionQueue, batch: Batch, now_s: float) -> None:
        """Append the rest of the batch; what remains is to be retried at `batch.retry_s`."""
        while batch.left_count:
            error = None if self._transactions is None else self._transactions.error
            if error is not None:
                batch.settle(batch.left_count, error)
            elif not self._try(queue, batch, batch.left_count, now_s):
                return

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
                producer_id=identity.producer_id,
                producer_epoch=identity.producer_epoch,
                base_sequence=sequence,
                is_transactional=self._transactions is not None,
                leader_epoch=queue.leader_epoch,
                guard=self._join(queue, sequence),
            )
            queue.advance(identity, sequence + len(columns))
        except BaseException as error:
            if log.log_end_offset != end_offset:
                if self._transactions is not None and not isinstance(error, LogstoreError):
                    broken_off = ProducerFailedError("Columns were broken off", found=repr(error))
                    self._transactions.batch_failed(broken_off)
                elif self._transactions is None and self._is_idempotent:
                    self._bump()
            raise
        self._joined(queue)
        return info

    # -- a batch ------------------------------------------------------------------------------------------------------

    def _try(self, queue: PartitionQueue, batch: Batch, count: int, now_s: float) -> bool:
        """Append `count` records, halving a batch that is too large; return False if it must be retried."""
        try:
            self._append(queue, batch, count)
        except RecordTooLargeError as error:
            if count > 1:
                half = count // 2
                return self._try(queue, batch, half, now_s) and self._try(queue, batch, count - half, now_s)
            self._refuse(batch, count, error)
        except LogstoreError as error:
            return self._fail(queue, batch, count, error, now_s)
        except Exception as error:
            failure = ProducerFailedError("Unexpected error while records were written", found=repr(error))
            failure.__cause__ = error
            self._refuse(batch, count, failure)
        return True

    def _fail(self, queue: PartitionQueue, batch: Batch, count: int, error: LogstoreError, now_s: float) -> bool:
        """Settle a refused append, or return False if it must be retried (`Sender.completeBatch`, `canRetry`)."""
        if isinstance(error, KafkaStorageError):
            try:
                if queue.rebind_log(self._store):
                    return self._try(queue, batch, count, now_s)
            except UnknownTopicOrPartitionError as gone:
                error = gone
        is_plain = self._is_idempotent and self._transactions is None
        is_gap = isinstance(error, OutOfOrderSequenceError) and is_plain
        if not (isinstance(error, RETRIABLE) or is_gap):
            self._refuse(batch, count, error)
            return True
        batch.attempt_count += 1
        if batch.attempt_count > self._retries:
            self._refuse(batch, count, error)
            return True
        if now_s >= batch.expiry_s:
            expired = RequestTimedOutError(
                f"Expiring {count} record(s) for {batch.topic_partition}: delivery.timeout.ms has passed since batch "
                "creation"
            )
            expired.__cause__ = error
            self._refuse(batch, count, expired)
            return True
        if is_gap:
            self._bump()
        batch.retried_error, batch.retry_s = error, now_s + self._backoff.wait_s(batch.attempt_count)
        return False

    def _refuse(self, batch: Batch, count: int, error: LogstoreError) -> None:
        error = error if self._transactions is None else self._transactions.explained(error)
        self._note_lost(batch, count, error)
        batch.settle(count, error)
        if self._transactions is not None:
            self._transactions.batch_failed(error)
            return
        _LOGGER.warning("%d record(s) for %s were not written: %s", count, batch.topic_partition, error)

    def _note_lost(self, batch: Batch, count: int, error: LogstoreError) -> None:
        if self.unreported_error is None:
            self._lost, self._lost_count = (batch, error), 0
        self._lost_count += count

    def _append(self, queue: PartitionQueue, batch: Batch, count: int) -> None:
        start = batch.settled_count
        identity = self._current_identity()
        sequence = NO_SEQUENCE
        if self._is_idempotent:
            sequence = batch.sequence((start, identity, queue.log), queue.next_sequence(identity))
        guard = self._join(queue, sequence)
        records = batch.records if count == len(batch.records) else batch.records[start : start + count]
        keys, values, timestamps, headers = zip(*records, strict=True)
        if self._codec is Codec.NONE:
            info = queue.log.append_records(
                values,
                keys if any(keys) or keys.count(None) < count else None,  # `any` first: counting None is slow with keys
                timestamps,
                None if headers.count(b"") == count else EncodedHeaders(headers),
                producer_id=identity.producer_id,
                producer_epoch=identity.producer_epoch,
                base_sequence=sequence,
                is_transactional=self._transactions is not None,
                leader_epoch=queue.leader_epoch,
                guard=guard,
            )
        else:
            data = build_batch_from_records(
                cast("list[PythonRecord]", records),
                codec=self._codec,
                level=self._level,
                producer_id=identity.producer_id,
                producer_epoch=identity.producer_epoch,
                base_sequence=sequence,
                is_transactional=self._transactions is not None,
            )
            info = queue.log.append_as_leader(data, leader_epoch=queue.leader_epoch, guard=guard)
        queue.advance(identity, sequence + count)  # from the batch's own sequence, so it may be repeated, see `Batch`
        self._joined(queue)
        batch.settle(count, info)

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
        is_exhausted = current.producer_epoch >= EPOCH_MAX
        self._identity = (
            NO_IDENTITY if is_exhausted else ProducerIdentity(current.producer_id, current.producer_epoch + 1)
        )

    def _join(self, queue: PartitionQueue, sequence: int) -> VerificationGuard | None:
        """Add the queue's partition to the transaction, if any; return the guard for the first batch."""
        if self._transactions is None or queue.transaction == self._transactions.number:
            return None
        return self._transactions.join(queue.topic_partition, sequence)

    def _joined(self, queue: PartitionQueue) -> None:
        if self._transactions is not None:
            queue.transaction = self._transactions.number
