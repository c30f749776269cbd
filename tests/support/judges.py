"""Which Kafka judges the test that runs, and what a test does where its judge, the real Kafka or Spark, cannot run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

import pytest

from logstore.config.kafka_version import OF_NEW_STORES, KafkaVersion
from logstore.config.topic import KAFKA_VERSION, LogConfig, parse_config
from logstore.errors import LogstoreError

_judging = [OF_NEW_STORES]


@contextmanager
def judging(kafka: KafkaVersion) -> Iterator[None]:
    """A `with` block in which our logs do as this Kafka, and speak as it."""
    _judging.append(kafka)
    try:
        yield
    finally:
        _judging.pop()


def judged() -> KafkaVersion:
    """The version that judges now; without a live judge, the one whose answers are recorded."""
    return _judging[-1]


def judged_config(values: Mapping[str, Any]) -> LogConfig:
    """The configuration of a log that does as the judge."""
    return parse_config({**values, KAFKA_VERSION: judged()})


def told(error: LogstoreError) -> str:
    """An error as Java prints it, in the words of the judge."""
    return str(error.java_class) if error.message is None else f"{error.java_class}: {judged().words(error.message)}"


def skip_without_judge(reason: str) -> NoReturn:
    """Skip the test, or fail it where `LOGSTORE_REQUIRE_ORACLE=1` says that the judges have to be there, as in CI."""
    if os.environ.get("LOGSTORE_REQUIRE_ORACLE") == "1":
        pytest.fail(f"LOGSTORE_REQUIRE_ORACLE=1, but {reason}", pytrace=False)
    pytest.skip(reason)
