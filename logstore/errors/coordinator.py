"""Answers of the transaction and group coordinators other than success."""

from __future__ import annotations

from typing import Any, ClassVar

from .error import LogstoreError, Recovery


class CoordinatorError(LogstoreError):
    """A coordinator's answer other than success; without a message it has the one of its code in Kafka's `Errors`."""

    kafka_message: ClassVar[str]

    def __init__(self, message: str | None = None, **where: Any) -> None:
        super().__init__(self.kafka_message if message is None else message, **where)


class OffsetMetadataTooLargeError(CoordinatorError, ValueError):
    """The text beside a committed offset is longer than `offset.metadata.max.bytes` (`OffsetMetadataTooLarge`)."""

    kafka_name, kafka_code = "OFFSET_METADATA_TOO_LARGE", 12
    java_class = "org.apache.kafka.common.errors.OffsetMetadataTooLarge"
    kafka_message = "The metadata field of the offset request was too large."
    recovery = Recovery.CLOSE


class CoordinatorLoadInProgressError(CoordinatorError, RuntimeError):
    """The coordinator still reads its log, or has no producer id at hand (`CoordinatorLoadInProgressException`)."""

    kafka_name, kafka_code = "COORDINATOR_LOAD_IN_PROGRESS", 14
    java_class = "org.apache.kafka.common.errors.CoordinatorLoadInProgressException"
    kafka_message = "The coordinator is loading and hence can't process requests."
    recovery = Recovery.RETRY


class CoordinatorNotAvailableError(CoordinatorError, RuntimeError):
    """The coordinator could not write its log (`CoordinatorNotAvailableException`)."""

    kafka_name, kafka_code = "COORDINATOR_NOT_AVAILABLE", 15
    java_class = "org.apache.kafka.common.errors.CoordinatorNotAvailableException"
    kafka_message = "The coordinator is not available."
    recovery = Recovery.RETRY


class NotCoordinatorError(CoordinatorError, RuntimeError):
    """The coordinator does not have this partition of its topic (`NotCoordinatorException`)."""

    kafka_name, kafka_code = "NOT_COORDINATOR", 16
    java_class = "org.apache.kafka.common.errors.NotCoordinatorException"
    kafka_message = "This is not the correct coordinator."
    recovery = Recovery.RETRY


class IllegalGenerationError(CoordinatorError, RuntimeError):
    """The group went on to another generation (`IllegalGenerationException`)."""

    kafka_name, kafka_code = "ILLEGAL_GENERATION", 22
    java_class = "org.apache.kafka.common.errors.IllegalGenerationException"
    kafka_message = "Specified group generation id is not valid."
    recovery = Recovery.ABORT


class InconsistentGroupProtocolError(CoordinatorError, ValueError):
    """A member has no assignment protocol that all others have (`InconsistentGroupProtocolException`)."""

    kafka_name, kafka_code = "INCONSISTENT_GROUP_PROTOCOL", 23
    java_class = "org.apache.kafka.common.errors.InconsistentGroupProtocolException"
    kafka_message = (
        "The group member's supported protocols are incompatible with those of existing members or first "
        "group member tried to join with empty protocol type or empty protocol list."
    )


class InvalidGroupIdError(CoordinatorError, ValueError):
    """A group id that is empty where members join (`InvalidGroupIdException`)."""

    kafka_name, kafka_code = "INVALID_GROUP_ID", 24
    java_class = "org.apache.kafka.common.errors.InvalidGroupIdException"
    recovery = Recovery.MEND
    kafka_message = "The group id is invalid."


class UnknownMemberIdError(CoordinatorError, LookupError):
    """The group does not have this member, or not any more (`UnknownMemberIdException`)."""

    kafka_name, kafka_code = "UNKNOWN_MEMBER_ID", 25
    java_class = "org.apache.kafka.common.errors.UnknownMemberIdException"
    kafka_message = "The coordinator is not aware of this member."
    recovery = Recovery.ABORT


class RebalanceInProgressError(CoordinatorError, RuntimeError):
    """The member has to join the new generation first (`RebalanceInProgressException`)."""

    kafka_name, kafka_code = "REBALANCE_IN_PROGRESS", 27
    java_class = "org.apache.kafka.common.errors.RebalanceInProgressException"
    kafka_message = "The group is rebalancing, so a rejoin is needed."
    recovery = Recovery.RETRY


class InvalidRequestError(CoordinatorError, ValueError):
    """A request that no sound client makes, such as one with an empty transactional id (`InvalidRequestException`)."""

    kafka_name, kafka_code = "INVALID_REQUEST", 42
    java_class = "org.apache.kafka.common.errors.InvalidRequestException"
    kafka_message = (
        "This most likely occurs because of a request being malformed by the client library or the message "
        "was sent to an incompatible broker. See the broker logs for more details."
    )
    recovery = Recovery.CLOSE


