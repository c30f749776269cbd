"""Errors with a code in Kafka's `Errors`, in its order; `java_class` stands where the name differs from Kafka's."""

from __future__ import annotations

from typing import Any, ClassVar

from .error import LogstoreError, RecordError, Recovery


class CoordinatorError(LogstoreError):
    """An error of a coordinator; Kafka's `Errors` has its default message, by its code."""

    kafka_message: ClassVar[str]

    def __init__(self, message: str | None = None, **where: Any) -> None:
        super().__init__(self.kafka_message if message is None else message, **where)


class IllegalTransitionError(CoordinatorError, RuntimeError):
    """A change of a transaction's state that no request may cause: the state is broken (`IllegalStateException`)."""

    kafka_name, kafka_code = "UNKNOWN_SERVER_ERROR", -1
    java_class = "java.lang.IllegalStateException"
    kafka_message = "The server experienced an unexpected error when processing the request."
    recovery = Recovery.CLOSE


class OffsetOutOfRangeError(LogstoreError, ValueError):
    """A read below the log start or above the log end (`OffsetOutOfRangeException`)."""

    kafka_name, kafka_code = "OFFSET_OUT_OF_RANGE", 1


class CorruptRecordError(LogstoreError, ValueError):
    """A batch with a wrong header or checksum (`CorruptRecordException`)."""

    kafka_name, kafka_code = "CORRUPT_MESSAGE", 2


class UnknownTopicOrPartitionError(LogstoreError, LookupError):
    """There is no such topic or partition (`UnknownTopicOrPartitionException`)."""

    kafka_name, kafka_code = "UNKNOWN_TOPIC_OR_PARTITION", 3
    recovery = Recovery.RETRY


class RequestTimedOutError(LogstoreError, TimeoutError):
    """A call that was not done in time (`TimeoutException`)."""

    kafka_name, kafka_code = "REQUEST_TIMED_OUT", 7
    java_class = "org.apache.kafka.common.errors.TimeoutException"
    recovery = Recovery.RETRY


class BufferExhaustedError(RequestTimedOutError):
    """`buffer.memory` was full of unwritten records for `max.block.ms` (`BufferExhaustedException`)."""

    java_class = "org.apache.kafka.clients.producer.BufferExhaustedException"


class RecordTooLargeError(LogstoreError, ValueError):
    """A batch larger than `max.message.bytes` (`RecordTooLargeException`)."""

    kafka_name, kafka_code = "MESSAGE_TOO_LARGE", 10
    recovery = Recovery.ABORT


class OffsetMetadataTooLargeError(CoordinatorError, ValueError):
    """The text beside a committed offset is longer than `offset.metadata.max.bytes` (`OffsetMetadataTooLarge`)."""

    kafka_name, kafka_code = "OFFSET_METADATA_TOO_LARGE", 12
    java_class = "org.apache.kafka.common.errors.OffsetMetadataTooLarge"
    kafka_message = "The metadata field of the offset request was too large."
    recovery = Recovery.CLOSE


class CoordinatorLoadInProgressError(CoordinatorError, RuntimeError):
    """The coordinator still reads its log, or has no producer id left (`CoordinatorLoadInProgressException`)."""

    kafka_name, kafka_code = "COORDINATOR_LOAD_IN_PROGRESS", 14
    kafka_message = "The coordinator is loading and hence can't process requests."
    recovery = Recovery.RETRY


class CoordinatorNotAvailableError(CoordinatorError, RuntimeError):
    """The coordinator could not write its log (`CoordinatorNotAvailableException`)."""

    kafka_name, kafka_code = "COORDINATOR_NOT_AVAILABLE", 15
    kafka_message = "The coordinator is not available."
    recovery = Recovery.RETRY


class NotCoordinatorError(CoordinatorError, RuntimeError):
    """The coordinator does not have this partition of its topic (`NotCoordinatorException`)."""

    kafka_name, kafka_code = "NOT_COORDINATOR", 16
    kafka_message = "This is not the correct coordinator."
    recovery = Recovery.RETRY


class InvalidTopicError(LogstoreError, ValueError):
    """A name that no topic may have (`InvalidTopicException`)."""

    kafka_name, kafka_code = "INVALID_TOPIC_EXCEPTION", 17
    recovery = Recovery.CLOSE


class RecordBatchTooLargeError(LogstoreError, ValueError):
    """Batches of one append that are larger than a segment may be (`RecordBatchTooLargeException`)."""

    kafka_name, kafka_code = "RECORD_LIST_TOO_LARGE", 18
    recovery = Recovery.ABORT


class IllegalGenerationError(CoordinatorError, RuntimeError):
    """The group went on to another generation (`IllegalGenerationException`)."""

    kafka_name, kafka_code = "ILLEGAL_GENERATION", 22
    kafka_message = "Specified group generation id is not valid."
    recovery = Recovery.ABORT


class InconsistentGroupProtocolError(CoordinatorError, ValueError):
    """A member has no assignment protocol that all others have (`InconsistentGroupProtocolException`)."""

    kafka_name, kafka_code = "INCONSISTENT_GROUP_PROTOCOL", 23
    kafka_message = (
        "The group member's supported protocols are incompatible with those of existing members or first "
        "group member tried to join with empty protocol type or empty protocol list."
    )


