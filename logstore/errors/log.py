"""Errors of files, batches and logs, and wrong calls."""

from __future__ import annotations

from typing import NamedTuple

from .error import LogstoreError, Recovery


class RecordError(NamedTuple):
    """Why one record of a refused batch was refused (`ProduceResponse.RecordError`); `batch_index` counts from 0."""

    batch_index: int
    message: str

    def __str__(self) -> str:
        return f"RecordError(batchIndex={self.batch_index}, message='{self.message}')"


class CorruptRecordError(LogstoreError, ValueError):
    """A batch header or checksum is wrong (`CorruptRecordException`)."""

    kafka_name, kafka_code = "CORRUPT_MESSAGE", 2
    java_class = "org.apache.kafka.common.errors.CorruptRecordException"


class InvalidRecordError(LogstoreError, ValueError):
    """The records inside a batch do not parse, or a log does not take them (`InvalidRecordException`).

    Attributes:
        record_errors: the records to blame, when it is single records; then the whole batch is refused.
    """

    kafka_name, kafka_code = "INVALID_RECORD", 87
    java_class = "org.apache.kafka.common.InvalidRecordException"
    recovery = Recovery.ABORT
    record_errors: tuple[RecordError, ...] = ()


class InvalidTimestampError(LogstoreError, ValueError):
    """Records whose timestamps a log does not take (`InvalidTimestampException`).

    Attributes:
        record_errors: the records to blame, those with other faults included.
    """

    kafka_name, kafka_code = "INVALID_TIMESTAMP", 32
    java_class = "org.apache.kafka.common.errors.InvalidTimestampException"
    recovery = Recovery.ABORT
    record_errors: tuple[RecordError, ...] = ()


class RecordTooLargeError(LogstoreError, ValueError):
    """A batch larger than `max.message.bytes` (`RecordTooLargeException`)."""

    kafka_name, kafka_code = "MESSAGE_TOO_LARGE", 10
    java_class = "org.apache.kafka.common.errors.RecordTooLargeException"
    recovery = Recovery.ABORT


class RecordBatchTooLargeError(LogstoreError, ValueError):
    """Batches of one append that are larger than a segment may be (`RecordBatchTooLargeException`)."""

    kafka_name, kafka_code = "RECORD_LIST_TOO_LARGE", 18
    java_class = "org.apache.kafka.common.errors.RecordBatchTooLargeException"
    recovery = Recovery.ABORT


class OffsetsOutOfOrderError(LogstoreError, ValueError):
    """Batches of one append whose offsets do not increase (`OffsetsOutOfOrderException`)."""

    java_class = "org.apache.kafka.storage.internals.log.OffsetsOutOfOrderException"


class UnexpectedAppendOffsetError(LogstoreError, ValueError):
    """An append of batches with offsets, which begins before the end of the log (`UnexpectedAppendOffsetException`)."""

    java_class = "org.apache.kafka.server.storage.log.UnexpectedAppendOffsetException"


class DecompressionError(LogstoreError, ValueError):
    """A compressed stream is broken, or would grow past its cap (`KafkaException` around the codec's own)."""

    java_class = "org.apache.kafka.common.KafkaException"


class UnsupportedCompressionTypeError(LogstoreError, ValueError):
    """A codec id that Kafka does not know."""

    kafka_name, kafka_code = "UNSUPPORTED_COMPRESSION_TYPE", 76
    java_class = "java.lang.IllegalArgumentException"
    recovery = Recovery.ABORT


class CorruptIndexError(LogstoreError, ValueError):
    """An `.index`, `.timeindex` or `.txnindex` that cannot be right (`CorruptIndexException`)."""

    java_class = "org.apache.kafka.storage.internals.log.CorruptIndexException"


class CorruptSnapshotError(LogstoreError, ValueError):
    """A `.snapshot` of producer state that cannot be right (`CorruptSnapshotException`)."""

    java_class = "org.apache.kafka.storage.internals.log.CorruptSnapshotException"


class CheckpointFormatError(LogstoreError, ValueError):
    """A checkpoint, `partition.metadata` or `meta.properties` that does not parse (`CheckpointFile`)."""

    java_class = "java.io.IOException"


class SchemaError(LogstoreError, ValueError):
    """A record of an internal topic that does not parse by its schema."""

    java_class = "java.lang.RuntimeException"


