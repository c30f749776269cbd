"""The closed list of errors: what went wrong, where, what was expected, what was found, what to do.

Every error inherits from `LogstoreError` and from the builtin that a caller would catch. `message` is in Kafka's own
words where Kafka has words for it; `kafka_name` and `kafka_code` are those of Kafka's `Errors`; `java_class` is the
exception that the real tools die of, so that a command line can print the same first line.
"""

from __future__ import annotations

from os import PathLike


class LogstoreError(Exception):
    """Root of all errors that logstore raises on purpose.

    Args:
        message: what is wrong, in Kafka's words where it has them.
        path: the file or directory.
        position: byte position in `path`.
        offset: Kafka offset of the batch or record.
        expected, found: the two sides of the check that failed.
        advice: what to do now.
        java_class: full name of the exception that Kafka's own tool ends with, when it is not the class's usual one;
            None where Kafka has no such error.
    """

    kafka_name: str | None = None
    kafka_code: int | None = None
    java_class: str | None = None

    def __init__(
        self,
        message: str | None,
        *,
        path: str | PathLike[str] | None = None,
        position: int | None = None,
        offset: int | None = None,
        expected: object = None,
        found: object = None,
        advice: str | None = None,
        java_class: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.path = path
        self.position = position
        self.offset = offset
        self.expected = expected
        self.found = found
        self.advice = advice
        if java_class is not None:
            self.java_class = java_class

    def __str__(self) -> str:
        parts = [self.message or type(self).__name__]
        where = []
        if self.path is not None:
            where.append(str(self.path))
        if self.position is not None:
            where.append(f"byte {self.position}")
        if self.offset is not None:
            where.append(f"offset {self.offset}")
        if where:
            parts.append("at " + ", ".join(where))
        if self.expected is not None or self.found is not None:
            parts.append(f"expected {self.expected}, found {self.found}")
        if self.advice is not None:
            parts.append(self.advice)
        return "; ".join(parts)


class CorruptRecordError(LogstoreError, ValueError):
    """A batch header or checksum is wrong (`CorruptRecordException`)."""

    kafka_name, kafka_code = "CORRUPT_MESSAGE", 2
    java_class = "org.apache.kafka.common.errors.CorruptRecordException"


class InvalidRecordError(LogstoreError, ValueError):
    """The records inside a batch do not parse (`InvalidRecordException`)."""

    kafka_name, kafka_code = "INVALID_RECORD", 87
    java_class = "org.apache.kafka.common.InvalidRecordException"


class DecompressionError(LogstoreError, ValueError):
    """A compressed stream is broken, or would grow past its cap (`KafkaException` around the codec's own)."""

    java_class = "org.apache.kafka.common.KafkaException"


class UnsupportedCompressionTypeError(LogstoreError, ValueError):
    """A codec id that Kafka does not know."""

    kafka_name, kafka_code = "UNSUPPORTED_COMPRESSION_TYPE", 76
    java_class = "java.lang.IllegalArgumentException"


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
    java_class = "org.apache.kafka.common.errors.OutOfOrderSequenceException"


class InvalidProducerEpochError(LogstoreError, ValueError):
    """A producer that a newer one has replaced (`InvalidProducerEpochException`)."""

    kafka_name, kafka_code = "INVALID_PRODUCER_EPOCH", 47
    java_class = "org.apache.kafka.common.errors.InvalidProducerEpochException"


class InvalidTxnStateError(LogstoreError, ValueError):
    """A batch that its producer's transaction does not allow (`InvalidTxnStateException`)."""

    kafka_name, kafka_code = "INVALID_TXN_STATE", 48
    java_class = "org.apache.kafka.common.errors.InvalidTxnStateException"


class TransactionCoordinatorFencedError(LogstoreError, ValueError):
    """A marker of a coordinator that a newer one has replaced (`TransactionCoordinatorFencedException`)."""

    kafka_name, kafka_code = "TRANSACTION_COORDINATOR_FENCED", 52
    java_class = "org.apache.kafka.common.errors.TransactionCoordinatorFencedException"


class UsageError(LogstoreError, ValueError):
    """A wrong call: an unknown option, a value out of range, two options that exclude each other."""