class InvalidGroupIdError(CoordinatorError, ValueError):
    """A group id that is empty where members join (`InvalidGroupIdException`)."""

    kafka_name, kafka_code = "INVALID_GROUP_ID", 24
    recovery = Recovery.MEND
    kafka_message = "The group id is invalid."


class UnknownMemberIdError(CoordinatorError, LookupError):
    """The group does not have this member, or not any more (`UnknownMemberIdException`)."""

    kafka_name, kafka_code = "UNKNOWN_MEMBER_ID", 25
    kafka_message = "The coordinator is not aware of this member."
    recovery = Recovery.ABORT


class RebalanceInProgressError(CoordinatorError, RuntimeError):
    """The member has to join the new generation first (`RebalanceInProgressException`)."""

    kafka_name, kafka_code = "REBALANCE_IN_PROGRESS", 27
    kafka_message = "The group is rebalancing, so a rejoin is needed."
    recovery = Recovery.RETRY


class InvalidTimestampError(LogstoreError, ValueError):
    """Records whose timestamps a log does not take (`InvalidTimestampException`).

    Attributes:
        record_errors: the refused records, those with other faults included.
    """

    kafka_name, kafka_code = "INVALID_TIMESTAMP", 32
    recovery = Recovery.ABORT
    record_errors: tuple[RecordError, ...] = ()


class TopicExistsError(LogstoreError, ValueError):
    """A topic of that name is there already (`TopicExistsException`)."""

    kafka_name, kafka_code = "TOPIC_ALREADY_EXISTS", 36


class InvalidPartitionsError(LogstoreError, ValueError):
    """A number of partitions that a topic cannot have (`InvalidPartitionsException`)."""

    kafka_name, kafka_code = "INVALID_PARTITIONS", 37


class InvalidConfigurationError(LogstoreError, ValueError):
    """A configuration that a topic cannot have (`InvalidConfigurationException`)."""

    kafka_name, kafka_code = "INVALID_CONFIG", 40


class InvalidRequestError(CoordinatorError, ValueError):
    """A malformed request, such as one with an empty transactional id (`InvalidRequestException`)."""

    kafka_name, kafka_code = "INVALID_REQUEST", 42
    kafka_message = (
        "This most likely occurs because of a request being malformed by the client library or the message "
        "was sent to an incompatible broker. See the broker logs for more details."
    )
    recovery = Recovery.CLOSE


class PolicyViolationError(LogstoreError, ValueError):
    """A request that the topic's configuration does not allow (`PolicyViolationException`)."""

    kafka_name, kafka_code = "POLICY_VIOLATION", 44


class OutOfOrderSequenceError(LogstoreError, ValueError):
    """A producer's batch that does not follow on its last one (`OutOfOrderSequenceException`)."""

    kafka_name, kafka_code = "OUT_OF_ORDER_SEQUENCE_NUMBER", 45
    recovery = Recovery.ABORT


class InvalidProducerEpochError(LogstoreError, ValueError):
    """A producer that a newer one has replaced (`InvalidProducerEpochException`)."""

    kafka_name, kafka_code = "INVALID_PRODUCER_EPOCH", 47
    recovery = Recovery.CLOSE


class InvalidTxnStateError(LogstoreError, ValueError):
    """A batch or request that the state of its transaction does not allow (`InvalidTxnStateException`)."""

    kafka_name, kafka_code = "INVALID_TXN_STATE", 48
    recovery = Recovery.CLOSE


class InvalidPidMappingError(CoordinatorError, LookupError):
    """The transactional id is unknown, or has another producer id (`InvalidPidMappingException`)."""

    kafka_name, kafka_code = "INVALID_PRODUCER_ID_MAPPING", 49
    kafka_message = (
        "The producer attempted to use a producer id which is not currently assigned to its transactional id."
    )
    recovery = Recovery.CLOSE


class InvalidTxnTimeoutError(CoordinatorError, ValueError):
    """`transaction.timeout.ms` is not within 1 and `transaction.max.timeout.ms` (`InvalidTxnTimeoutException`)."""

    kafka_name, kafka_code = "INVALID_TRANSACTION_TIMEOUT", 50
    kafka_message = (
        "The transaction timeout is larger than the maximum value allowed by the broker (as configured by "
        "transaction.max.timeout.ms)."
    )
    recovery = Recovery.CLOSE


class ConcurrentTransactionsError(CoordinatorError, RuntimeError):
    """Another request or transaction of the transactional id is not finished (`ConcurrentTransactionsException`)."""

    kafka_name, kafka_code = "CONCURRENT_TRANSACTIONS", 51
    kafka_message = (
        "The producer attempted to update a transaction while another concurrent operation on the same "
        "transaction was ongoing."
    )
    recovery = Recovery.RETRY


