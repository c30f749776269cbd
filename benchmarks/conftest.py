"""Fixtures of the benchmarks: what measures, the real Kafka in a JVM that stays warm, and a real broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.measured import Measured
from benchmarks.peers.local_broker import LocalBroker
from benchmarks.peers.warm_kafka import WarmKafka


@pytest.fixture
def measured(benchmark: BenchmarkFixture) -> Iterator[Measured]:
    """`measured(ours, title=…, peers=…, floor=…)`, see `benchmarks.measured`."""
    with ExitStack() as files:
        yield Measured(benchmark, files)


@pytest.fixture(scope="session")
def kafka() -> Iterator[WarmKafka]:
    """Kafka's own log in a JVM, started when a benchmark first asks it."""
    kafka = WarmKafka()
    yield kafka
    kafka.close()


@pytest.fixture(scope="session")
def session_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """The one of `broker`."""
    broker = LocalBroker(tmp_path_factory.mktemp("broker"))
    yield broker
    broker.close()


@pytest.fixture(scope="module")
def broker(session_broker: LocalBroker) -> Iterator[LocalBroker]:
    """A real broker, started when a benchmark first asks it; it runs again when those of a module are done."""
    yield session_broker
    session_broker.go_on()
