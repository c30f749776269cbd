"""Errors without a code in Kafka's `Errors`: wrong calls, errors of clients, damaged files."""

from __future__ import annotations

from .error import LogstoreError, Recovery


class UsageError(LogstoreError, ValueError):
    """A wrong call: an unknown option, a value out of range, two options that exclude each other."""

    recovery = Recovery.MEND


class IllegalStateError(LogstoreError, RuntimeError):
    """A call that does not fit the state of the client (`IllegalStateException`)."""

    java_class = "java.lang.IllegalStateException"
    recovery = Recovery.MEND


class ReentrantCallError(IllegalStateError):
    """A call from a signal handler, a finalizer or a callback, in the middle of a call that it would have to wait for.

    It has changed nothing, and succeeds when the interrupted call has returned.
    """

    recovery = Recovery.RETRY


class SerializationError(LogstoreError, ValueError):
    """A serializer or deserializer failed, or returned something else than bytes (`SerializationException`)."""

    java_class = "org.apache.kafka.common.errors.SerializationException"
    recovery = Recovery.MEND


class AbortRequiredError(LogstoreError, RuntimeError):
    """The transaction has failed, see the cause: abort it first (`KafkaException`)."""

    java_class = "org.apache.kafka.common.KafkaException"
    recovery = Recovery.ABORT


class ProducerFailedError(LogstoreError, RuntimeError):
    """The producer has failed, see the cause: close it and open another (`KafkaException`)."""

    java_class = "org.apache.kafka.common.KafkaException"
    recovery = Recovery.CLOSE


class CommitFailedError(LogstoreError, RuntimeError):
    """A commit of offsets by a consumer that is no longer in its group (`CommitFailedException`)."""

    java_class = "org.apache.kafka.clients.consumer.CommitFailedException"
    recovery = Recovery.ABORT


class NoOffsetForPartitionError(LogstoreError, LookupError):
    """A partition without a committed offset, and `auto.offset.reset` is none (`NoOffsetForPartitionException`)."""

    java_class = "org.apache.kafka.clients.consumer.NoOffsetForPartitionException"


class TransactionAbortedError(LogstoreError, RuntimeError):
    """A record that was not written before its transaction was aborted (`TransactionAbortedException`)."""

    java_class = "org.apache.kafka.common.errors.TransactionAbortedException"
    recovery = Recovery.ABORT


class WakeupError(LogstoreError, InterruptedError):
    """`Consumer.wakeup` interrupted a consumer that waited (`WakeupException`)."""

    java_class = "org.apache.kafka.common.errors.WakeupException"


class OffsetsOutOfOrderError(LogstoreError, ValueError):
    """An append of batches whose offsets do not increase (`OffsetsOutOfOrderException`)."""

    java_class = "org.apache.kafka.storage.internals.log.OffsetsOutOfOrderException"


class UnexpectedAppendOffsetError(LogstoreError, ValueError):
    """An append of batches with offsets that begin below the log end (`UnexpectedAppendOffsetException`)."""

    java_class = "org.apache.kafka.server.storage.log.UnexpectedAppendOffsetException"


class InvalidOffsetError(LogstoreError, ValueError):
    """An index entry whose offset is not above the last one's (`InvalidOffsetException`)."""

    java_class = "org.apache.kafka.common.errors.InvalidOffsetException"


class OffsetOverflowError(LogstoreError, ValueError):
    """An offset whose distance from its segment's base exceeds 31 bits (`LogSegmentOffsetOverflowException`)."""

    java_class = "org.apache.kafka.storage.internals.log.LogSegmentOffsetOverflowException"


class IndexFullError(LogstoreError, ValueError):
    """An index that has as many entries as `segment.index.bytes` allows (`AbstractIndex.isFull`)."""

    java_class = "java.lang.IllegalArgumentException"


class LogCleaningAbortedError(LogstoreError, RuntimeError):
    """A cleaning that stopped because the log changed meanwhile; it can be repeated (`LogCleaningAbortedException`)."""

    java_class = "org.apache.kafka.storage.internals.log.LogCleaningAbortedException"


class DecompressionError(LogstoreError, ValueError):
    """A compressed stream is broken, or would grow past its cap (`KafkaException` around the codec's own)."""

    java_class = "org.apache.kafka.common.KafkaException"


class CorruptIndexError(LogstoreError, ValueError):
    """A damaged `.index`, `.timeindex` or `.txnindex` (`CorruptIndexException`)."""

    java_class = "org.apache.kafka.storage.internals.log.CorruptIndexException"


class CorruptSnapshotError(LogstoreError, ValueError):
    """A damaged `.snapshot` of producer state (`CorruptSnapshotException`)."""

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


class TooManyOpenFilesError(LogstoreError, RuntimeError):
    """The process may open no more files; nothing has changed."""

    recovery = Recovery.RETRY


class RecoveryLossError(LogstoreError, RuntimeError):
    """A recovery that would remove readable batches, and was not allowed to; nothing has changed."""


class KernelBuildError(LogstoreError, RuntimeError):
    """There is no library of compiled kernels that can be loaded, and none can be built here."""

    recovery = Recovery.MEND
