"""The page of the configurations: every name with its default, its values, and how it differs from Kafka."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from logstore.client.consumer import config as consumer
from logstore.client.producer import config as producer
from logstore.config import broker as broker
from logstore.config import client as client
from logstore.config import topic as topic
from logstore.config.definition import Definition

from .markdown import table

_NOTHING = "kept for a broker; does nothing here: one node, no replicas"
_TIERED = "kept for a broker; does nothing here: no tiered storage"
_PASSING = "only for what passes by itself, as a coordinator that loads; a full disk fails records at once"

_ASSIGNORS = ", ".join(f"`{name}`" for name in consumer.ASSIGNORS)

#: by table, from name to how it differs; every other configuration does what it does in Kafka
DIFFERENCES: dict[str, dict[str, str]] = {
    "topic": {
        "flush.messages": "as in Kafka; a store has no replicas, so syncs matter more here",
        "flush.ms": "as in Kafka; a store has no replicas, so syncs matter more here",
        "follower.replication.throttled.replicas": _NOTHING,
        "leader.replication.throttled.replicas": _NOTHING,
        "local.retention.bytes": _TIERED,
        "local.retention.ms": _TIERED,
        "logstore.kafka.version": "**not Kafka's**: whose logs it cleans and closes as; no topic can have it",
        "min.insync.replicas": _NOTHING,
        "producer.id.expiration.ms": "the broker's; given to `logstore recover --config`, no topic can have it",
        "remote.log.copy.disable": _TIERED,
        "remote.log.delete.on.disable": _TIERED,
        "remote.storage.enable": "`true` is refused, as by a broker without tiered storage",
        "unclean.leader.election.enable": _NOTHING,
    },
    "broker": {
        "log.cleaner.dedupe.buffer.size": "of the one cleaning that runs at a time; 24 bytes a key, as in Kafka",
        "log.cleaner.enable": "as in Kafka; a cleaning that fails leaves the log writable, and is in `store.failures`",
        "logstore.durable.commits": "**not Kafka's**: a commit is on the disk when it is answered",
        "logstore.open.files.max": "**not Kafka's**: idle files that stay open; 0: half of `ulimit -n`, of all stores",
        "num.recovery.threads.per.data.dir": "logs that are opened at a time after a crash",
    },
    "producer": {
        "acks": "a future is done when its record is in the log, whatever it says; `0` and `1` turn idempotence off",
        "batch.size": "of `send`; `send_columns` writes batches of its own size",
        "buffer.memory": "only what `send` keeps waiting takes of it; no record may be larger",
        "client.id": "names the thread that lingers",
        "delivery.timeout.ms": _PASSING,
        "max.in.flight.requests.per.connection": "nothing is in flight; above 5 it is refused with idempotence",
        "request.timeout.ms": "with `linger.ms` the least that `delivery.timeout.ms` may be; nothing else",
        "retries": _PASSING,
        "retry.backoff.max.ms": _PASSING,
        "retry.backoff.ms": _PASSING,
    },
    "consumer": {
        "auto.offset.reset": "`by_duration:…` begins at the end if no record is so young, where Kafka waits for one",
        "fetch.max.wait.ms": "a poll that waits is woken by the append that it waits for",
        "max.poll.interval.ms": "alone says when a member is out: there are no heartbeats beside `poll`",
        "partition.assignment.strategy": f"names in place of classes: {_ASSIGNORS}",
        "session.timeout.ms": "of a closed static member, and for a broker; else `max.poll.interval.ms` counts",
    },
}
#: configurations of the Java clients that are unknown here, and what to use
_UNKNOWN = [
    ("`key.serializer`, `value.serializer`, `key.deserializer`, `value.deserializer`", "arguments that take functions"),
    ("`partitioner.class`, `partitioner.adaptive…`, `partitioner.availability…`", "`send(partition=…)`"),
    ("`interceptor.classes`, `config.providers`", "functions of your own around the calls"),
    ("`metric.reporters`, `metrics.…`", "`consumer.lag`, `store.failures`"),
    ("`group.protocol`, `group.remote.assignor`, `share.…`", "the classic protocol; no share groups"),
    ("`allow.auto.create.topics`", "`store.create_topic`; nothing makes a topic by itself"),
    ("`transaction.two.phase.commit.enable`", "nothing: KIP-939 is not offered"),
]

_HEAD = """\
# Configurations, and differences from Kafka

