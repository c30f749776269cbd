"""What producers and consumers say by themselves, before or after an answer of the log or a coordinator."""

from __future__ import annotations

from .error import LogstoreError, Recovery


class IllegalStateError(LogstoreError, RuntimeError):
    """A call that does not fit the state of the client (`IllegalStateException`)."""

    java_class = "java.lang.IllegalStateException"
    recovery = Recovery.MEND


class RequestTimedOutError(LogstoreError, TimeoutError):
    """What was asked for did not come about in time (`TimeoutException`)."""

    kafka_name, kafka_code = "REQUEST_TIMED_OUT", 7
    java_class = "org.apache.kafka.common.errors.TimeoutException"
    recovery = Recovery.RETRY


class BufferExhaustedError(RequestTimedOutError):
    """`buffer.memory` is full of records that could not be written for `max.block.ms` (`BufferExhaustedException`)."""

    java_class = "org.apache.kafka.clients.producer.BufferExhaustedException"


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
