"""What tests of clients share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import logstore
from logstore.client.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store with the topics `t`, of three partitions, and `one`."""
    with logstore.open(tmp_path / "data") as opened:
        opened.create_topic("t", 3)
        opened.create_topic("one", 1)
        yield opened
