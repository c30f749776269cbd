"""Configuration of one log: Kafka's names, defaults and checks (`LogConfig`, `ConfigDef`).

Holds every topic configuration, and what a log needs of the broker too: `producer.id.expiration.ms`, and the version of
Kafka that it does as. A value is text, as on Kafka's command lines, or a Python value of the right type.

>>> config = parse_config({"segment.bytes": "1048576", "index.interval.bytes": 0})
>>> config["segment.bytes"], config["index.interval.bytes"], config["segment.index.bytes"]
(1048576, 0, 10485760)
>>> parse_config({"segment.bytes": "14"})
Traceback (most recent call last):
logstore.errors.UsageError: Invalid value 14 for configuration segment.bytes: Value must be at least 1048576
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import UsageError
from ..model import Codec
from .definition import (
    Definition,
    all_of,
    as_boolean,
    as_double,
    as_int,
    as_list,
    as_long,
    as_string,
    between,
    level_of,
    nearest,
    one_of,
    value_of,
    values_of,
)
from .kafka_version import OF_NEW_STORES, KafkaVersion, kafka_version

INVALID_CONFIGURATION = "org.apache.kafka.common.errors.InvalidConfigurationException"

INDEX_INTERVAL_BYTES = "index.interval.bytes"
INTERNAL_SEGMENT_BYTES = "internal.segment.bytes"
KAFKA_VERSION = "logstore.kafka.version"
MAX_DECOMPRESSED_MESSAGE_BYTES = "max.decompressed.message.bytes"
PRODUCER_ID_EXPIRATION_MS = "producer.id.expiration.ms"
REMOTE_STORAGE = "remote.storage.enable"
SEGMENT_BYTES = "segment.bytes"
SEGMENT_INDEX_BYTES = "segment.index.bytes"

DEDUPE_BUFFER_SIZE = 128 * 1024 * 1024  # log.cleaner.dedupe.buffer.size, the broker's

LogConfig = dict[str, Any]

_LONG_MAX = 2**63 - 1
ARRAY_SIZE_MAX = 2**31 - 9  # bytes of the largest array that Java allocates
_DAY_MS = 86_400_000


def is_tiered(config: LogConfig) -> bool:
    """Return whether older segments of the log may be in remote storage alone (`UnifiedLog.isRemoteLogEnabled`)."""
    return config[REMOTE_STORAGE] and "compact" not in config["cleanup.policy"]


def as_version(name: str, text: str) -> KafkaVersion:
    """Parse the name of a version of Kafka."""
    return kafka_version(text)


def parse_config(values: Mapping[str, Any]) -> LogConfig:
    """Return the value of every configuration: the given ones, Kafka's default for the others.

    Raises UsageError in Kafka's words: an unknown name, text that does not parse as the type, a value out of range.
    """
    kafka = value_of(KAFKA_VERSION, _DEFINITIONS[KAFKA_VERSION], values.get(KAFKA_VERSION, OF_NEW_STORES))
    for name in values:
        if name not in _DEFINITIONS or not kafka.knows(_DEFINITIONS[name].since):
            raise UsageError(
                f"Unknown topic config name: {name}",
                java_class=INVALID_CONFIGURATION,
                advice=nearest(name, known_names(kafka)),
            )
    config = values_of(_DEFINITIONS, values)
    _check_lags(config)
    return config


def segment_size_max(config: LogConfig) -> int:
    """Return the bytes of a full segment: `internal.segment.bytes`, which has no lower limit, or `segment.bytes`."""
    internal = config[INTERNAL_SEGMENT_BYTES]
    size: int = config[SEGMENT_BYTES] if internal is None else internal
    return size


def known_names(kafka: KafkaVersion) -> set[str]:
    """Return the names of all configurations that a version of Kafka knows."""
    return {name for name, definition in _DEFINITIONS.items() if kafka.knows(definition.since)}


def definition_of(name: str) -> Definition:
    """Return the definition of a topic's configuration."""
    return _DEFINITIONS[name]


