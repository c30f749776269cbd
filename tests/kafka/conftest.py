"""The live oracle as a fixture, once for each release; see `skip_without_judge` for where it cannot run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache

import pytest

from tests.kafka.judge import Asked
from tests.support.class_archive import with_class_archive
from tests.support.judges import judging, skip_without_judge
from tests.support.oracle import KNOWN, RELEASES, Oracle, OracleUnavailableError
from tests.support.sampling import IS_LONG

IS_WHOLE = IS_LONG or "LOGSTORE_KAFKA_VERSIONS" in os.environ


def _release(item: pytest.Item) -> str | None:
    """The release that judges the test, None if no oracle does."""
    call = getattr(item, "callspec", None)
    return None if call is None else call.params.get("oracle")


def _is_of_sample(item: pytest.Item) -> bool:
    """Whether a sample asks this release: the oldest one, for what Kafka changed each one, or the newest alone."""
    release = _release(item)
    if item.get_closest_marker("by_newest") is not None:
        return release == RELEASES[-1]
    return release in (None, RELEASES[0]) or item.get_closest_marker("by_release") is not None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what only the whole asks each release; `by_release(is_slow=True)` leaves others to `make test-slow`."""
    for item in items:
        mark = item.get_closest_marker("by_release")
        if mark is not None and mark.kwargs.get("is_slow") and _release(item) != RELEASES[0]:
            item.add_marker(pytest.mark.slow)
    if IS_WHOLE:
        return
    others = [item for item in items if not _is_of_sample(item)]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in set(others)]


@pytest.fixture(scope="session", params=RELEASES)
def oracle(request: pytest.FixtureRequest) -> Oracle:
    """The real Kafka's jars, ready to be asked."""
    try:
        return with_class_archive(Oracle(request.param))
    except OracleUnavailableError as unavailable:
        skip_without_judge(f"no live oracle: {unavailable}")


@pytest.fixture(autouse=True)
def judged_by(request: pytest.FixtureRequest) -> Iterator[None]:
    """Our logs do as the release that judges the test."""
    release = _release(request.node)
    with judging(KNOWN[release]) if release in KNOWN else ExitStack():
        yield


@pytest.fixture(scope="session")
def asked(oracle: Oracle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Asked]]:
    """`asked(CLASS, WORD …)` is a JVM with one of our classes, the same for all tests of a process."""
    with ExitStack() as stack:
        yield cache(lambda *words: stack.enter_context(Asked(oracle, tmp_path_factory.mktemp("asked"), *words)))
