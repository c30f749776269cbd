"""A producer's batch into the log of its partition: tried, tried again, or given up (`Sender`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..columns.small_batch import build_batch_from_records
from ..errors import (
    KafkaStorageError,
    LogstoreError,
    OutOfOrderSequenceError,
    ProducerFailedError,
    RecordTooLargeError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)
from ..log.append_info import AppendInfo
from ..model import Codec
from ..store.store import Store
from .idempotence import Idempotence
from .lanes import Lane
from .producer_batch import ProducerBatch
from .producer_config import ProducerConfig
from .retrying import RETRIABLE, Backoff

if TYPE_CHECKING:
    from .producer_transactions import ProducerTransactions


class BatchSender:
    """Appends the batches of one producer. Not thread-safe: the producer's lock is held."""

    def __init__(
        self,
        store: Store,
        config: ProducerConfig,
        idempotence: Idempotence,
        transactions: ProducerTransactions | None,
    ) -> None:
        self._store = store
        self._idempotence = idempotence
        self._transactions = transactions
        self._retries: int = config["retries"]
        self._backoff = Backoff(config)
        self._codec = Codec[config["compression.type"].upper()]
        level = f"compression.{config['compression.type']}.level"
        self._level: int | None = config.get(level)
        self._lost: tuple[ProducerBatch, KafkaStorageError] | None = None

    @property
    def untold_error(self) -> KafkaStorageError | None:
        """Why records are not on the disk whose futures nobody has asked; of a transaction its end tells."""
        return None if self._lost is None or self._lost[0].is_told else self._lost[1]

    def try_append(self, lane: Lane, batch: ProducerBatch, now_s: float) -> bool:
        """Append what is left of the batch; False if that is to be tried again at `batch.retry_s`.

        On True all of it is settled: in the log, or refused for good.
        """
        while batch.settled_count < len(batch):
            if self._transactions is not None and self._transactions.error is not None:
                batch.settle(len(batch) - batch.settled_count, self._transactions.error)
                break
            if not self._try_rest(lane, batch, len(batch) - batch.settled_count, now_s):
                return False
        return True

    def _try_rest(self, lane: Lane, batch: ProducerBatch, count: int, now_s: float) -> bool:
        """Append `count` records; those of a batch that is too large in halves."""
        try:
            batch.settle(count, self._append(lane, batch, batch.settled_count, count))
        except RecordTooLargeError as error:
            if count > 1:
                half = count // 2
                return self._try_rest(lane, batch, half, now_s) and self._try_rest(lane, batch, count - half, now_s)
            self._refused(batch, count, error)
        except LogstoreError as error:
            return self._failed(lane, batch, count, error, now_s)
        except Exception as error:
            failure = ProducerFailedError("Unexpected error while records were written", found=repr(error))
            failure.__cause__ = error
            self._refused(batch, count, failure)
        return True

    def _failed(self, lane: Lane, batch: ProducerBatch, count: int, error: LogstoreError, now_s: float) -> bool:
        """An append was refused; False if it is to be tried again (`Sender.completeBatch`, `canRetry`)."""
        if isinstance(error, KafkaStorageError):
            try:
                if lane.has_moved(self._store):
                    return self._try_rest(lane, batch, count, now_s)
            except UnknownTopicOrPartitionError as gone:
                error = gone
        is_plain = self._idempotence.is_enabled and self._transactions is None
        is_gap = isinstance(error, OutOfOrderSequenceError) and is_plain
        if not (isinstance(error, RETRIABLE) or is_gap):
            self._refused(batch, count, error)
            return True
        batch.attempt_count += 1
        if batch.attempt_count > self._retries:
            self._refused(batch, count, error)
            return True
        if now_s >= batch.expiry_s:
            expired = RequestTimedOutError(
                f"Expiring {count} record(s) for {batch.topic_partition}: delivery.timeout.ms has passed since batch "
                "creation"
            )
            expired.__cause__ = error
            self._refused(batch, count, expired)
            return True
        if is_gap:
            self._idempotence.bump()
        batch.retry_s = now_s + self._backoff.wait_s(batch.attempt_count)
        batch.retried_error = error
        return False

    def _refused(self, batch: ProducerBatch, count: int, error: LogstoreError) -> None:
        batch.settle(count, error)
        if self._transactions is not None:
            self._transactions.batch_failed(error)
        elif isinstance(error, KafkaStorageError) and self.untold_error is None:
            self._lost = batch, error

    def _append(self, lane: Lane, batch: ProducerBatch, start: int, count: int) -> AppendInfo:
        sequence = self._idempotence.sequence(lane)
        identity = self._idempotence.identity
        transactions = self._transactions
        guard = None if transactions is None else transactions.join(lane, sequence)
        values, keys, timestamps = batch.values, batch.keys, batch.timestamps
        if count < len(timestamps):
            end = start + count
            values, timestamps = values[start:end], timestamps[start:end]
            keys = None if keys is None else keys[start:end]
        if self._codec is Codec.NONE and batch.headers is None:
            info = lane.log.append_records(
                values,
                keys,
                timestamps,
                producer_id=identity.producer_id,
                producer_epoch=identity.producer_epoch,
                base_sequence=sequence,
                is_transactional=transactions is not None,
                leader_epoch=lane.leader_epoch,
                guard=guard,
            )
        else:
            headers = [()] * count if batch.headers is None else batch.headers[start : start + count]
            data = build_batch_from_records(
                list(zip(keys or [None] * count, values, timestamps, headers, strict=True)),
                codec=self._codec,
                level=self._level,
                producer_id=identity.producer_id,
                producer_epoch=identity.producer_epoch,
                base_sequence=sequence,
                is_transactional=transactions is not None,
            )
            info = lane.log.append_as_leader(data, leader_epoch=lane.leader_epoch, guard=guard)
        self._idempotence.appended(lane, count)
        if transactions is not None:
            lane.transaction = transactions.number
        return info
