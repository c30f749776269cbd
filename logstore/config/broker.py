"""Configuration of a store: the broker configurations that need no network (`KafkaConfig`).

Names and defaults are Kafka's, except one: with `logstore.durable.commits` the commit of a transaction or of offsets is
durable when it is answered, and survives a power failure; else the system writes it some time later, as for a broker.
`logstore.open.files.max` is the number of files of logs that stay open or mapped while nobody uses them; 0 stands for
half of the process's soft limit, which all stores of the process share.
`logstore.kafka.version` is the version of Kafka whose logs a store's logs clean and close as.
The defaults of topics come from here too, under the broker's names (`ServerTopicConfigSynonyms`).

>>> config = parse_broker_config({"log.retention.hours": 2, "num.partitions": 3})
>>> config["num.partitions"], topic_defaults(config)["retention.ms"]
(3, '7200000')
>>> parse_broker_config({"log.retention.houses": 2})
Traceback (most recent call last):
logstore.errors.UsageError: Unknown broker config name: log.retention.houses; ...
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import UsageError
from .definition import Definition, as_boolean, as_int, as_long, between, nearest, text_of, value_of
from .topic import KAFKA_VERSION, MAX_DECOMPRESSED_MESSAGE_BYTES, definition_of, parse_config

BrokerConfig = dict[str, Any]

DURABLE_COMMITS = "logstore.durable.commits"
OPEN_FILES_MAX = "logstore.open.files.max"

_HOUR_MS, _MINUTE_MS = 3_600_000, 60_000
_DEDUPE_BUFFER_SIZE = "log.cleaner.dedupe.buffer.size"
_CLEANER_BUFFER_MIN = 1 << 20  # bytes; more than these

#: topic config to the broker's names for it; the first one that is set counts, times its factor
SYNONYMS: dict[str, tuple[tuple[str, int], ...]] = {
    "cleanup.policy": (("log.cleanup.policy", 1),),
    "compression.gzip.level": (("compression.gzip.level", 1),),
    "compression.lz4.level": (("compression.lz4.level", 1),),
    "compression.type": (("compression.type", 1),),
    "compression.zstd.level": (("compression.zstd.level", 1),),
    "delete.retention.ms": (("log.cleaner.delete.retention.ms", 1),),
    "file.delete.delay.ms": (("log.segment.delete.delay.ms", 1),),
    "flush.messages": (("log.flush.interval.messages", 1),),
    "flush.ms": (("log.flush.interval.ms", 1), ("log.flush.scheduler.interval.ms", 1)),
    KAFKA_VERSION: ((KAFKA_VERSION, 1),),
    "index.interval.bytes": (("log.index.interval.bytes", 1),),
    "local.retention.bytes": (("log.local.retention.bytes", 1),),
    "local.retention.ms": (("log.local.retention.ms", 1),),
    "max.compaction.lag.ms": (("log.cleaner.max.compaction.lag.ms", 1),),
    MAX_DECOMPRESSED_MESSAGE_BYTES: ((MAX_DECOMPRESSED_MESSAGE_BYTES, 1),),
    "max.message.bytes": (("message.max.bytes", 1),),
    "message.timestamp.after.max.ms": (("log.message.timestamp.after.max.ms", 1),),
    "message.timestamp.before.max.ms": (("log.message.timestamp.before.max.ms", 1),),
    "message.timestamp.type": (("log.message.timestamp.type", 1),),
    "min.cleanable.dirty.ratio": (("log.cleaner.min.cleanable.ratio", 1),),
    "min.compaction.lag.ms": (("log.cleaner.min.compaction.lag.ms", 1),),
    "min.insync.replicas": (("min.insync.replicas", 1),),
    "preallocate": (("log.preallocate", 1),),
    "producer.id.expiration.ms": (("producer.id.expiration.ms", 1),),
    "remote.copy.lag.bytes": (("log.remote.copy.lag.bytes", 1),),
    "remote.copy.lag.ms": (("log.remote.copy.lag.ms", 1),),
    "retention.bytes": (("log.retention.bytes", 1),),
    "retention.ms": (
        ("log.retention.ms", 1),
        ("log.retention.minutes", _MINUTE_MS),
        ("log.retention.hours", _HOUR_MS),
    ),
    "segment.bytes": (("log.segment.bytes", 1),),
    "segment.index.bytes": (("log.index.size.max.bytes", 1),),
    "segment.jitter.ms": (("log.roll.jitter.ms", 1), ("log.roll.jitter.hours", _HOUR_MS)),
    "segment.ms": (("log.roll.ms", 1), ("log.roll.hours", _HOUR_MS)),
    "unclean.leader.election.enable": (("unclean.leader.election.enable", 1),),
}
#: the broker's name to the definition of what it gives to topics; hours and minutes are INT
_OF_TOPICS = {
    name: Definition(as_int, None) if factor > 1 else definition_of(topic_name)
    for topic_name, names in SYNONYMS.items()
    for name, factor in names
}
# less than none is none (`KafkaConfig.logRetentionTimeMillis`)
_OF_TOPICS["log.retention.ms"] = Definition(as_long, None)

_DEFINITIONS = {
    "log.cleaner.backoff.ms": Definition(as_long, 15_000, between(0)),
    _DEDUPE_BUFFER_SIZE: Definition(as_long, 134_217_728),
    "log.cleaner.enable": Definition(as_boolean, True),
    "log.flush.offset.checkpoint.interval.ms": Definition(as_int, 60_000, between(0)),
    "log.flush.start.offset.checkpoint.interval.ms": Definition(as_int, 60_000, between(0)),
    "log.initial.task.delay.ms": Definition(as_long, 30_000, between(0)),
    "log.retention.check.interval.ms": Definition(as_long, 300_000, between(1)),
    DURABLE_COMMITS: Definition(as_boolean, False),
    OPEN_FILES_MAX: Definition(as_int, 0, between(0)),
    "num.partitions": Definition(as_int, 1, between(1)),
    "num.recovery.threads.per.data.dir": Definition(as_int, 2, between(1)),
    "offset.metadata.max.bytes": Definition(as_int, 4096),
    "offsets.retention.check.interval.ms": Definition(as_long, 600_000, between(1)),
    "offsets.retention.minutes": Definition(as_int, 10_080, between(1)),
    "offsets.topic.compression.codec": Definition(as_int, 0),
    "offsets.topic.num.partitions": Definition(as_int, 50, between(1)),
    "offsets.topic.segment.bytes": Definition(as_int, 104_857_600, between(1)),
    "producer.id.expiration.check.interval.ms": Definition(as_int, 600_000, between(1)),
    "replica.high.watermark.checkpoint.interval.ms": Definition(as_long, 5000),
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": Definition(as_int, 10_000, between(1)),
    "transaction.max.timeout.ms": Definition(as_int, 900_000, between(1)),
    "transaction.partition.verification.enable": Definition(as_boolean, True),
    "transaction.remove.expired.transaction.cleanup.interval.ms": Definition(as_int, 3_600_000, between(1)),
    "transaction.state.log.num.partitions": Definition(as_int, 50, between(1)),
    "transaction.state.log.segment.bytes": Definition(as_int, 104_857_600, between(1)),
    "transactional.id.expiration.ms": Definition(as_int, 604_800_000, between(1)),
}


def parse_broker_config(values: Mapping[str, Any]) -> BrokerConfig:
    """Return every configuration with its value or Kafka's default; synonyms only if set, as text.

    Raises UsageError in Kafka's words: an unknown name, text that does not parse as the type, a value out of range.
    """
    config: BrokerConfig = {name: definition.default for name, definition in _DEFINITIONS.items()}
    for name, value in values.items():
        if name in _DEFINITIONS:
            config[name] = value_of(name, _DEFINITIONS[name], value)
        elif name in _OF_TOPICS:
            value_of(name, _OF_TOPICS[name], value)
            config[name] = text_of(value)
        else:
            raise UsageError(
                f"Unknown broker config name: {name}",
                java_class="org.apache.kafka.common.config.ConfigException",
                advice=nearest(name, [*_DEFINITIONS, *_OF_TOPICS]),
            )
    defaults = topic_defaults(config)
    parse_config(defaults)
    problem = None  # with which no broker starts (`KafkaConfig.validateValues`)
    if defaults.get("retention.ms") == "0":
        problem = "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"
    elif config[_DEDUPE_BUFFER_SIZE] <= _CLEANER_BUFFER_MIN:
        problem = f"{_DEDUPE_BUFFER_SIZE} must be at least 1MB per cleaner thread."
    if problem is not None:
        raise UsageError(f"requirement failed: {problem}", java_class="java.lang.IllegalArgumentException")
    return config


def topic_defaults(config: Mapping[str, Any]) -> dict[str, str]:
    """Return the topic configs that the broker's configuration sets, as text; raises UsageError as `value_of`."""
    defaults = {}
    for topic_name, names in SYNONYMS.items():
        name, factor = next(((name, factor) for name, factor in names if name in config), (None, 1))
        if name is not None:
            value = config[name]
            if factor > 1 or topic_name == "retention.ms":
                scaled = value_of(name, _OF_TOPICS[name], value) * factor
                # as `KafkaConfig.logRetentionTimeMillis`: less than none is for ever
                value = str(max(scaled, -1) if topic_name == "retention.ms" else scaled)
            defaults[topic_name] = value
    return defaults
