"""The store that tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import logstore
from logstore import clock
from logstore.client.store import Store
from tests.support.stores import FEW_PARTITIONS


@pytest.fixture
def now_ms() -> Callable[[], int]:
    """The clock of `store`."""
    return clock.now_ms


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path, now_ms: Callable[[], int]) -> Iterator[Store]:
    """A store with the topics that the test module names in `TOPICS`, each with its number of partitions."""
    with logstore.open(tmp_path / "data", config=FEW_PARTITIONS, now_ms=now_ms) as opened:
        for topic, partition_count in request.module.TOPICS.items():
            opened.create_topic(topic, partition_count)
        yield opened