class TransactionCoordinatorFencedError(LogstoreError, ValueError):
    """A marker of a coordinator that a newer one has replaced (`TransactionCoordinatorFencedException`)."""

    kafka_name, kafka_code = "TRANSACTION_COORDINATOR_FENCED", 52


class DataDirectoryError(LogstoreError, OSError):
    """A file or directory that is missing, unreadable, or not what it should be."""

    kafka_name, kafka_code = "KAFKA_STORAGE_ERROR", 56
    java_class = "java.nio.file.NoSuchFileException"


class KafkaStorageError(LogstoreError, OSError):
    """A log after a failed write or sync; it takes no appends until it is opened again (`KafkaStorageException`).

    Acknowledged records can still be read.
    """

    kafka_name, kafka_code = "KAFKA_STORAGE_ERROR", 56
    recovery = Recovery.CLOSE


class NonEmptyGroupError(CoordinatorError, RuntimeError):
    """A group with members cannot be deleted (`GroupNotEmptyException`)."""

    kafka_name, kafka_code = "NON_EMPTY_GROUP", 68
    java_class = "org.apache.kafka.common.errors.GroupNotEmptyException"
    kafka_message = "The group is not empty."


class GroupIdNotFoundError(CoordinatorError, LookupError):
    """There is no such group (`GroupIdNotFoundException`)."""

    kafka_name, kafka_code = "GROUP_ID_NOT_FOUND", 69
    kafka_message = "The group id does not exist."


class UnsupportedCompressionTypeError(LogstoreError, ValueError):
    """A codec id that Kafka does not know."""

    kafka_name, kafka_code = "UNSUPPORTED_COMPRESSION_TYPE", 76
    java_class = "java.lang.IllegalArgumentException"
    recovery = Recovery.ABORT


class FencedInstanceIdError(CoordinatorError, RuntimeError):
    """Another member took over the `group.instance.id` (`FencedInstanceIdException`)."""

    kafka_name, kafka_code = "FENCED_INSTANCE_ID", 82
    kafka_message = (
        "The broker rejected this static consumer since another consumer with the same group.instance.id has "
        "registered with a different member.id."
    )
    recovery = Recovery.ABORT


class GroupSubscribedToTopicError(CoordinatorError, RuntimeError):
    """Offsets of a topic that a member of the group subscribes to stay (`GroupSubscribedToTopicException`)."""

    kafka_name, kafka_code = "GROUP_SUBSCRIBED_TO_TOPIC", 86
    kafka_message = "Deleting offsets of a topic is forbidden while the consumer group is actively subscribed to it."


class InvalidRecordError(LogstoreError, ValueError):
    """The records inside a batch do not parse, or a log does not take them (`InvalidRecordException`).

    Attributes:
        record_errors: the refused records, if some are at fault; the whole batch is refused then.
    """

    kafka_name, kafka_code = "INVALID_RECORD", 87
    java_class = "org.apache.kafka.common.InvalidRecordException"
    recovery = Recovery.ABORT
    record_errors: tuple[RecordError, ...] = ()


class UnstableOffsetCommitError(CoordinatorError, RuntimeError):
    """An offset that an open transaction is about to replace (`UnstableOffsetCommitException`)."""

    kafka_name, kafka_code = "UNSTABLE_OFFSET_COMMIT", 88
    kafka_message = "There are unstable offsets that need to be cleared."
    recovery = Recovery.RETRY


class ProducerFencedError(CoordinatorError, RuntimeError):
    """A newer producer has the transactional id (`ProducerFencedException`)."""

    kafka_name, kafka_code = "PRODUCER_FENCED", 90
    kafka_message = "There is a newer producer with the same transactionalId which fences the current one."
    recovery = Recovery.CLOSE


class InvalidUpdateVersionError(CoordinatorError, ValueError):
    """A level that a feature cannot have, or not any more (`InvalidUpdateVersionException`)."""

    kafka_name, kafka_code = "INVALID_UPDATE_VERSION", 95
    kafka_message = "The given update version was invalid."


class InconsistentTopicIdError(LogstoreError, ValueError):
    """A partition's directory that belongs to another topic (`InconsistentTopicIdException`)."""

    kafka_name, kafka_code = "INCONSISTENT_TOPIC_ID", 103


class TransactionalIdNotFoundError(CoordinatorError, LookupError):
    """There is no such transactional id (`TransactionalIdNotFoundException`)."""

    kafka_name, kafka_code = "TRANSACTIONAL_ID_NOT_FOUND", 105
    kafka_message = "The transactionalId could not be found."


class OffsetMovedToTieredStorageError(LogstoreError, ValueError):
    """A read of a record that is in remote storage alone (`OffsetMovedToTieredStorageException`)."""

    kafka_name, kafka_code = "OFFSET_MOVED_TO_TIERED_STORAGE", 109


class TransactionAbortableError(CoordinatorError, RuntimeError):
    """The partition is not in the producer's transaction (`TransactionAbortableException`)."""

    kafka_name, kafka_code = "TRANSACTION_ABORTABLE", 120
    kafka_message = (
        "The server encountered an error with the transaction. The client can abort the transaction to "
        "continue using this transactional ID."
    )
    recovery = Recovery.ABORT
