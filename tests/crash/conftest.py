"""What tests of crashes share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.crash.interrupt_runs import Runs


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    """The process in which calls are made and interrupted, and which may hang."""
    made = Runs()
    yield made
    made.close()
