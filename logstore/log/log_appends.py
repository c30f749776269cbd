"""The ways to append to a running log: as its leader or as a replica, batches or records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

from ..columns.batch_table import ByteArray
from ..columns.record_columns import RecordColumns
from ..columns.small_batch import build_marker
from ..folds.producer_update import UNKNOWN_TRANSACTION_VERSION, AppendOrigin
from ..folds.verification import VerificationGuard
from ..layout.batch import NO_PRODUCER_ID, NO_SEQUENCE
from ..model import Codec, ControlRecordType
from .append import append
from .append_columns import append_columns
from .append_info import AppendInfo
from .append_records import append_records
from .log_state import LogState
from .quick_transactions import QuickTransactions

COLUMNS_BATCH_SIZE = 1 << 20  # bytes


class LogAppends(LogState):
    """The log as those know it who append to it."""

    @cached_property
    def quick(self) -> QuickTransactions:
        """The quick way for records and markers; made for the first append."""
        return QuickTransactions(self)

    def append_as_leader(
        self,
        data: ByteArray,
        *,
        leader_epoch: int = 0,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: VerificationGuard | None = None,
        transaction_version: int = UNKNOWN_TRANSACTION_VERSION,
    ) -> AppendInfo:
        """Append one batch, which gets its offsets here; with RAFT_LEADER batches that have them.

        Args:
            data: uint8, 1-D, contiguous; it is not changed.
            guard: of `begin_verification`, for the first batch of a transaction.
            transaction_version: of a marker, 0 to 2.

        Raises:
            KafkaStorageError: the log cannot be written.
            RecordBatchTooLargeError: the batch is larger than a segment may be.
            LogstoreError: what the batch is refused for: see `analyze`, `validate`, `ProducerUpdate.step`.
        """
        return append(
            self,
            data,
            leader_epoch=leader_epoch,
            origin=origin,
            guard=guard,
            transaction_version=transaction_version,
        )

    def append_records(
        self,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None = None,
        timestamps: Sequence[int] | None = None,
        *,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = -1,
        base_sequence: int = NO_SEQUENCE,
        is_transactional: bool = False,
        leader_epoch: int = 0,
        guard: VerificationGuard | None = None,
    ) -> AppendInfo:
        """Append records without headers as one batch, compressed as the topic is.

        Args:
            keys: one for each value; None: all are null.
            timestamps: ms; None: the time of the append.
            producer_id, producer_epoch, base_sequence: of an idempotent producer.
            guard: of `begin_verification`, for the first batch of a transaction.

        Raises:
            UsageError: columns of different lengths, what is no bytes, a transaction without producer.
            LogstoreError: as `append_as_leader`.
        """
        with self.lock:
            if guard is None:
                info = self.quick.append(
                    values, keys, timestamps,
                    producer_id, producer_epoch, base_sequence, is_transactional, leader_epoch,
                )  # fmt: skip
                if info is not None:
                    return info
            elif is_transactional:
                producer = (producer_id, producer_epoch, base_sequence)
                info = self.quick.append_verified(values, keys, timestamps, *producer, leader_epoch, guard)
                if info is not None:
                    return info
            return append_records(
                self,
                values,
                keys,
                timestamps,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                base_sequence=base_sequence,
                is_transactional=is_transactional,
                leader_epoch=leader_epoch,
                guard=guard,
            )

    def append_columns(
        self,
        columns: RecordColumns,
        *,
        codec: Codec = Codec.NONE,
        level: int | None = None,
        batch_size: int = COLUMNS_BATCH_SIZE,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = -1,
        base_sequence: int = NO_SEQUENCE,
        is_transactional: bool = False,
        leader_epoch: int = 0,
        guard: VerificationGuard | None = None,
    ) -> AppendInfo:
        """Append records as batches of up to `batch_size` bytes before compression, one after the other.

        Args:
            columns: without timestamps they get the time of the append.
            codec: of the producer; a topic with a `compression.type` of its own keeps that.
            level: of that codec; None: the topic's.
            base_sequence: of the first record; the batches go on from it.
            guard: of `begin_verification`, for the first batch of a transaction.

        Returns:
            The first offset of the first batch and the last of the last, also if some, or all, were there already.

        Raises:
            InvalidRecordError, InvalidTimestampError, RecordTooLargeError, UsageError: nothing is written.
            LogstoreError: as `append_as_leader`; the batches before the one refused are appended.
        """
        return append_columns(
            self,
            columns,
            codec=codec,
            level=level,
            batch_size=batch_size,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            is_transactional=is_transactional,
            leader_epoch=leader_epoch,
            guard=guard,
        )

    def append_batches(self, batches: Iterable[ByteArray], *, leader_epoch: int = 0) -> list[AppendInfo]:
        """Append batches one after the other, with nothing between them.

        Raises:
            LogstoreError: as `append_as_leader`; the batches before the one refused are appended.
        """
        with self.lock:
            return [self.append_as_leader(batch, leader_epoch=leader_epoch) for batch in batches]

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
        with self.lock:
            end = (producer_id, producer_epoch, is_commit, coordinator_epoch, transaction_version)
            info = self.quick.append_marker(*end, leader_epoch)
            if info is not None:
                return info
        marker = build_marker(
            ControlRecordType.COMMIT if is_commit else ControlRecordType.ABORT,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            coordinator_epoch=coordinator_epoch,
            timestamp_ms=self.now_ms(),
        )
        return self.append_as_leader(
            marker,
            leader_epoch=leader_epoch,
            origin=AppendOrigin.COORDINATOR,
            transaction_version=transaction_version,
        )

    def append_as_follower(self, data: ByteArray, leader_epoch: int) -> AppendInfo:
        """Append batches as their leader has them; those of a leader later than `leader_epoch` are left out.

        Raises:
            KafkaStorageError: the log cannot be written.
            UnexpectedAppendOffsetError, OffsetsOutOfOrderError: offsets that are there already, or that go back.
            LogstoreError: damage.
        """
        return append(
            self,
            data,
            leader_epoch=leader_epoch,
            origin=AppendOrigin.REPLICATION,
            guard=None,
            transaction_version=UNKNOWN_TRANSACTION_VERSION,
        )
