"""Configuration of a consumer: Kafka's names, defaults and rules (`ConsumerConfig`).

Names may be written with underscores, as Python's clients do; see `client.config` for configurations of a network.

Members of a group run in the process of their coordinator, which sees each `poll`: no connection can be lost, and no
thread sends heartbeats. So only `max.poll.interval.ms` removes a member. For `session.timeout.ms` a closed static one
keeps its partitions; it is logged for a broker that takes the group over. A consumer that was dropped without `close`
leaves when another one polls.

>>> config = parse_consumer_config({"group_id": "audit", "isolation.level": "read_committed"})
>>> config["enable.auto.commit"], config["auto.offset.reset"], config["client.id"]
(True, 'latest', 'consumer-audit-1')
>>> parse_consumer_config({"enable.auto.commit": True})
Traceback (most recent call last):
logstore.errors.UsageError: enable.auto.commit cannot be set to true when default group id (null) is used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...config.client import non_empty, read_config, storable
from ...config.definition import (
    CONFIG_EXCEPTION,
    Definition,
    as_boolean,
    as_int,
    as_list,
    as_string,
    between,
    one_of,
    value_of,
)
from ...errors import InvalidGroupIdError, UsageError
from ...model import FetchIsolation
from ..arguments import LONG_MAX
from .assignors import ASSIGNORS

ConsumerConfig = dict[str, Any]

_INVALID_CONFIGURATION = "org.apache.kafka.common.errors.InvalidConfigurationException"


_BY_DURATION = re.compile(  # `Duration.parse`
    r"by_duration:(?i:([-+]?)P(?=.)(?:([-+]?\d{1,18})D)?"
    r"(?:T(?=.)(?:([-+]?\d{1,18})H)?(?:([-+]?\d{1,18})M)?(?:([-+]?\d{1,18})(?:[.,](\d{0,9}))?S)?)?)",
    re.ASCII,
)


def reset_duration_ms(value: str) -> int | None:
    """Return the duration of a value of `auto.offset.reset` (KIP-1106), rounded down; None if it is no `by_duration`.

    >>> reset_duration_ms("by_duration:P1DT0.5S"), reset_duration_ms("earliest")
    (86400500, None)
    """
    match = _BY_DURATION.fullmatch(value)
    if match is None:
        return None
    sign, days, hours, minutes, seconds, fraction = match.groups(default="0")
    whole_s = ((int(days) * 24 + int(hours)) * 60 + int(minutes)) * 60 + int(seconds)
    part_ms = int(fraction.ljust(9, "0")) // 1_000_000
    total_ms = whole_s * 1000 + (-part_ms if seconds.startswith("-") else part_ms)
    if sign == "-":
        total_ms = -total_ms
    return total_ms if 0 <= total_ms <= LONG_MAX else None


def _offset_reset(name: str, value: str) -> None:
    if value not in ("earliest", "latest", "none") and reset_duration_ms(value) is None:
        raise UsageError(
            f"Invalid value {value} for configuration {name}: Invalid value `{value}` for configuration {name}. "
            "The value must be either 'earliest', 'latest', 'none' or of the format 'by_duration:<PnDTnHnMn.nS.>'.",
            java_class=CONFIG_EXCEPTION,
        )


def _assignors(name: str, values: list[str]) -> None:
    if not values or not set(values) <= ASSIGNORS.keys():
        raise UsageError(
            f"Invalid value for configuration {name}",
            java_class=CONFIG_EXCEPTION,
            expected=f"some of {', '.join(ASSIGNORS)}",
            found=", ".join(values) or "nothing",
        )


_DEFINITIONS = {
    "auto.commit.interval.ms": Definition(as_int, 5000, between(0)),
    "auto.offset.reset": Definition(as_string, "latest", _offset_reset),
    "check.crcs": Definition(as_boolean, True),
    "client.id": Definition(as_string, ""),
    "default.api.timeout.ms": Definition(as_int, 60_000, between(0)),
    "enable.auto.commit": Definition(as_boolean, True),
    "exclude.internal.topics": Definition(as_boolean, True),
    "fetch.max.bytes": Definition(as_int, 52_428_800, between(0)),
    "fetch.max.wait.ms": Definition(as_int, 500, between(0)),
    "fetch.min.bytes": Definition(as_int, 1, between(0)),
    "group.id": Definition(as_string, None, storable),
    "group.instance.id": Definition(as_string, None, non_empty),
    "isolation.level": Definition(as_string, "read_uncommitted", one_of("read_committed", "read_uncommitted")),
    "max.partition.fetch.bytes": Definition(as_int, 1_048_576, between(0)),
    "max.poll.interval.ms": Definition(as_int, 300_000, between(1)),
    "max.poll.records": Definition(as_int, 500, between(1)),
    "partition.assignment.strategy": Definition(as_list, ["range", "cooperative-sticky"], _assignors),
    "session.timeout.ms": Definition(as_int, 45_000),
}


def isolation_of(isolation_level: str) -> FetchIsolation:
    """Return an `isolation.level`; raises UsageError for another text."""
    return FetchIsolation(value_of("isolation.level", _DEFINITIONS["isolation.level"], isolation_level))


def records_limit(max_records: int) -> int:
    """Return a limit of the records of one poll; raises UsageError as for `max.poll.records`."""
    limit: int = value_of("max.poll.records", _DEFINITIONS["max.poll.records"], max_records)
    return limit


def parse_consumer_config(
    values: Mapping[str, Any], *, client_number: int = 1, ignores_network: bool = False
) -> ConsumerConfig:
    """Return every configuration's value: the given ones, Kafka's defaults, and what follows from them.

    `client_number` goes into the `client.id` of a consumer without one. A value of None counts as not given.
    `partition.assignment.strategy` lists assignors by name, where Kafka lists classes. Raises UsageError as
    `read_config`, and in Kafka's words for values that exclude each other, InvalidGroupIdError for an empty `group.id`.
    """
    config, given = read_config(_DEFINITIONS, values, "consumer", ignores_network=ignores_network)
    if config["group.id"] == "":
        raise InvalidGroupIdError("The configured group.id should not be an empty string or whitespace.")
    if not config["client.id"]:
        config["client.id"] = f"consumer-{config['group.id']}-{config['group.instance.id'] or client_number}"
    storable("client.id", config["client.id"])
    if config["group.id"] is None:
        if "enable.auto.commit" in given and config["enable.auto.commit"]:
            raise UsageError(
                "enable.auto.commit cannot be set to true when default group id (null) is used.",
                java_class=_INVALID_CONFIGURATION,
            )
        config["enable.auto.commit"] = False
    return config
