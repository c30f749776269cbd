"""From a decided transaction to a completed one: the markers are written, then the completion is logged.

Kafka's `TransactionMarkerChannelManager` sends markers to the leaders of the partitions, again until they are there.
Here whoever decided writes them at once, and what could not be written is tried again now and then.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from ..coordinator.transaction import Partition
from ..coordinator.transaction_markers import Completion, Marker, MarkerOutcome, marker_outcome
from ..coordinator.transaction_states import supports_epoch_bump
from ..coordinator.transaction_table import TransactionTable
from ..errors import LogstoreError
from ..log.append_info import AppendInfo
from ..topics.consumer_offsets import TOPIC as OFFSETS_TOPIC
from .coordinated_store import CoordinatedStore
from .coordinator_topic import CoordinatorTopic, log_or_none

#: writes a marker to a partition of `__consumer_offsets`, and settles the offsets that wait for it
WriteOffsetsMarker = Callable[[int, Marker], AppendInfo]


class StatePartition:
    """One partition of `__transaction_state`: its transactional ids, and what they wait for.

    Attributes:
        table: to be used under `lock`, which is not held while something is written. Between two steps a transactional
            id is kept by its pending state: everybody else is told to come again.
        unfinished: from transactional id to a completion that could not be carried out, and why.
    """

    def __init__(self, number: int, table: TransactionTable) -> None:
        self.number = number
        self.table = table
        self.lock = threading.Lock()
        self.unfinished: dict[str, tuple[Completion, BaseException]] = {}


class MarkerWriter:
    """Carries out completions."""

    def __init__(
        self, store: CoordinatedStore, topic: CoordinatorTopic, write_offsets_marker: WriteOffsetsMarker
    ) -> None:
        self._store = store
        self._topic = topic
        self._write_offsets_marker = write_offsets_marker

    def complete(self, state: StatePartition, completion: Completion) -> None:
        """Write the markers that are missing, then log the completion.

        What fails is kept in `state.unfinished`: the transaction is decided, whatever happens now, an interruption too.
        A marker that another coordinator has overtaken ends the attempt for good, until the partition is loaded again.
        """
        try:
            failure = self._write_all(state, completion)
            if failure is None:
                failure = self._log(state, completion)
            if failure is None:
                with state.lock:
                    state.table.completed(completion)
        except BaseException as error:
            _keep(state, completion, error)
            raise
        if failure is not None:
            _keep(state, completion, failure)

    def retry(self, state: StatePartition) -> None:
        """Try again what is unfinished; what comes after an interruption stays for the next time."""
        with state.lock:
            names = [name for name, (_, error) in state.unfinished.items() if _outcome(error) is not MarkerOutcome.STOP]
        for name in names:
            with state.lock:
                completion, _ = state.unfinished.pop(name, (None, None))
            if completion is not None:
                self.complete(state, completion)

    def write(self, partition: Partition, marker: Marker) -> AppendInfo | None:
        """Write a marker to one partition; None if that is not there any more.

        Raises:
            LogstoreError: as `PartitionLog.append_end_transaction`.
        """
        topic, number = partition
        log = log_or_none(self._store, topic, number)
        if log is None:
            return None
        try:
            if topic == OFFSETS_TOPIC:
                return self._write_offsets_marker(number, marker)
            return log.append_end_transaction(
                marker.producer_id,
                marker.producer_epoch,
                is_commit=marker.is_commit,
                coordinator_epoch=marker.coordinator_epoch,
                transaction_version=marker.transaction_version,
                leader_epoch=self._store.leader_epoch(topic, number),
            )
        except LogstoreError:
            if log_or_none(self._store, topic, number) is log:
                raise
            return None

    def sync(self, partitions: Iterable[Partition]) -> None:
        """Wait until the partitions are on the disk, if writes are to be durable."""
        if self._topic.is_durable:
            for topic, number in partitions:
                log = log_or_none(self._store, topic, number)
                if log is not None:
                    log.flush()

    def _write_all(self, state: StatePartition, completion: Completion) -> LogstoreError | None:
        """Write the markers that are missing; the error of the last one that could not be written."""
        with state.lock:
            current = state.table.get(completion.transition.next.transactional_id)
        assert current is not None
        failure = None
        for partition in sorted(current.partitions):
            error: LogstoreError | None = None
            try:
                self.write(partition, completion.marker)
                self.sync([partition])
            except LogstoreError as caught:
                error = caught
            outcome = _outcome(error)
            if outcome is MarkerOutcome.DONE:
                with state.lock:
                    state.table.marker_written(completion, partition)
                continue
            failure = error
            if outcome is MarkerOutcome.STOP:
                break
        return failure

    def _log(self, state: StatePartition, completion: Completion) -> LogstoreError | None:
        """Log the completion; the error if that could not be.

        It need not be durable: without it the same markers are written again. Only where a later transaction may have
        the same epoch, these would decide that one as well.
        """
        with state.lock:
            record = state.table.record(completion)
        try:
            needs_sync = not supports_epoch_bump(completion.transition.next.client_transaction_version)
            self._topic.append(state.number, [record], needs_sync=needs_sync)
        except LogstoreError as error:
            return error
        return None


def _keep(state: StatePartition, completion: Completion, error: BaseException) -> None:
    """Keep a completion for `retry`, unless it was carried out before the error came."""
    following = completion.transition.next
    with state.lock:
        current = state.table.get(following.transactional_id)
        if current is not None and current.pending_state is following.state:
            state.unfinished[following.transactional_id] = completion, error


def _outcome(error: BaseException | None) -> MarkerOutcome:
    """`marker_outcome`; an interruption is tried again.

    So is what Kafka takes for a bug: it may come of a topic's configuration, which can be changed.
    """
    if error is not None and not isinstance(error, LogstoreError):
        return MarkerOutcome.RETRY
    try:
        return marker_outcome(error)
    except LogstoreError:
        return MarkerOutcome.RETRY
