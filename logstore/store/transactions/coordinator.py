"""Transaction coordinator of a store: the rules of `logstore/coordinator` bound to logs (`TransactionCoordinator`).

    transactions = TransactionCoordinator(store, groups)
    transactions.start(was_clean=True)
    identity = transactions.init_producer_id("billing", 60_000)
    guard = transactions.begin_append("billing", identity, TopicPartition("orders", 0), sequence=0)
    store.log("orders", 0).append_records(…, is_transactional=True, guard=guard)
    transactions.commit_offsets("billing", identity, ConsumerGroupMetadata("group"), {partition: OffsetAndMetadata(17)})
    identity = transactions.end_transaction("billing", identity, is_commit=True)

A request is logged before it is answered. A decision (PrepareCommit, PrepareAbort) is followed at once by the markers
in all partitions, and these by the completion, so the transaction is over when the answer comes. Any thread may make
requests; two for one transactional id wait for each other.

As the steps are logged in this order, nothing is lost when the process ends, and `start` continues where it ended.
After a power failure that holds with `logstore.durable.commits`: then the data of all partitions is durable before the
decision to commit, and the markers before the completion.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress

from ...calls import TRANSACTIONS, alone
from ...config.kafka_version import TRANSACTION_VERSION
from ...config.topic import KAFKA_VERSION
from ...coordinator.groups.membership import ConsumerGroupMetadata
from ...coordinator.groups.offsets import OffsetAndMetadata
from ...coordinator.transactions.ending import EndTransaction
from ...coordinator.transactions.outcomes import NO_IDENTITY, ProducerIdentity, TransactionRules
from ...coordinator.transactions.requests import AddPartitions, InitProducerId, verify_partition
from ...coordinator.transactions.transaction import Transaction
from ...coordinator.transactions.transitions import supports_epoch_bump
from ...errors import (
    InvalidProducerEpochError,
    InvalidRequestError,
    LogstoreError,
    ProducerFencedError,
    TransactionalIdNotFoundError,
)
from ...folds.verification import VerificationGuard
from ...layout.batch import NO_SEQUENCE
from ...model import OfOneProcess, TopicPartition, name_of
from ...topics.consumer_offsets import TOPIC as OFFSETS_TOPIC
from ...topics.transaction_state import TOPIC
from ..groups.coordinator import GroupCoordinator
from ..host import Host
from ..internal_topic import CoordinatorTopic, for_each_then_raise
from .markers import MarkerWriter
from .partition import TransactionStatePartition
from .recovery import Orphans, reconcile


class TransactionCoordinator(OfOneProcess):
    """All transactional ids of a store; see the module.

    Attributes:
        has_epoch_bump: `transaction.version` is 2: every transaction ends with a new epoch (KIP-890).
    """

    def __init__(self, host: Host, groups: GroupCoordinator) -> None:
        """Keep the store; `start` reads the topic."""
        config = host.config
        self._host = host
        self._groups = groups
        self._topic = CoordinatorTopic(host, TOPIC)
        self._markers = MarkerWriter(host, self._topic, groups.write_marker)
        self._orphans = Orphans(host, self._markers)
        self._rules = TransactionRules(
            transaction_version=host.feature(TRANSACTION_VERSION),
            timeout_max_ms=config["transaction.max.timeout.ms"],
            transactional_id_expiration_ms=config["transactional.id.expiration.ms"],
        )
        self.has_epoch_bump = supports_epoch_bump(self._rules.transaction_version)
        self._client_version = 2 if self.has_epoch_bump else 0  # of this process's clients
        self._states: list[TransactionStatePartition] = []
        self._making = threading.Lock()

    def start(self, *, was_clean: bool) -> None:
        """Load all partitions, finish decided transactions, abort those that timed out, and start the timers.

        Unless the directory `was_clean`, reconcile first, see `recovery`. Raises LogstoreError for an unreadable
        partition.
        """
        self._states = self._loaded()
        for state in self._states:
            state.finish_decided()
        if not was_clean:
            reconcile(self._host, self._states, self._orphans)
        with suppress(LogstoreError):  # the schedule tries again, and reports it
            self.abort_timed_out()
        config, schedule = self._host.config, self._host.schedule
        abort_interval_ms = config["transaction.abort.timed.out.transaction.cleanup.interval.ms"]
        schedule("transaction-abort", abort_interval_ms, self.abort_timed_out)
        if self.has_orphans:
            schedule("transaction-orphans", abort_interval_ms, self.end_orphans)
        schedule(
            "transactionalId-expiration",
            config["transaction.remove.expired.transaction.cleanup.interval.ms"],
            self.remove_expired,
        )

    def init_producer_id(
        self, transactional_id: str | None, timeout_ms: int, expected: ProducerIdentity = NO_IDENTITY
    ) -> ProducerIdentity:
        """Return the identity of a new producer, and fence the one that had the transactional id before.

        Its open transaction is aborted first, where Kafka answers to try again. A producer that is only idempotent has
        no transactional id; one that renews its epoch gives its present identity as `expected`.

        Raises:
            InvalidRequestError, InvalidTxnTimeoutError, ProducerFencedError, ConcurrentTransactionsError: as Kafka's.
            KafkaStorageError: the partition of `__transaction_state` cannot be written.
        """
        if transactional_id is None:
            return ProducerIdentity(self._host.next_producer_id(), 0)
        state = self._state_of(transactional_id)
        renewed = None if expected == NO_IDENTITY else expected
        answer = state.apply(InitProducerId(transactional_id, timeout_ms, renewed))
        state.timed_out.pop(transactional_id, None)  # from now on a newer producer fences the old one
        return answer.identity or expected

    def add_partitions(
        self, transactional_id: str, identity: ProducerIdentity, partitions: Collection[TopicPartition]
    ) -> None:
        """Add partitions to the producer's transaction, or begin it; with version 2 `begin_append` does this.

        Raises:
            UnknownTopicOrPartitionError: one of them does not exist; none is added.
            InvalidPidMappingError, ProducerFencedError, ConcurrentTransactionsError: as Kafka's.
            KafkaStorageError: the partition of `__transaction_state` cannot be written.
        """
        for topic, number in partitions:
            self._host.log(topic, number)
        request = AddPartitions(transactional_id, identity, partitions, self._client_version)
        self._state_of(transactional_id).apply(request)

    def add_offsets(self, transactional_id: str, identity: ProducerIdentity, group_id: str) -> None:
        """Add the group's partition of `__consumer_offsets` to the transaction; as `add_partitions`."""
        partition = TopicPartition(OFFSETS_TOPIC, self._groups.partition_of(group_id))
        self.add_partitions(transactional_id, identity, [partition])

    def begin_append(
        self, transactional_id: str, identity: ProducerIdentity, partition: TopicPartition, *, sequence: int
    ) -> VerificationGuard | None:
        """Return the guard to append a transactional batch of this base sequence with (KIP-890).

        None if the producer has data of this transaction there already. With transaction version 2 the partition is
        added to the transaction here; before, it must have been added by `add_partitions`.

        Raises:
            UnknownTopicOrPartitionError: there is no such partition.
            InvalidProducerEpochError: a newer producer has the transactional id.
            TransactionAbortableError: the partition was not added (version 0).
            LogstoreError: as `add_partitions`; or an orphan in the partition still cannot be ended.
        """
        log = self._host.log(*partition)
        if partition in self._orphans.refused:
            self._orphans.end_refused(partition)
        if log.has_ongoing_transaction(*identity):
            return None
        # first, so that a refused producer leaves nothing in the log
        self._admit(transactional_id, identity, partition)
        guard = log.begin_verification(
            identity.producer_id,
            sequence=sequence,
            producer_epoch=identity.producer_epoch,
            supports_epoch_bump=self.has_epoch_bump,
        )
        if guard is not None and not self.has_epoch_bump:
            # an answer from before an abort must not count after it; with version 2 the marker's epoch prevents that
            self._admit(transactional_id, identity, partition)
        return guard

    def commit_offsets(
        self,
        transactional_id: str,
        identity: ProducerIdentity,
        member: ConsumerGroupMetadata,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
    ) -> None:
        """Commit offsets with the transaction (`TxnOffsetCommit`), to which the group's partition is added first.

        Raises as `begin_append`; then as `GroupTable.check_commit`, if `member` is not in the group, or no longer, and
        the transaction must be aborted; and as `commit_records`.
        """
        partition = TopicPartition(OFFSETS_TOPIC, self._groups.partition_of(member.group_id))
        guard = self.begin_append(transactional_id, identity, partition, sequence=NO_SEQUENCE)
        has_topic_ids = self.has_epoch_bump and self._host.log(*partition).config[KAFKA_VERSION].commits_topic_ids
        self._groups.commit_transactional(member, offsets, identity, guard, has_topic_ids=has_topic_ids)

    def end_transaction(
        self, transactional_id: str, identity: ProducerIdentity, *, is_commit: bool
    ) -> ProducerIdentity:
        """Commit or abort; return the identity for the next transaction, whose sequences begin at 0 (version 2).

        When the answer comes the transaction is over, unless a partition could not be written: then it is still
        decided, its marker is tried again, and until then the transactional id answers CONCURRENT_TRANSACTIONS.

        Raises:
            InvalidPidMappingError, ProducerFencedError, InvalidTxnStateError, ConcurrentTransactionsError: as Kafka's.
            KafkaStorageError: the decision could not be written, or perhaps was: the next opening of the store tells.
        """
        request = EndTransaction(transactional_id, identity, is_commit, self._client_version)
        answer = self._state_of(transactional_id).apply(request)
        return answer.identity or identity

    def abort_timed_out(self) -> None:
        """Write markers that failed, abort transactions that timed out; raise the first error when all were tried."""
        for_each_then_raise(self._states, TransactionStatePartition.finish_decided)
        for_each_then_raise(self._states, TransactionStatePartition.abort_timed_out)

    @property
    def has_orphans(self) -> bool:
        """True if the next opening must reconcile: some orphans of this one could not be ended (`recovery`)."""
        return bool(self._orphans.refused)

    def end_orphans(self) -> None:
        """Try again to end the orphans of which a marker failed; raise the first error when all were tried."""
        for_each_then_raise(list(self._orphans.refused), self._orphans.end_refused)

    def timeout_of(self, transactional_id: str, identity: ProducerIdentity) -> int | None:
        """Return the timeout in ms that ended the last transaction of this producer; None if nothing of it timed out.

        Kafka's producer cannot tell that from a newer producer; here both are in one process.
        """
        ended = self._state_of(transactional_id).timed_out.get(transactional_id)
        if ended is None or (ended.producer_id, ended.producer_epoch) != identity:
            return None
        return ended.timeout_ms

    def remove_expired(self) -> None:
        """Forget ids after `transactional.id.expiration.ms`; raise the first error when all partitions were tried."""
        for_each_then_raise(self._states, TransactionStatePartition.remove_expired)

    def describe(self, transactional_id: str) -> Transaction:
        """Return the state of a transactional id; raises TransactionalIdNotFoundError."""
        self._host.require_same_process()
        if self._states:
            transaction = self._state_of(transactional_id).get(transactional_id)
            if transaction is not None:
                return transaction
        raise TransactionalIdNotFoundError(found=transactional_id)

    def __iter__(self) -> Iterator[Transaction]:
        """Iterate over the states of all transactional ids."""
        self._host.require_same_process()
        for state in self._states:
            yield from state.transactions()

    def _state_of(self, transactional_id: str) -> TransactionStatePartition:
        if not transactional_id:
            raise InvalidRequestError
        if not self._states:
            with alone(TRANSACTIONS), self._making:
                self._topic.make()
                self._states = self._states or self._loaded()
        return self._states[self._topic.partition_of(name_of("transactional id", transactional_id))]

    def _loaded(self) -> list[TransactionStatePartition]:
        return [
            TransactionStatePartition(number, self._host, self._topic, self._markers, self._rules)
            for number in range(self._topic.partition_count)
        ]

    def _admit(self, transactional_id: str, identity: ProducerIdentity, partition: TopicPartition) -> None:
        """Add a partition, with version 2; with version 0 raise unless it was added."""
        try:
            if self.has_epoch_bump:
                self.add_partitions(transactional_id, identity, [partition])
            elif self._host.config["transaction.partition.verification.enable"]:
                current = self._state_of(transactional_id).get(transactional_id)
                refusal = verify_partition(current, transactional_id, identity, partition)
                if refusal is not None:
                    raise refusal
        except ProducerFencedError as error:
            raise InvalidProducerEpochError("Producer attempted to produce with an old epoch.") from error
