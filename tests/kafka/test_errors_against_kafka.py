"""Our errors beside Kafka's `Errors`: code, name, class, message, and what a producer does about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore import errors
from logstore.errors import CoordinatorError, IllegalTransitionError, LogstoreError, Recovery
from tests.support.oracle import Oracle

pytestmark = pytest.mark.kafka

#: Kafka's `TransactionManager` takes these as abortable, whatever their class says
ABORTABLE = {"ILLEGAL_GENERATION", "UNKNOWN_MEMBER_ID", "FENCED_INSTANCE_ID"}


def _classes() -> list[type[LogstoreError]]:
    found = [getattr(errors, name) for name in errors.__all__]
    return [one for one in found if isinstance(one, type) and issubclass(one, LogstoreError)]


def test_errors_are_kafkas(oracle: Oracle, tmp_path: Path) -> None:
    rows = [line.split("\t") for line in oracle.run("ErrorTable", cwd=tmp_path).splitlines()]
    table = {name: (int(code), java_class, kind, message) for code, name, java_class, kind, message in rows}
    named = [one for one in _classes() if one.kafka_name is not None]
    assert len(named) > 25
    for one in named:
        code, java_class, kind, message = table[str(one.kafka_name)]
        assert one.kafka_code == code
        if not issubclass(one, CoordinatorError) or one is IllegalTransitionError:
            continue
        assert (one.java_class, one.kafka_message) == (java_class, message), one
        if kind == "R":
            assert one.recovery is Recovery.RETRY, one
        elif kind == "A":
            assert one.recovery is (Recovery.ABORT if one.kafka_name in ABORTABLE else Recovery.CLOSE), one


def test_every_coordinator_error_can_be_caught_as_a_builtin() -> None:
    coordinator_errors = [
        one for one in _classes() if issubclass(one, CoordinatorError) and one is not CoordinatorError
    ]
    assert len(coordinator_errors) > 20
    for one in coordinator_errors:
        assert issubclass(one, RuntimeError | ValueError | LookupError), one
        assert str(one()) == one.kafka_message
        assert one.__module__ == "logstore.errors"