Written by `python -m docs.generators` from the tables that check them; do not edit.

Names, defaults, types and checks are those of Kafka 4.3.1, and a value that does not do is refused in Kafka's words. A
value is text, as on Kafka's command lines, or a Python value of the right type. What the last column leaves empty does
what it does in Kafka.

"""

_PAGE = """\
## Topics

Given to `store.create_topic(config=…)`, `store.alter_config` and `logstore recover --config`.

{topic}
## Stores

Given to `logstore.open(config=…)`: the part of a broker's configuration that needs no network.

{broker}
### Defaults of topics

A store takes the broker's names for the defaults of its topics too. Where there are several names, the first that is
set counts.

{synonyms}
## Producers

Given to `store.producer(…)`, with underscores or as `**{{"linger.ms": 5}}`.

{producer}
## Consumers

Given to `store.consumer(…)`, with underscores or as `**{{"group.id": "audit"}}`.

{consumer}
## What is not here

Configurations that say how to reach brokers are refused together, in one error, or ignored with one warning if the
client is made with `ignore_network_config=True`, so that a program can keep the configuration that it has for a broker:

{network}
A consumer has no `request.timeout.ms`, `retries` and `retry.backoff.*` either. Others are unknown:

{unknown}"""


def page() -> str:
    """Return the page."""
    return _HEAD + _PAGE.format(
        topic=_configurations("topic", topic._DEFINITIONS),
        broker=_configurations("broker", broker._DEFINITIONS),
        synonyms=_synonyms(),
        producer=_configurations("producer", producer._DEFINITIONS),
        consumer=_configurations("consumer", consumer._DEFINITIONS),
        network=_network(),
        unknown=table(["configuration of a Java client", "in its place"], _UNKNOWN),
    )


def _configurations(kind: str, definitions: Mapping[str, Definition]) -> str:
    differences = DIFFERENCES[kind]
    assert differences.keys() <= definitions.keys(), differences.keys() - definitions.keys()
    return table(
        ["name", "default", "values", "difference from Kafka"],
        [
            (f"`{name}`", f"`{_text(one.default)}`", _values(one), differences.get(name, ""))
            for name, one in sorted(definitions.items())
        ],
    )


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ",".join(value) or "(empty)"
    return "(none)" if value is None else "(empty)" if value == "" else str(value)


def _values(definition: Definition) -> str:
    kind = definition.parse.__name__.removeprefix("as_")
    bounds = _bounds(definition.check)
    return f"{kind}, {bounds}" if bounds else kind


def _bounds(check: Callable[[str, Any], None]) -> str:
    """Return the values that a check of `config_definition` lets through; the checks there are closures."""
    inside = inspect.getclosurevars(check).nonlocals
    if "check_one" in inside:
        return f"some of {_bounds(inside['check_one']).removeprefix('one of ')}"
    if "choices" in inside:
        return "one of " + ", ".join(f"`{choice}`" for choice in inside["choices"])
    if "least" in inside:
        least, most = inside["least"], inside["most"]
        also = f", or {inside['default']}" if "default" in inside else ""
        return f"≥ {least}" if most is None else f"{least} to {most}{also}"
    named = {
        "non_empty": "not empty, at most 32,000 bytes",
        "storable": "at most 32,000 bytes",
        "_offset_reset": "one of `earliest`, `latest`, `none`, `by_duration:PnDTnHnMn.nS`",
        "_assignors": "some of the assignors' names",
        "<lambda>": "",
    }
    return named[check.__name__]


def _synonyms() -> str:
    factors = {1: "", 60_000: " (minutes)", 3_600_000: " (hours)"}
    return table(
        ["configuration of a topic", "of the store"],
        [
            (f"`{name}`", ", ".join(f"`{one}`{factors[factor]}" for one, factor in names))
            for name, names in sorted(broker.SYNONYMS.items())
        ],
    )


def _network() -> str:
    names = [*client._OF_NETWORK, *(f"{prefix}*" for prefix in client._OF_NETWORK_PREFIXES)]
    names = [name for name in sorted(names) if name not in producer._DEFINITIONS and name not in consumer._DEFINITIONS]
    return ", ".join(f"`{name}`" for name in names) + ".\n"
