"""Configuration of one log: Kafka's own names, defaults and checks (`LogConfig`, `ConfigDef`).

Topic configurations, and beside them the broker's `producer.id.expiration.ms`, which a log needs as well. A value is
text, as on Kafka's command lines, or a Python value of the right type.

>>> config = parse_config({"segment.bytes": "1048576", "index.interval.bytes": 0})
>>> config["segment.bytes"], config["index.interval.bytes"], config["segment.index.bytes"]
(1048576, 0, 10485760)
>>> parse_config({"segment.bytes": "14"})
Traceback (most recent call last):
logstore.errors.UsageError: Invalid value 14 for configuration segment.bytes: Value must be at least 1048576
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..errors import UsageError
from ..layout.java_integer import parse_int, parse_long

CONFIG_EXCEPTION = "org.apache.kafka.common.config.ConfigException"
INVALID_CONFIGURATION = "org.apache.kafka.common.errors.InvalidConfigurationException"

INDEX_INTERVAL_BYTES = "index.interval.bytes"
INTERNAL_SEGMENT_BYTES = "internal.segment.bytes"
PRODUCER_ID_EXPIRATION_MS = "producer.id.expiration.ms"
SEGMENT_BYTES = "segment.bytes"
SEGMENT_INDEX_BYTES = "segment.index.bytes"

LogConfig = dict[str, Any]

_LONG_MAX = 2**63 - 1
_DAY_MS = 86_400_000


class _Definition(NamedTuple):
    """One configuration: how text becomes a value, the value without one, and the check of both."""

    parse: Callable[[str, str], Any]
    default: Any
    check: Callable[[str, Any], None] = lambda name, value: None


def parse_config(values: Mapping[str, Any]) -> LogConfig:
    """Every configuration's value: those given, and Kafka's defaults.

    Raises:
        UsageError: an unknown name, text that is no value of the type, a value out of range; in Kafka's words.
    """
    for name in values:
        if name not in _DEFINITIONS:
            raise UsageError(f"Unknown topic config name: {name}", java_class=INVALID_CONFIGURATION)
    config = {
        name: _value(name, definition, values[name]) if name in values else definition.default
        for name, definition in _DEFINITIONS.items()
    }
    _check_lags(config)
    return config


def segment_size_max(config: LogConfig) -> int:
    """Bytes of a full segment: the internal setting, which has no least value, before the public one."""
    internal = config[INTERNAL_SEGMENT_BYTES]
    size: int = config[SEGMENT_BYTES] if internal is None else internal
    return size


def _value(name: str, definition: _Definition, given: Any) -> Any:
    text = str(given).lower() if isinstance(given, bool) else str(given)
    value = definition.parse(name, text.strip())
    definition.check(name, value)
    return value


def _check_lags(config: LogConfig) -> None:
    least, most = config["min.compaction.lag.ms"], config["max.compaction.lag.ms"]
    if least > most:
        raise UsageError(
            f"conflict topic config setting min.compaction.lag.ms ({least}) > max.compaction.lag.ms ({most})",
            java_class=INVALID_CONFIGURATION,
        )


def _int(name: str, text: str) -> int:
    return _number(name, text, parse_int(text), "INT")


def _long(name: str, text: str) -> int:
    return _number(name, text, parse_long(text), "LONG")


def _number(name: str, text: str, value: int | None, kind: str) -> int:
    if value is None:
        raise _invalid(name, text, f"Not a number of type {kind}")
    return value


def _double(name: str, text: str) -> float:
    try:
        return float(text.replace("_", "?"))  # Java takes no underscores
    except ValueError:
        raise _invalid(name, text, "Not a number of type DOUBLE") from None


def _boolean(name: str, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise _invalid(name, text, "Expected value to be either true or false")
    return text.lower() == "true"


def _string(name: str, text: str) -> str:
    return text


def _list(name: str, text: str) -> list[str]:
    return list(dict.fromkeys(part.strip() for part in text.split(","))) if text else []


def _invalid(name: str, value: object, problem: str) -> UsageError:
    return UsageError(f"Invalid value {value} for configuration {name}: {problem}", java_class=CONFIG_EXCEPTION)


def _between(least: float | None, most: float | None = None) -> Callable[[str, Any], None]:
    """The check of `ConfigDef.Range`."""

    def check(name: str, value: float) -> None:
        if least is not None and value < least:
            raise _invalid(name, value, f"Value must be at least {least}")
        if most is not None and value > most:
            raise _invalid(name, value, f"Value must be no more than {most}")

    return check


def _gzip_level(name: str, value: int) -> None:
    if value != -1 and not 1 <= value <= 9:
        raise _invalid(name, value, "Value must be between 1 and 9 or equal to -1")


def _one_of(*choices: str) -> Callable[[str, Any], None]:
    """The check of `ConfigDef.ValidString`."""

    def check(name: str, value: str) -> None:
        if value not in choices:
            raise _invalid(name, value, f"String must be one of: {', '.join(choices)}")

    return check


def _all_of(*choices: str) -> Callable[[str, Any], None]:
    """The check of `ConfigDef.ValidList`."""
    check_one = _one_of(*choices)

    def check(name: str, values: list[str]) -> None:
        for value in values:
            if not value:
                raise UsageError(f"Configuration '{name}' values must not be empty.", java_class=CONFIG_EXCEPTION)
            check_one(name, value)

    return check


_DEFINITIONS = {
    "cleanup.policy": _Definition(_list, ["delete"], _all_of("compact", "delete")),
    "compression.gzip.level": _Definition(_int, -1, _gzip_level),
    "compression.lz4.level": _Definition(_int, 9, _between(1, 17)),
    "compression.type": _Definition(
        _string, "producer", _one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
    ),
    "compression.zstd.level": _Definition(_int, 3, _between(-131072, 22)),
    "delete.retention.ms": _Definition(_long, _DAY_MS, _between(0)),
    "file.delete.delay.ms": _Definition(_long, 60_000, _between(0)),
    "flush.messages": _Definition(_long, _LONG_MAX, _between(1)),
    "flush.ms": _Definition(_long, _LONG_MAX, _between(0)),
    "follower.replication.throttled.replicas": _Definition(_list, []),
    INDEX_INTERVAL_BYTES: _Definition(_int, 4096, _between(0)),
    INTERNAL_SEGMENT_BYTES: _Definition(_int, None),
    "leader.replication.throttled.replicas": _Definition(_list, []),
    "local.retention.bytes": _Definition(_long, -2, _between(-2)),
    "local.retention.ms": _Definition(_long, -2, _between(-2)),
    "max.compaction.lag.ms": _Definition(_long, _LONG_MAX, _between(1)),
    "max.message.bytes": _Definition(_int, 1_048_588, _between(0)),
    "message.timestamp.after.max.ms": _Definition(_long, 3_600_000, _between(0)),
    "message.timestamp.before.max.ms": _Definition(_long, _LONG_MAX, _between(0)),
    "message.timestamp.type": _Definition(_string, "CreateTime", _one_of("CreateTime", "LogAppendTime")),
    "min.cleanable.dirty.ratio": _Definition(_double, 0.5, _between(0, 1)),
    "min.compaction.lag.ms": _Definition(_long, 0, _between(0)),
    "min.insync.replicas": _Definition(_int, 1, _between(1)),
    "preallocate": _Definition(_boolean, False),
    PRODUCER_ID_EXPIRATION_MS: _Definition(_int, _DAY_MS, _between(1)),
    "remote.log.copy.disable": _Definition(_boolean, False),
    "remote.log.delete.on.disable": _Definition(_boolean, False),
    "remote.storage.enable": _Definition(_boolean, False),
    "retention.bytes": _Definition(_long, -1),
    "retention.ms": _Definition(_long, 7 * _DAY_MS, _between(-1)),
    SEGMENT_BYTES: _Definition(_int, 1 << 30, _between(1 << 20)),
    SEGMENT_INDEX_BYTES: _Definition(_int, 10_485_760, _between(4)),
    "segment.jitter.ms": _Definition(_long, 0, _between(0)),
    "segment.ms": _Definition(_long, 7 * _DAY_MS, _between(1)),
    "unclean.leader.election.enable": _Definition(_boolean, False),
}
