"""How pytest-benchmark runs here, and what the benchmarks are given: what measures, and the real Kafka."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.peers.kafka import LocalBroker, WarmKafka
from benchmarks.support.data import DEFAULT_SCALE, scale
from benchmarks.support.measure import Measured, Plan, has_peers
from benchmarks.support.report import machine

MEASURING = ("only", "enable", "save", "autosave", "compare", "json", "histogram")  # options that ask for figures


def is_measuring(config: pytest.Config) -> bool:
    """Return whether an option of pytest-benchmark asks for figures; else benchmarks are tests that run once."""
    return any(config.getoption(f"benchmark_{name}") for name in MEASURING)


def pytest_configure(config: pytest.Config) -> None:
    """Set the scale, and pytest-benchmark's options before it looks at them."""
    if is_measuring(config):
        os.environ.setdefault("LOGSTORE_BENCH_SCALE", str(DEFAULT_SCALE))
    else:
        config.option.benchmark_disable = True
    if config.getoption("benchmark_compare") and config.getoption("benchmark_group_by") == "group":
        config.option.benchmark_group_by = "fullname"  # a benchmark beside itself of before


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the doctests of `support`, which have no figures."""
    is_support = collection_path == Path(__file__).parent / "support"
    return True if is_support and is_measuring(config) else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give each file a table of pytest-benchmark; as tests, benchmarks are for `make test-slow`."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            if not is_measuring(config):
                item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.benchmark(group=item.path.stem.removeprefix("bench_")))


def pytest_benchmark_update_json(output_json: dict[str, Any]) -> None:
    """Add what `support/report.py` says of a run."""
    output_json["logstore"] = {"machine": machine(), "load": LOAD, "scale": scale(), "has_peers": has_peers()}


LOAD = os.getloadavg()[0]  # at the start


@pytest.fixture
def measured(benchmark: BenchmarkFixture, request: pytest.FixtureRequest) -> Iterator[Measured]:
    """Yield `measured(ours, title=…, peers=…, floor=…)`, see `benchmarks.support.measure`."""
    seconds = float(request.config.getoption("benchmark_max_time"))
    plan = Plan(seconds, int(request.config.getoption("benchmark_min_rounds")), has_peers())
    with ExitStack() as files:
        yield Measured(benchmark, files, plan)


@pytest.fixture(scope="session")
def kafka() -> Iterator[WarmKafka]:
    """Yield Kafka's own log in a JVM, started when a benchmark first asks it."""
    kafka = WarmKafka()
    yield kafka
    kafka.close()


@pytest.fixture(scope="session")
def session_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    """Yield the broker of `broker`."""
    broker = LocalBroker(tmp_path_factory.mktemp("broker"))
    yield broker
    broker.close()


@pytest.fixture(scope="module")
def broker(session_broker: LocalBroker) -> Iterator[LocalBroker]:
    """Yield a real broker, started when a benchmark first asks it; it runs again when those of a module are done."""
    yield session_broker
    session_broker.go_on()
