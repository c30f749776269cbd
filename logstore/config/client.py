"""Reading of a client's configuration by its definitions, under Kafka's dotted names or Python's with underscores.

Configurations of the Java clients about reaching brokers, or about waiting for their answers, are not defined here.
They are refused in one error, or ignored with one warning if the program asks for that.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ..errors import UsageError
from .definition import CONFIG_EXCEPTION, Definition, invalid, nearest, values_of

_OF_NETWORK = frozenset(
    (
        *("bootstrap.resolve.timeout.ms", "bootstrap.servers", "client.dns.lookup", "client.rack"),
        *("connections.max.idle.ms", "enable.metrics.push", "heartbeat.interval.ms", "metadata.cluster.check.enable"),
        *("metadata.max.age.ms", "metadata.max.idle.ms", "partitioner.rack.aware", "receive.buffer.bytes"),
        *("request.timeout.ms", "retries", "retry.backoff.max.ms", "retry.backoff.ms", "send.buffer.bytes"),
    )
)
_OF_NETWORK_PREFIXES = ("metadata.recovery.", "reconnect.backoff.", "sasl.", "security.", "socket.", "ssl.")
NAME_SIZE_MAX = 32_000  # bytes; a record's STRING has at most 32,767, and a member id is a client id and 37 more
_LOGGER = logging.getLogger("logstore")


def read_config(
    definitions: Mapping[str, Definition], values: Mapping[str, Any], client: str, *, ignores_network: bool = False
) -> tuple[dict[str, Any], frozenset[str]]:
    """Return the value of every definition, and the given names; a value of None counts as not given.

    Raises UsageError for an unknown name, a name given twice, an invalid value, and, unless it `ignores_network`, for a
    configuration that only makes sense with a network.
    """
    given: dict[str, Any] = {}
    of_network: list[str] = []
    for name, value in values.items():
        dotted = name.replace("_", ".")
        if dotted not in definitions:
            if dotted in _OF_NETWORK or dotted.startswith(_OF_NETWORK_PREFIXES):
                of_network.append(dotted)
                continue
            raise UsageError(
                f"Unknown {client} config name: {name}",
                java_class=CONFIG_EXCEPTION,
                advice=nearest(dotted, definitions),
            )
        if dotted in given:
            raise UsageError(f"{dotted} is given twice", java_class=CONFIG_EXCEPTION)
        if value is not None:
            given[dotted] = value
    _refuse_network(of_network, client, ignores_network)
    return values_of(definitions, given), frozenset(given)


def storable(name: str, value: str) -> None:
    """Refuse a name that records of the coordinators cannot hold, as a part of a member id either."""
    size = len(value.encode())
    if size > NAME_SIZE_MAX:
        raise invalid(name, f"{value[:20]}…", f"String must have at most {NAME_SIZE_MAX} bytes, not {size}")


def non_empty(name: str, value: str) -> None:
    """Refuse an empty text (`ConfigDef.NonEmptyString`), and as `storable`."""
    if not value:
        raise invalid(name, value, "String must be non-empty")
    storable(name, value)


def _refuse_network(of_network: list[str], client: str, ignores_network: bool) -> None:
    """Raise UsageError for configurations of a network, or only warn of them if the program asks for that."""
    if not of_network:
        return
    names = ", ".join(sorted(of_network))
    if not ignores_network:
        raise UsageError(
            f"A {client} in one process with its store has no network to configure: {names}",
            java_class=CONFIG_EXCEPTION,
            advice="leave them out, or say ignore_network_config=True to have them ignored",
        )
    _LOGGER.warning("A %s in one process with its store has no network and ignores %s", client, names)
