"""Consumers that are silent for as long as the test says."""

from __future__ import annotations

import pytest

from tests.support.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def now_ms(clock: Clock) -> Clock:
    """The clock of `store`."""
    return clock