class InvalidPidMappingError(CoordinatorError, LookupError):
    """The transactional id is unknown, or has another producer id (`InvalidPidMappingException`)."""

    kafka_name, kafka_code = "INVALID_PRODUCER_ID_MAPPING", 49
    java_class = "org.apache.kafka.common.errors.InvalidPidMappingException"
    kafka_message = (
        "The producer attempted to use a producer id which is not currently assigned to its transactional id."
    )
    recovery = Recovery.CLOSE


class InvalidTxnTimeoutError(CoordinatorError, ValueError):
    """`transaction.timeout.ms` is not within 1 and `transaction.max.timeout.ms` (`InvalidTxnTimeoutException`)."""

    kafka_name, kafka_code = "INVALID_TRANSACTION_TIMEOUT", 50
    java_class = "org.apache.kafka.common.errors.InvalidTxnTimeoutException"
    kafka_message = (
        "The transaction timeout is larger than the maximum value allowed by the broker (as configured by "
        "transaction.max.timeout.ms)."
    )
    recovery = Recovery.CLOSE


class ConcurrentTransactionsError(CoordinatorError, RuntimeError):
    """Another request or transaction of the transactional id is not finished (`ConcurrentTransactionsException`)."""

    kafka_name, kafka_code = "CONCURRENT_TRANSACTIONS", 51
    java_class = "org.apache.kafka.common.errors.ConcurrentTransactionsException"
    kafka_message = (
        "The producer attempted to update a transaction while another concurrent operation on the same "
        "transaction was ongoing."
    )
    recovery = Recovery.RETRY


class NonEmptyGroupError(CoordinatorError, RuntimeError):
    """A group with members cannot be deleted (`GroupNotEmptyException`)."""

    kafka_name, kafka_code = "NON_EMPTY_GROUP", 68
    java_class = "org.apache.kafka.common.errors.GroupNotEmptyException"
    kafka_message = "The group is not empty."


class GroupIdNotFoundError(CoordinatorError, LookupError):
    """There is no such group (`GroupIdNotFoundException`)."""

    kafka_name, kafka_code = "GROUP_ID_NOT_FOUND", 69
    java_class = "org.apache.kafka.common.errors.GroupIdNotFoundException"
    kafka_message = "The group id does not exist."


class FencedInstanceIdError(CoordinatorError, RuntimeError):
    """Another member took over the `group.instance.id` (`FencedInstanceIdException`)."""

    kafka_name, kafka_code = "FENCED_INSTANCE_ID", 82
    java_class = "org.apache.kafka.common.errors.FencedInstanceIdException"
    kafka_message = (
        "The broker rejected this static consumer since another consumer with the same group.instance.id has "
        "registered with a different member.id."
    )
    recovery = Recovery.ABORT


class GroupSubscribedToTopicError(CoordinatorError, RuntimeError):
    """Offsets of a topic that the group reads cannot be deleted (`GroupSubscribedToTopicException`)."""

    kafka_name, kafka_code = "GROUP_SUBSCRIBED_TO_TOPIC", 86
    java_class = "org.apache.kafka.common.errors.GroupSubscribedToTopicException"
    kafka_message = "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed to it."


class UnstableOffsetCommitError(CoordinatorError, RuntimeError):
    """An offset that an open transaction is about to replace (`UnstableOffsetCommitException`)."""

    kafka_name, kafka_code = "UNSTABLE_OFFSET_COMMIT", 88
    java_class = "org.apache.kafka.common.errors.UnstableOffsetCommitException"
    kafka_message = "There are unstable offsets that need to be cleared."
    recovery = Recovery.RETRY


class ProducerFencedError(CoordinatorError, RuntimeError):
    """A newer producer has the transactional id (`ProducerFencedException`)."""

    kafka_name, kafka_code = "PRODUCER_FENCED", 90
    java_class = "org.apache.kafka.common.errors.ProducerFencedException"
    kafka_message = "There is a newer producer with the same transactionalId which fences the current one."
    recovery = Recovery.CLOSE


class TransactionalIdNotFoundError(CoordinatorError, LookupError):
    """There is no such transactional id (`TransactionalIdNotFoundException`)."""

    kafka_name, kafka_code = "TRANSACTIONAL_ID_NOT_FOUND", 105
    java_class = "org.apache.kafka.common.errors.TransactionalIdNotFoundException"
    kafka_message = "The transactionalId could not be found."


class TransactionAbortableError(CoordinatorError, RuntimeError):
    """The partition is not in the producer's transaction (`TransactionAbortableException`)."""

    kafka_name, kafka_code = "TRANSACTION_ABORTABLE", 120
    java_class = "org.apache.kafka.common.errors.TransactionAbortableException"
    kafka_message = (
        "The server encountered an error with the transaction. The client can abort the transaction to "
        "continue using this transactional ID."
    )
    recovery = Recovery.ABORT


class IllegalTransitionError(CoordinatorError, RuntimeError):
    """A change of a transaction's state that must not happen, whatever was asked: something is broken."""

    kafka_name, kafka_code = "UNKNOWN_SERVER_ERROR", -1
    java_class = "java.lang.IllegalStateException"
    kafka_message = "The server experienced an unexpected error when processing the request."
    recovery = Recovery.CLOSE
