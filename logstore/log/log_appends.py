"""The ways to append to a running log: each makes a request of its arguments, and gives it to the appender."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from operator import index
from typing import TYPE_CHECKING, Unpack, cast

import numpy as np

from ..columns.batch_fields import SentFieldArguments
from ..columns.batch_table import ByteArray
from ..columns.record_columns import RecordColumns
from ..folds.producer_update import UNKNOWN_TRANSACTION_VERSION, AppendOrigin
from ..folds.verification import VerificationGuard
from ..layout.batch import NO_PRODUCER_ID, NO_SEQUENCE
from ..layout.record import EncodedHeaders, Headers, encode_headers
from .append.appender import Appender
from .append.columns import COLUMNS_BATCH_SIZE, append_each, column_requests
from .append.records import CLIENTS, new_records_request
from .append.request import AppendInfo, AppendRequest, BatchRequest, MarkerRequest
from .failure import Failure

if TYPE_CHECKING:
    from .partition_log import PartitionLog


class LogAppends:
    """The verbs of `PartitionLog` that append; the parts that they use are its."""

    lock: AbstractContextManager[bool]
    failure: Failure

    @cached_property
    def appender(self) -> Appender:
        """The door of all appends; made for the first."""
        return Appender(cast("PartitionLog", self))

    def watch(self, watcher: Callable[[], object]) -> bool:
        """Call `watcher` once, after the next append; return False if that is so already.

        It must not wait. An append that is interrupted may drop it without a call.
        """
        with self.lock:
            if watcher in self.appender.watchers:
                return False
            self.appender.watchers += (watcher,)
            return True

    def append(self, request: AppendRequest) -> AppendInfo:
        """Append what the request says; raises as `append_as_leader`."""
        with self.lock:
            return self.appender.append(request)

    def append_as_leader(
        self,
        data: ByteArray,
        *,
        leader_epoch: int = 0,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: VerificationGuard | None = None,
        transaction_version: int = UNKNOWN_TRANSACTION_VERSION,
    ) -> AppendInfo:
        """Append one batch, which gets its offsets here; with RAFT_LEADER and REPLICATION batches that have them.

        Nothing replicates here. REPLICATION is for the proofs against Kafka (`tests/kafka/workloads.py`): batches with
        gaps between them, as followers and old logs have them.

        Args:
            data: uint8, 1-D, contiguous; it is not changed.
            guard: of `begin_verification`, for the first batch of a transaction.
            transaction_version: of a marker, 0 to 2.

        Raises:
            KafkaStorageError: the log cannot be written.
            RecordBatchTooLargeError: the batch is larger than a segment may be.
            LogstoreError: what the batch is refused for: see `analyze`, `validate`, `ProducerUpdate.step`.
        """
        batch = np.frombuffer(data, np.uint8)
        return self.append(BatchRequest(batch, index(leader_epoch), origin, guard, index(transaction_version)))

    def append_records(
        self,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None = None,
        timestamps: Sequence[int] | None = None,
        headers: Sequence[Headers] | EncodedHeaders | None = None,
        *,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = -1,
        base_sequence: int = NO_SEQUENCE,
        is_transactional: bool = False,
        leader_epoch: int = 0,
        guard: VerificationGuard | None = None,
    ) -> AppendInfo:
        """Append records as one batch, compressed as the topic is.

        Args:
            keys: one for each value; None: all are null.
            timestamps: ms; None: the time of the append.
            headers: (key, value) pairs of each record; None: there are none.
            producer_id, producer_epoch, base_sequence: of an idempotent producer.
            guard: of `begin_verification`, for the first batch of a transaction.

        Raises:
            UsageError: columns of different lengths, what is no bytes, a transaction without producer.
            LogstoreError: as `append_as_leader`.
        """
        if not type(producer_id) is type(producer_epoch) is type(base_sequence) is type(leader_epoch) is int:
            producer_id, producer_epoch = index(producer_id), index(producer_epoch)
            base_sequence, leader_epoch = index(base_sequence), index(leader_epoch)
        if headers is not None and not isinstance(headers, EncodedHeaders):
            headers = EncodedHeaders(map(encode_headers, headers))
        producer = producer_id, producer_epoch, base_sequence, bool(is_transactional)
        request = new_records_request((values, keys, timestamps, headers, *producer, leader_epoch, guard, *CLIENTS))
        with self.lock:
            return self.appender.append(request)

    def append_columns(
        self,
        columns: RecordColumns,
        *,
        batch_size: int = COLUMNS_BATCH_SIZE,
        leader_epoch: int = 0,
        guard: VerificationGuard | None = None,
        **sent: Unpack[SentFieldArguments],
    ) -> AppendInfo:
        """Append records as batches of up to `batch_size` bytes before compression, one after the other.

        Args:
            columns: without timestamps they get the time of the append.
            guard: of `begin_verification`, for the first batch of a transaction.
            sent: attributes of `BatchFields`. The codec is the producer's; a topic with a `compression.type` of its own
                keeps that. The level is of that codec; None: the topic's. The batches go on from the base sequence.

        Returns:
            The first offset of the first batch and the last of the last, also if some, or all, were there already.

        Raises:
            InvalidRecordError, InvalidTimestampError, RecordTooLargeError, UsageError: nothing is written.
            LogstoreError: as `append_as_leader`; the batches before the one refused are appended.
        """
        log = cast("PartitionLog", self)
        with self.lock:
            self.failure.require_writable()
            return append_each(log, column_requests(log, columns, batch_size, leader_epoch, guard, sent))

    def append_end_transaction(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        is_commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
        leader_epoch: int = 0,
    ) -> AppendInfo:
        """Append the marker that ends a producer's transaction, as its coordinator does.

        Raises:
            KafkaStorageError: the log cannot be written.
            InvalidProducerEpochError, TransactionCoordinatorFencedError: a newer producer or coordinator is known.
            UsageError: a transaction version other than 0 to 2; an epoch that has no room in a marker.
        """
        return self.append(
            MarkerRequest(
                index(producer_id),
                index(producer_epoch),
                bool(is_commit),
                index(coordinator_epoch),
                index(transaction_version),
                index(leader_epoch),
            )
        )
