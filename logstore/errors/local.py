"""Errors that Kafka has no code for: wrong calls, what clients say by themselves, what is wrong in files."""

from __future__ import annotations

from .error import LogstoreError, Recovery


class UsageError(LogstoreError, ValueError):
    """A wrong call: an unknown option, a value out of range, two options that exclude each other."""

    recovery = Recovery.MEND


class IllegalStateError(LogstoreError, RuntimeError):
    """A call that does not fit the state of the client (`IllegalStateException`)."""

    java_class = "java.lang.IllegalStateException"
    recovery = Recovery.MEND


class SerializationError(LogstoreError, ValueError):
    """A serializer or deserializer failed, or gave something else than bytes (`SerializationException`)."""

    java_class = "org.apache.kafka.common.errors.SerializationException"
    recovery = Recovery.MEND


class AbortRequiredError(LogstoreError, RuntimeError):
    """The transaction has failed, see the cause: abort it before anything else (`KafkaException`)."""

    java_class = "org.apache.kafka.common.KafkaException"
    recovery = Recovery.ABORT


class ProducerFailedError(LogstoreError, RuntimeError):
    """The producer cannot go on, see the cause; close it and open another (`KafkaException`)."""

    java_class = "org.apache.kafka.common.KafkaException"
    recovery = Recovery.CLOSE


class CommitFailedError(LogstoreError, RuntimeError):
    """Offsets of a member that its group goes on without (`CommitFailedException`)."""

    java_class = "org.apache.kafka.clients.consumer.CommitFailedException"
    recovery = Recovery.ABORT


class NoOffsetForPartitionError(LogstoreError, LookupError):
    """Nothing was committed, and `auto.offset.reset` is none (`NoOffsetForPartitionException`)."""

    java_class = "org.apache.kafka.clients.consumer.NoOffsetForPartitionException"


class TransactionAbortedError(LogstoreError, RuntimeError):
    """A record that was not written before its transaction was aborted (`TransactionAbortedException`)."""

    java_class = "org.apache.kafka.common.errors.TransactionAbortedException"
    recovery = Recovery.ABORT


class WakeupError(LogstoreError, InterruptedError):
    """A consumer that waited was told to stop by `Consumer.wakeup` (`WakeupException`)."""

    java_class = "org.apache.kafka.common.errors.WakeupException"


class OffsetsOutOfOrderError(LogstoreError, ValueError):
    """Batches of one append whose offsets do not increase (`OffsetsOutOfOrderException`)."""

    java_class = "org.apache.kafka.storage.internals.log.OffsetsOutOfOrderException"


class UnexpectedAppendOffsetError(LogstoreError, ValueError):
    """An append of batches with offsets, which begins before the end of the log (`UnexpectedAppendOffsetException`)."""

    java_class = "org.apache.kafka.server.storage.log.UnexpectedAppendOffsetException"


class InvalidOffsetError(LogstoreError, ValueError):
    """An index entry whose offset is not above the last one's (`InvalidOffsetException`)."""

    java_class = "org.apache.kafka.common.errors.InvalidOffsetException"


class OffsetOverflowError(LogstoreError, ValueError):
    """An offset that cannot be told relative to its segment's base (`LogSegmentOffsetOverflowException`)."""

    java_class = "org.apache.kafka.storage.internals.log.LogSegmentOffsetOverflowException"


class IndexFullError(LogstoreError, ValueError):
    """An index that has as many entries as `segment.index.bytes` allows (`AbstractIndex.isFull`)."""

    java_class = "java.lang.IllegalArgumentException"


class LogCleaningAbortedError(LogstoreError, RuntimeError):
    """A cleaning that ended because the log changed under it; it can be tried again (`LogCleaningAbortedException`)."""

    java_class = "org.apache.kafka.storage.internals.log.LogCleaningAbortedException"


class DecompressionError(LogstoreError, ValueError):
    """A compressed stream is broken, or would grow past its cap (`KafkaException` around the codec's own)."""

    java_class = "org.apache.kafka.common.KafkaException"


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
