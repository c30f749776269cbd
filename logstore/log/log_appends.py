"""Append methods of `PartitionLog`: each builds a request and appends it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Concatenate, ParamSpec, TypeVar, Unpack
from weakref import ref

import numpy as np

from ..cached_property import cached_property
from ..calls import alone_in_log
from ..columns.batch_fields import SentFieldArguments
from ..columns.batch_table import ByteArray
from ..columns.record_columns import RecordColumns
from ..errors import LogstoreError, UsageError
from ..folds.producer_update import UNKNOWN_TRANSACTION_VERSION, AppendOrigin
from ..folds.verification import VerificationGuard
from ..layout.batch import NO_PRODUCER_ID, NO_SEQUENCE
from ..layout.record import EncodedHeaders, Headers, bytes_column, encode_headers
from ..model import Codec, whole_number
from .append.columns import COLUMNS_BATCH_SIZE, answer_to_all, column_requests
from .append.fast import FastPath
from .append.records import new_records_request
from .append.request import AppendInfo, AppendRequest, BatchRequest, MarkerRequest
from .append.slow import append_slowly
from .state import LogState

P = ParamSpec("P")
T = TypeVar("T")
_NO_VERSION = UNKNOWN_TRANSACTION_VERSION
_ID, _EPOCH = "producer id", "producer epoch"


class LogAppends:
    """The part of `PartitionLog` that appends.

    Attributes:
        state: what the log is.
        lock: held by every change, and by a reader only while it makes a view.
        leader_epoch: of appends that name none; 0 unless a metadata log sets another.
        watchers: called once after the next append, under the lock; they must not block. The log does not keep them
            alive: on an idle log the watchers of dropped consumers would pile up.
    """

    def __init__(self, state: LogState, reopen: Callable[[LogState], LogState]) -> None:
        """Take over a loaded log; `reopen` loads one again whose state was put aside."""
        self.state = state
        self.lock, self.leader_epoch = state.lock, 0
        self.watchers: tuple[ref[Callable[[], object]], ...] = ()
        self._reopen = reopen

    @cached_property
    def fast(self) -> FastPath:
        """The path of common appends; its memory is taken on first use."""
        return FastPath(self.state)

    def _use(self, use: Callable[Concatenate[LogState, P], T], *arguments: P.args, **named: P.kwargs) -> T:
        """Return what a function of the state returns, under the lock."""
        with alone_in_log():
            while True:
                with self.lock:
                    state = self.state
                    if not state.failure.is_put_aside:
                        return use(state, *arguments, **named)
                self._open_again(state)

    def _open_again(self, old: LogState) -> None:
        """Replace a state that was put aside by what the files hold; the caller does not hold the lock.

        Raises KafkaStorageError, and poisons the log, if they cannot be loaded.
        """
        old.failure.is_cut_off = True  # also if only the kernel was: a pass of the cleaner aborts
        with old.cleaning_lock, self.lock:
            if self.state is not old:
                return
            try:
                state = self._reopen(old)
            except LogstoreError as error:
                raise old.failure.poison("Error while opening again the log of", error) from error
            state.follow(old)
            # only now: the system tells an error of write-back to nobody once all descriptors of a file were closed
            old.release()
            vars(self).pop("fast", None)
            self.state = state  # last: an interrupt before this line leaves the old one, which is opened again

    def watch(self, watcher: Callable[[], object]) -> bool:
        """Call `watcher` once, after the next append; return False if it is registered already.

        The watcher runs under the log's lock and must not block; the caller keeps it alive. An interrupted append may
        drop it without a call.
        """
        with alone_in_log(), self.lock:
            alive = tuple(known for known in self.watchers if known() is not None)
            is_new = ref(watcher) not in alive
            self.watchers = (*alive, ref(watcher)) if is_new else alive
            return is_new

    def unwatch(self, watcher: Callable[[], object]) -> None:
        """Forget a watcher that nobody waits for any more."""
        with alone_in_log(), self.lock:
            self.watchers = tuple(known for known in self.watchers if known() is not watcher)

    def append(self, request: AppendRequest) -> AppendInfo:
        """Append a request; raises as `append_as_leader`.

        An interrupt loses the answer, never what was acknowledged.
        """
        with alone_in_log():
            while True:
                with self.lock:
                    state = self.state
                    info = self._append(state, request)
                if info is not None:
                    return info
                self._open_again(state)

    def _append(self, state: LogState, request: AppendRequest) -> AppendInfo | None:
        """Append by the fast path if it takes the request, else by the slow path; None if the state was put aside."""
        info = self.fast.try_append(request)
        if info is None and not state.failure.is_put_aside:
            info = append_slowly(state, request)
        if self.watchers:
            # dropped before they are called: a watcher may register itself again
            watchers, self.watchers = self.watchers, ()
            for known in watchers:
                if (watcher := known()) is not None:
                    watcher()
        return info

    def append_as_leader(
        self,
        data: ByteArray,
        *,
        leader_epoch: int | None = None,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        guard: VerificationGuard | None = None,
        transaction_version: int = UNKNOWN_TRANSACTION_VERSION,
    ) -> AppendInfo:
        """Append one batch and assign its offsets; batches of RAFT_LEADER and REPLICATION keep theirs.

        Nothing is replicated here. REPLICATION serves the proofs against Kafka (`tests/kafka/workloads.py`): batches
        with gaps between their offsets, as followers and old logs have them.

        Args:
            data: uint8, 1-D, contiguous; not changed.
            leader_epoch: of the batch; None: the log's.
            guard: of `begin_verification`, for the first batch of a transaction.
            transaction_version: of a marker, 0 to 2.

        Raises:
            KafkaStorageError: the log cannot be written.
            RecordBatchTooLargeError: the batch is larger than a segment may be.
            LogstoreError: the batch is refused; see `analyze`, `validate`, `ProducerUpdate.step`.
        """
        try:
            batch = np.frombuffer(data, np.uint8)
        except (TypeError, ValueError, BufferError) as error:
            raise UsageError("A batch is one piece of bytes, without gaps", found=repr(error)) from error
        epoch, version = self._epoch(leader_epoch), whole_number("version", transaction_version)
        return self.append(BatchRequest(batch, epoch, origin, guard, version))

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
        codec: Codec | str = Codec.NONE,
        level: int | None = None,
        leader_epoch: int | None = None,
        guard: VerificationGuard | None = None,
        origin: AppendOrigin = AppendOrigin.CLIENT,
    ) -> AppendInfo:
        """Append records as one batch, compressed as the topic is configured, or else as the producer is.

        Args:
            keys: one for each value; None makes all null.
            timestamps: ms since 1970 as ints, or numpy's datetime64; None takes the time of the append.
            headers: (key, value) pairs of each record; None for no headers.
            producer_id, producer_epoch, base_sequence: of an idempotent producer.
            leader_epoch: of the batch; None: the log's.
            codec, level: the producer's, as for `append_columns`; Kafka's name of a codec, such as "zstd", will do.
            guard: of `begin_verification`, for the first batch of a transaction.
            origin: COORDINATOR for records whose sequences are not checked.

        Raises:
            UsageError: columns of different lengths, items of other types, a transaction without a producer.
            LogstoreError: as `append_as_leader`.
        """
        leader_epoch = self.leader_epoch if leader_epoch is None else leader_epoch
        if not type(producer_id) is type(producer_epoch) is type(base_sequence) is type(leader_epoch) is int:
            producer_id, producer_epoch = whole_number(_ID, producer_id), whole_number(_EPOCH, producer_epoch)
            base_sequence = whole_number("base sequence", base_sequence)
            leader_epoch = whole_number("leader epoch", leader_epoch)
        codec = codec if type(codec) is Codec else Codec.of(codec)
        try:
            if headers is not None and not isinstance(headers, EncodedHeaders):
                headers = EncodedHeaders(map(encode_headers, headers))
            values, keys = bytes_column(values), None if keys is None else bytes_column(keys)
        except TypeError as error:
            raise UsageError("Keys and values are lists of bytes, headers of pairs", found=repr(error)) from error
        producer = producer_id, producer_epoch, base_sequence, bool(is_transactional)
        batch = values, keys, timestamps, headers, *producer, leader_epoch, guard, codec, level, origin, _NO_VERSION
        return self.append(new_records_request(batch))

    def append_columns(
        self,
        columns: RecordColumns,
        *,
        batch_size: int = COLUMNS_BATCH_SIZE,
        leader_epoch: int | None = None,
        guard: VerificationGuard | None = None,
        **sent: Unpack[SentFieldArguments],
    ) -> AppendInfo:
        """Append records as consecutive batches of up to `batch_size` bytes before compression.

        Args:
            columns: without timestamps they get the time of the append.
            guard: of `begin_verification`, for the first batch of a transaction.
            sent: attributes of `BatchFields`. `codec` is the producer's; a topic with a `compression.type` of its own
                keeps that. `level` belongs to `codec`; None takes the topic's. Sequences go on from the base sequence.

        Returns:
            The first offset of the first batch and the last of the last, even if some or all were duplicates.

        Raises:
            InvalidRecordError, InvalidTimestampError, RecordTooLargeError, UsageError: nothing is written.
            LogstoreError: as `append_as_leader`; the batches before the refused one stay appended.
        """

        if not isinstance(columns, RecordColumns):
            raise UsageError("Records are given as columns", expected="RecordColumns", found=type(columns).__name__)
        sent["codec"] = Codec.of(sent.get("codec", Codec.NONE))

        def append(state: LogState) -> AppendInfo:
            state.failure.require_writable()
            requests = column_requests(state, columns, batch_size, self._epoch(leader_epoch), guard, sent)
            infos = [self._append(state, request) for request in requests]
            return answer_to_all([info for info in infos if info is not None], state.log_start_offset)

        return self._use(append)

    def append_end_transaction(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        is_commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
        leader_epoch: int | None = None,
    ) -> AppendInfo:
        """Append the marker that ends a producer's transaction, as the coordinator does.

        Raises:
            KafkaStorageError: the log cannot be written.
            InvalidProducerEpochError, TransactionCoordinatorFencedError: a newer producer or coordinator is known.
            UsageError: a transaction version other than 0 to 2, or an epoch that a marker cannot hold.
        """
        return self.append(
            MarkerRequest(
                whole_number(_ID, producer_id),
                whole_number(_EPOCH, producer_epoch),
                bool(is_commit),
                whole_number("coordinator epoch", coordinator_epoch),
                whole_number("version", transaction_version),
                self._epoch(leader_epoch),
            )
        )

    def _epoch(self, given: int | None) -> int:
        return self.leader_epoch if given is None else whole_number("leader epoch", given)