def is_compacted(config: LogConfig) -> bool:
    """Return whether `cleanup.policy` has compact (`LogConfig.compact`)."""
    return "compact" in config["cleanup.policy"]


def _check_lags(config: LogConfig) -> None:
    least, most = config["min.compaction.lag.ms"], config["max.compaction.lag.ms"]
    if least > most:
        raise UsageError(
            f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})",
            java_class=INVALID_CONFIGURATION,
        )


_DEFINITIONS = {
    "cleanup.policy": Definition(as_list, ["delete"], all_of("compact", "delete")),
    "compression.gzip.level": level_of(Codec.GZIP),
    "compression.lz4.level": level_of(Codec.LZ4),
    "compression.type": Definition(
        as_string, "producer", one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
    ),
    "compression.zstd.level": level_of(Codec.ZSTD),
    "delete.retention.ms": Definition(as_long, _DAY_MS, between(0)),
    "errors.deadletterqueue.group.enable": Definition(as_boolean, False, since="4.4"),
    "file.delete.delay.ms": Definition(as_long, 60_000, between(0)),
    "flush.messages": Definition(as_long, _LONG_MAX, between(1)),
    "flush.ms": Definition(as_long, _LONG_MAX, between(0)),
    "follower.replication.throttled.replicas": Definition(as_list, []),
    INDEX_INTERVAL_BYTES: Definition(as_int, 4096, between(0)),
    INTERNAL_SEGMENT_BYTES: Definition(as_int, None),
    KAFKA_VERSION: Definition(as_version, OF_NEW_STORES),
    "leader.replication.throttled.replicas": Definition(as_list, []),
    "local.retention.bytes": Definition(as_long, -2, between(-2)),
    "local.retention.ms": Definition(as_long, -2, between(-2)),
    "max.compaction.lag.ms": Definition(as_long, _LONG_MAX, between(1)),
    MAX_DECOMPRESSED_MESSAGE_BYTES: Definition(as_int, ARRAY_SIZE_MAX, between(1, ARRAY_SIZE_MAX), "4.4"),
    "max.message.bytes": Definition(as_int, 1_048_588, between(0)),
    "message.timestamp.after.max.ms": Definition(as_long, 3_600_000, between(0)),
    "message.timestamp.before.max.ms": Definition(as_long, _LONG_MAX, between(0)),
    "message.timestamp.type": Definition(as_string, "CreateTime", one_of("CreateTime", "LogAppendTime")),
    "min.cleanable.dirty.ratio": Definition(as_double, 0.5, between(0, 1)),
    "min.compaction.lag.ms": Definition(as_long, 0, between(0)),
    "min.insync.replicas": Definition(as_int, 1, between(1)),
    "preallocate": Definition(as_boolean, False),
    PRODUCER_ID_EXPIRATION_MS: Definition(as_int, _DAY_MS, between(1)),
    "remote.copy.lag.bytes": Definition(as_long, -1, between(-1), "4.4"),
    "remote.copy.lag.ms": Definition(as_long, 0, between(-1), "4.4"),
    "remote.log.copy.disable": Definition(as_boolean, False),
    "remote.log.delete.on.disable": Definition(as_boolean, False),
    REMOTE_STORAGE: Definition(as_boolean, False),
    "retention.bytes": Definition(as_long, -1),
    "retention.ms": Definition(as_long, 7 * _DAY_MS, between(-1)),
    SEGMENT_BYTES: Definition(as_int, 1 << 30, between(1 << 20)),
    SEGMENT_INDEX_BYTES: Definition(as_int, 10_485_760, between(4)),
    "segment.jitter.ms": Definition(as_long, 0, between(0)),
    "segment.ms": Definition(as_long, 7 * _DAY_MS, between(1)),
    "unclean.leader.election.enable": Definition(as_boolean, False),
}