class InvalidNameError(LogstoreError, ValueError):
    """A file or directory whose name is not of Kafka's form."""

    java_class = "java.lang.NumberFormatException"


class DataDirectoryError(LogstoreError, OSError):
    """A file or directory that is missing, unreadable, or not what it should be."""

    kafka_name, kafka_code = "KAFKA_STORAGE_ERROR", 56
    java_class = "java.nio.file.NoSuchFileException"


class KafkaStorageError(LogstoreError, OSError):
    """A log that could not be written, and is not written any more until it is opened anew (`KafkaStorageException`).

    What was acknowledged can still be read.
    """

    kafka_name, kafka_code = "KAFKA_STORAGE_ERROR", 56
    java_class = "org.apache.kafka.common.errors.KafkaStorageException"
    recovery = Recovery.CLOSE


class InconsistentTopicIdError(LogstoreError, ValueError):
    """A partition's directory that belongs to another topic (`InconsistentTopicIdException`)."""

    kafka_name, kafka_code = "INCONSISTENT_TOPIC_ID", 103
    java_class = "org.apache.kafka.common.errors.InconsistentTopicIdException"


class OffsetOutOfRangeError(LogstoreError, ValueError):
    """A read of an offset before the log's start or behind its end (`OffsetOutOfRangeException`)."""

    kafka_name, kafka_code = "OFFSET_OUT_OF_RANGE", 1
    java_class = "org.apache.kafka.common.errors.OffsetOutOfRangeException"


class PolicyViolationError(LogstoreError, ValueError):
    """A request that the topic's configuration does not allow (`PolicyViolationException`)."""

    kafka_name, kafka_code = "POLICY_VIOLATION", 44
    java_class = "org.apache.kafka.common.errors.PolicyViolationException"


class LogCleaningAbortedError(LogstoreError, RuntimeError):
    """A cleaning that ended because the log changed under it; it can be tried again (`LogCleaningAbortedException`)."""

    java_class = "org.apache.kafka.storage.internals.log.LogCleaningAbortedException"


class InvalidOffsetError(LogstoreError, ValueError):
    """An index entry whose offset is not above the last one's (`InvalidOffsetException`)."""

    java_class = "org.apache.kafka.common.errors.InvalidOffsetException"


class OffsetOverflowError(LogstoreError, ValueError):
    """An offset that cannot be told relative to its segment's base (`LogSegmentOffsetOverflowException`)."""

    java_class = "org.apache.kafka.storage.internals.log.LogSegmentOffsetOverflowException"


class IndexFullError(LogstoreError, ValueError):
    """An index that has as many entries as `segment.index.bytes` allows (`AbstractIndex.isFull`)."""

    java_class = "java.lang.IllegalArgumentException"


class OutOfOrderSequenceError(LogstoreError, ValueError):
    """A producer's batch that does not follow on its last one (`OutOfOrderSequenceException`)."""

    kafka_name, kafka_code = "OUT_OF_ORDER_SEQUENCE_NUMBER", 45
    recovery = Recovery.ABORT
    java_class = "org.apache.kafka.common.errors.OutOfOrderSequenceException"


class InvalidProducerEpochError(LogstoreError, ValueError):
    """A producer that a newer one has replaced (`InvalidProducerEpochException`)."""

    kafka_name, kafka_code = "INVALID_PRODUCER_EPOCH", 47
    recovery = Recovery.CLOSE
    java_class = "org.apache.kafka.common.errors.InvalidProducerEpochException"


class InvalidTxnStateError(LogstoreError, ValueError):
    """A batch that its producer's transaction does not allow (`InvalidTxnStateException`)."""

    kafka_name, kafka_code = "INVALID_TXN_STATE", 48
    recovery = Recovery.CLOSE
    java_class = "org.apache.kafka.common.errors.InvalidTxnStateException"


class TransactionCoordinatorFencedError(LogstoreError, ValueError):
    """A marker of a coordinator that a newer one has replaced (`TransactionCoordinatorFencedException`)."""

    kafka_name, kafka_code = "TRANSACTION_COORDINATOR_FENCED", 52
    java_class = "org.apache.kafka.common.errors.TransactionCoordinatorFencedException"


class UsageError(LogstoreError, ValueError):
    """A wrong call: an unknown option, a value out of range, two options that exclude each other."""

    recovery = Recovery.MEND
