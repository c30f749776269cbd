"""Configurations and partitions beside those of the Java clients."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from logstore.client.consumer.config import parse_consumer_config
from logstore.client.producer.config import parse_producer_config
from logstore.errors import UsageError
from tests.support.oracle import Oracle
from tests.support.sampling import case_count

pytestmark = pytest.mark.kafka

CASES = case_count("LOGSTORE_ORACLE_CASES", sample=150, whole=600)
SEED = 99
PARSERS = {"producer": parse_producer_config, "consumer": parse_consumer_config}
#: configurations by number or order of creation, or told in other words
OWN_WORDS = {"client.id", "partition.assignment.strategy"}
#: configurations that a producer's others depend on
TOGETHER = (
    *("acks", "retries", "max.in.flight.requests.per.connection", "enable.idempotence", "transactional.id"),
    *("delivery.timeout.ms", "linger.ms", "request.timeout.ms"),
)
CHOICES: dict[str, dict[str, list[str]]] = {
    "producer": {
        "acks": ["all", "-1", "0", "1", "2", "ALL", " all "],
        "retries": ["0", "1", "-1", "2147483647", "2147483648"],
        "max.in.flight.requests.per.connection": ["1", "5", "6", "0"],
        "enable.idempotence": ["true", "false", "True", "yes", " true ", " yes "],
        "transactional.id": ["t", "", " "],
        "transaction.timeout.ms": ["1", "-5", "x", " x "],
        "delivery.timeout.ms": ["0", "30004", "30005", "2147483647"],
        "linger.ms": ["0", "5", "100000", "9223372036854775807", "-1"],
        "request.timeout.ms": ["0", "2147483647", "-1"],
        "batch.size": ["0", "-1", "1e3", "2147483648"],
        "compression.type": ["zstd", "none", "lzo", "", "ZSTD"],
        "compression.gzip.level": ["-1", "1", "0", "9", "10", "-2"],
        "compression.lz4.level": ["1", "0", "17", "18"],
        "compression.zstd.level": ["-131072", "22", "23", "-131073", "0"],
        "buffer.memory": ["0", "-1", "9223372036854775807", "9223372036854775808"],
        "client.id": ["c", ""],
        "max.block.ms": ["0", "9223372036854775807", "-1"],
        "max.request.size": ["0", "2147483647", "-1", "2147483648"],
        "partitioner.ignore.keys": ["true", "false", "1"],
        "retry.backoff.max.ms": ["0", "50", "-1"],
        "retry.backoff.ms": ["0", "2000", "-1"],
    },
    "consumer": {
        "group.id": ["g"],
        "group.instance.id": ["i", ""],
        "enable.auto.commit": ["true", "false", "no"],
        "auto.offset.reset": ["earliest", "latest", "none", "Earliest", "newest", ""],
        "isolation.level": ["read_committed", "read_uncommitted", "READ_COMMITTED", "x"],
        "max.poll.records": ["1", "0"],
        "max.poll.interval.ms": ["0", "600000"],
        "auto.commit.interval.ms": ["-1", "1"],
        "fetch.max.bytes": ["-1", "7"],
        "client.id": ["c"],
    },
}


def _drawn(rng: random.Random) -> tuple[str, dict[str, str]]:
    client = rng.choice(["producer", "producer", "consumer"])
    names = rng.sample(sorted(CHOICES[client]), rng.randrange(5))
    return client, {name: rng.choice(CHOICES[client][name][: rng.choice([1, 2, 9])]) for name in names}


def _cases() -> list[dict[str, Any]]:
    """Every value alone, every two that idempotence and the time of delivery are about, and some by chance."""
    rng = random.Random(SEED)
    known = {client: sorted(parse({}).keys() - OWN_WORDS) for client, parse in PARSERS.items()}
    alone = [
        (client, {name: value}) for client in CHOICES for name in CHOICES[client] for value in CHOICES[client][name]
    ]
    drawn = [_drawn(rng) for _ in range(CASES)]
    all_values = [*alone, *(("producer", values) for values in _of_two(CHOICES["producer"])), *drawn]
    return [{"client": client, "values": values, "names": known[client]} for client, values in all_values]


def _of_two(choices: dict[str, list[str]]) -> Iterator[dict[str, str]]:
    for first, second in itertools.combinations(TOGETHER, 2):
        for values in itertools.product(choices[first][:4], choices[second][:4]):
            yield dict(zip((first, second), values, strict=True))


def _text(value: Any) -> str | None:
    if value is None:
        return None
    return str(value).lower() if isinstance(value, bool) else str(value)


def test_configurations_are_read_as_the_java_clients_read_them(oracle: Oracle, tmp_path: Path) -> None:
    cases = _cases()
    answers = oracle.answers("ClientConfigs", questions=cases, cwd=tmp_path)
    for case, answer in zip(cases, answers, strict=True):
        try:
            config = PARSERS[case["client"]](case["values"])
            ours = {name: _text(config[name]) for name in case["names"]}
        except UsageError as error:
            ours = {"error": f"{error.java_class}: {error.message}"}
        if "error" in ours and "error" in answer and ours != answer:
            # of several wrong values Java names the first one of its hash map
            assert len(case["values"]) > 1, (case, ours, answer)
            alone = [_refusal(case["client"], {name: value}) for name, value in case["values"].items()]
            assert answer["error"] in alone, (case, ours, answer)
            continue
        assert ours == answer, case["values"]


def test_every_configuration_of_a_producer_is_asked_for() -> None:
    assert CHOICES["producer"].keys() == parse_producer_config({}).keys()


def _refusal(client: str, values: dict[str, str]) -> str | None:
    try:
        PARSERS[client](values)
    except UsageError as error:
        return f"{error.java_class}: {error.message}"
    return None
