"""The transactional calls of a producer, in the names of Kafka's (`KafkaProducer`)."""

from __future__ import annotations

from ..errors import IllegalStateError, LogstoreError, RequestTimedOutError, TransactionAbortedError
from .accumulator import Accumulator
from .group_metadata import ConsumerGroupMetadata, Offsets, checked_group
from .producer_config import ProducerConfig
from .producer_states import ProducerState
from .producer_transactions import ProducerTransactions

_NOT_TRANSACTIONAL = "Transactional method invoked on a non-transactional producer."
_NOT_IDEMPOTENT = (
    "Cannot use transactional methods without enabling transactions by setting the transactional.id configuration "
    "property"
)


class TransactionalCalls:
    """Those of a producer; one without a `transactional.id` refuses them.

    Attributes:
        config: every configuration's value, by Kafka's names.
    """

    config: ProducerConfig
    _accumulator: Accumulator
    _transactions: ProducerTransactions | None

    @property
    def state(self) -> ProducerState | None:
        """Where a transactional producer is in its life; None for another."""
        return None if self._transactions is None else self._transactions.state

    def init_transactions(self) -> None:
        """Begin as the only producer with this `transactional.id`; once, before the first transaction.

        What an earlier one left open is aborted, and whatever that one tries then fails.

        Raises:
            IllegalStateError: the producer has no `transactional.id`, or has done this before.
            InvalidTxnTimeoutError: `transaction.timeout.ms` is more than `transaction.max.timeout.ms`.
            RequestTimedOutError: not done within `max.block.ms`; call it again.
            LogstoreError: the producer cannot go on, see `recovery`.
        """
        self._transactional().init()

    def begin_transaction(self) -> None:
        """Begin a transaction.

        Raises:
            IllegalStateError: there is one, or `init_transactions` was not called.
            AbortRequiredError, ProducerFencedError, InvalidProducerEpochError, ProducerFailedError: an error state.
        """
        self._transactional().begin()

    def send_offsets_to_transaction(
        self,
        offsets: Offsets,
        group_metadata: ConsumerGroupMetadata | str | None = None,
        *,
        group_id: str | None = None,
    ) -> None:
        """Commit a group's offsets if and when the transaction is committed.

        Args:
            offsets: by partition the next offset to be read.
            group_metadata: of `Consumer.group_metadata`: then it is refused when the group has gone on without the
                consumer. A group id alone refuses nobody.

        Raises:
            UsageError: no group, a negative offset.
            IllegalStateError: no transaction.
            CommitFailedError: the consumer is not in the group any more; abort the transaction.
            RequestTimedOutError: not done within `max.block.ms`.
            LogstoreError: see `recovery`.
        """
        group = checked_group(group_id if group_metadata is None else group_metadata)
        transactions = self._transactional()
        if offsets:
            transactions.send_offsets(offsets, group)

    def commit_transaction(self) -> None:
        """Write what was sent, and let all of it count, in all partitions, with the offsets; or raise.

        Raises:
            IllegalStateError: no transaction.
            RequestTimedOutError: not done within `max.block.ms`; call it again, nothing else.
            LogstoreError: why a record could not be written, or what the coordinator said, see `recovery`; after
                anything else than success or this error of time the transaction does not count.
        """
        try:
            self._transactional().commit(self._accumulator.flush)
        except RequestTimedOutError as error:
            error.__cause__ = error.__cause__ or self._accumulator.retried_error  # a full disk, say
            raise

    def abort_transaction(self) -> None:
        """Let nothing of the transaction count; after an error too.

        Raises:
            IllegalStateError: no transaction.
            RequestTimedOutError: not done within `max.block.ms`; call it again, nothing else.
            LogstoreError: the producer cannot go on; its transaction is aborted by whoever has the id next, or by time.
        """
        transactions = self._transactional()
        cause = transactions.error
        transactions.abort(lambda: self._drop(cause))

    def _drop(self, cause: LogstoreError | None) -> None:
        aborted = TransactionAbortedError("Failing batch since transaction was aborted")
        self._accumulator.fail_all(cause or aborted)

    def _transactional(self) -> ProducerTransactions:
        if not self.config["enable.idempotence"]:
            raise IllegalStateError(_NOT_IDEMPOTENT)
        self._accumulator.require_open()
        if self._transactions is None:
            raise IllegalStateError(_NOT_TRANSACTIONAL)
        return self._transactions
