"""The live oracle as a fixture; see `skip_without_judge` for where it cannot run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import pytest

from tests.kafka.judge import Asked
from tests.support.judges import skip_without_judge
from tests.support.oracle import Oracle, OracleUnavailableError


@pytest.fixture(scope="session")
def oracle() -> Oracle:
    """The real Kafka's jars, ready to be asked."""
    try:
        return Oracle()
    except OracleUnavailableError as unavailable:
        skip_without_judge(f"no live oracle: {unavailable}")


@pytest.fixture(scope="session")
def asked(oracle: Oracle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Asked]]:
    """`asked(CLASS, WORD …)` is a JVM with one of our classes, the same for all tests of a process."""
    with ExitStack() as stack:
        yield cache(lambda *words: stack.enter_context(Asked(oracle, tmp_path_factory.mktemp("asked"), *words)))
