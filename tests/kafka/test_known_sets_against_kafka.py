"""All that a Kafka's jars have is known, or left out for a reason: levels, features, configurations, errors.

`tests/kafka/left_out.txt` has the reasons. A name that a new Kafka adds, or one that is left out although it is known,
fails here by its name. Types, versions and fields of records are in `test_topics_against_kafka.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from logstore import errors
from logstore.client.consumer.config import parse_consumer_config
from logstore.client.producer.config import parse_producer_config
from logstore.config.broker import DURABLE_COMMITS, OPEN_FILES_MAX, SYNONYMS, parse_broker_config
from logstore.config.kafka_version import METADATA_VERSION, NEWEST, default_levels, level_name
from logstore.config.topic import KAFKA_VERSION, PRODUCER_ID_EXPIRATION_MS, known_names, parse_config
from logstore.errors import CoordinatorError, IllegalTransitionError, LogstoreError, Recovery, UsageError
from logstore.model import ControlRecordType
from tests.support.judges import judged
from tests.support.known_sets import facts, left_out, split_by
from tests.support.oracle import Oracle

pytestmark = [pytest.mark.kafka, pytest.mark.by_release]

#: known of a log or a store, but no configurations of Kafka's topics or brokers
OURS = {DURABLE_COMMITS, KAFKA_VERSION, OPEN_FILES_MAX}
#: Kafka's `TransactionManager` takes these as abortable, whatever their class says
ABORTABLE = {"ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID"}
PARSERS = {"producer": parse_producer_config, "consumer": parse_consumer_config}
#: defaults by the order of creation or by other values, or in other words
OWN_DEFAULTS = {"acks", "client.id", "enable.auto.commit", "partition.assignment.strategy"}


@pytest.fixture(scope="module")
def theirs(oracle: Oracle, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return facts(oracle, tmp_path_factory.mktemp("facts"))


def assert_all_known(scope: str, ours: set[str], theirs: set[str]) -> None:
    """Names are known, or left out, and never both; nothing is left out that Kafka does not have."""
    left, unsaid = split_by(left_out(scope, judged()), theirs)
    assert (theirs - ours - left, "of Kafka alone") == (set(), "of Kafka alone")
    assert (ours - theirs, "unknown to Kafka") == (set(), "unknown to Kafka")
    assert (left & ours, "known, and left out") == (set(), "known, and left out")
    assert (unsaid, "left out, but not in Kafka") == (set(), "left out, but not in Kafka")


def text(value: Any) -> str | None:
    """A value as Java writes it in a configuration."""
    if isinstance(value, list):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else None if value is None else str(value)


def test_levels_and_features_are_kafkas(theirs: dict[str, Any]) -> None:
    levels = {int(level): name for level, name in theirs["levels"].items()}
    assert {level: level_name(level) for level in levels} == levels
    of_features = {name: (0, highest) for name, (highest, *_) in theirs["features"].items()}
    assert judged().features == of_features | {METADATA_VERSION: (min(levels), max(levels))}
    for level in levels:
        expected = {name: sum(level >= since for since in of) for name, (_, *of) in theirs["features"].items()}
        known = {name: number for name, number in expected.items() if number}
        assert default_levels(level) == {METADATA_VERSION: level} | known


def test_nothing_is_known_beyond_the_newest_kafka(theirs: dict[str, Any]) -> None:
    beyond = max(map(int, theirs["levels"])) + 1
    assert level_name(beyond) == str(beyond) or judged() is not NEWEST


def test_configurations_of_topics_are_kafkas(theirs: dict[str, Any]) -> None:
    of_kafka = theirs["configs"]["topic"]
    ours = known_names(judged()) - OURS - {PRODUCER_ID_EXPIRATION_MS}
    assert ours == of_kafka.keys()
    defaults = parse_config({KAFKA_VERSION: judged()})
    assert {name: text(defaults[name]) for name in ours} == {name: row[1] for name, row in of_kafka.items()}


def test_configurations_of_brokers_are_kafkas(theirs: dict[str, Any]) -> None:
    of_kafka = theirs["configs"]["broker"]
    defaults = parse_broker_config({})
    names = defaults.keys() | {name for synonyms in SYNONYMS.values() for name, _ in synonyms}
    ours = {name for name in names - OURS if is_known_to_a_broker(name, of_kafka)}
    assert_all_known("broker", ours, set(of_kafka))
    for name in defaults.keys() - OURS:
        assert text(defaults[name]) == of_kafka[name][1], name


def is_known_to_a_broker(name: str, of_kafka: dict[str, Any]) -> bool:
    """Whether a store that does as the judge takes the configuration, with Kafka's own default if it has one."""
    default = of_kafka[name][1] if name in of_kafka else "1"
    try:
        parse_broker_config({KAFKA_VERSION: judged(), name: "1" if default is None else default})
    except UsageError as error:
        return "Unknown" not in str(error.message)
    return True


@pytest.mark.parametrize("client", PARSERS)
def test_configurations_of_clients_are_kafkas(client: str, theirs: dict[str, Any]) -> None:
    of_kafka, parse = theirs["configs"][client], PARSERS[client]
    defaults = parse({})
    ours = {name for name in of_kafka if name in defaults or is_of_a_network(parse, name)}
    assert defaults.keys() <= of_kafka.keys()
    assert_all_known(client, ours, set(of_kafka))
    for name in defaults.keys() - OWN_DEFAULTS:
        assert text(defaults[name]) == of_kafka[name][1], name


def is_of_a_network(parse: Any, name: str) -> bool:
    try:
        parse({name: "1"})
    except UsageError as error:
        return "Unknown" not in str(error.message)
    raise AssertionError(f"{name} is taken, but has no value")


@pytest.mark.parametrize("scope", ["group", "admin"])
def test_configurations_that_a_store_has_not_are_named(scope: str, theirs: dict[str, Any]) -> None:
    assert_all_known(scope, set(), set(theirs["configs"][scope]))


def test_control_records_are_kafkas(theirs: dict[str, Any]) -> None:
    assert {str(one.value): one.name for one in ControlRecordType} == theirs["control"]


def classes() -> list[type[LogstoreError]]:
    found = [getattr(errors, name) for name in errors.__all__]
    return [one for one in found if isinstance(one, type) and issubclass(one, LogstoreError)]


def test_errors_are_kafkas(theirs: dict[str, Any]) -> None:
    table = {name: (int(code), *row) for code, (name, *row) in theirs["errors"].items()}
    named = {error: str(error.kafka_name) for error in classes() if error.kafka_name is not None}
    assert_all_known("errors", set(named.values()), set(table))
    for error, name in named.items():
        code, java_class, message, kind = table[name]
        assert error.kafka_code == code
        if not issubclass(error, CoordinatorError) or error is IllegalTransitionError:
            continue
        assert (error.java_class, error.kafka_message) == (java_class, message), error
        if kind == "retriable":
            assert error.recovery is Recovery.RETRY, error
        elif kind == "recoverable":
            assert error.recovery is (Recovery.ABORT if name in ABORTABLE else Recovery.CLOSE), error


def test_every_coordinator_error_can_be_caught_as_a_builtin() -> None:
    coordinator_errors = [error for error in classes() if issubclass(error, CoordinatorError)]
    assert len(coordinator_errors) > 20
    for error in set(coordinator_errors) - {CoordinatorError}:
        assert issubclass(error, RuntimeError | ValueError | LookupError), error
        assert str(error()) == error.kafka_message
        assert error.__module__ == "logstore.errors"
