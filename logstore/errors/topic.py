"""Answers to whoever makes, changes or names a topic, other than success."""

from __future__ import annotations

from .error import LogstoreError, Recovery


class UnknownTopicOrPartitionError(LogstoreError, LookupError):
    """There is no such topic or partition (`UnknownTopicOrPartitionException`)."""

    kafka_name, kafka_code = "UNKNOWN_TOPIC_OR_PARTITION", 3
    java_class = "org.apache.kafka.common.errors.UnknownTopicOrPartitionException"
    recovery = Recovery.RETRY


class InvalidTopicError(LogstoreError, ValueError):
    """A name that no topic may have (`InvalidTopicException`)."""

    kafka_name, kafka_code = "INVALID_TOPIC_EXCEPTION", 17
    java_class = "org.apache.kafka.common.errors.InvalidTopicException"
    recovery = Recovery.CLOSE


class TopicExistsError(LogstoreError, ValueError):
    """A topic of that name is there already (`TopicExistsException`)."""

    kafka_name, kafka_code = "TOPIC_ALREADY_EXISTS", 36
    java_class = "org.apache.kafka.common.errors.TopicExistsException"


class InvalidPartitionsError(LogstoreError, ValueError):
    """A number of partitions that a topic cannot have (`InvalidPartitionsException`)."""

    kafka_name, kafka_code = "INVALID_PARTITIONS", 37
    java_class = "org.apache.kafka.common.errors.InvalidPartitionsException"


class InvalidConfigurationError(LogstoreError, ValueError):
    """A configuration that a topic cannot have (`InvalidConfigurationException`)."""

    kafka_name, kafka_code = "INVALID_CONFIG", 40
    java_class = "org.apache.kafka.common.errors.InvalidConfigurationException"
