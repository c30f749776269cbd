"""A store whose clock and timers tests move."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from logstore.client.store import Store
from logstore.store.timers import Timers
from tests.support.clock import Clock
from tests.support.stores import FailingRenames, open_store


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that is set by hand; no thread runs timers, so `run_later` runs what is due."""
    monkeypatch.setattr(Timers, "start", lambda self: None)
    return Clock()


@pytest.fixture
def seam() -> FailingRenames:
    return FailingRenames()


@pytest.fixture
def store(tmp_path: Path, clock: Clock, seam: FailingRenames) -> Iterator[Store]:
    with open_store(tmp_path, now_ms=clock, seam=seam) as opened:
        yield opened
