"""A signal handler that calls what it has interrupted is refused or served, and nothing hangs or is lost."""

from __future__ import annotations

import pytest

from tests.crash.handled_calls import HANDLED
from tests.crash.interrupt_runs import Runs
from tests.support.sampling import sampled


@pytest.mark.parametrize("name", sampled(HANDLED, list(HANDLED)[::2], pytest.mark.slow))
def test_a_handler_is_refused_or_served(name: str, runs: Runs) -> None:
    assert runs.try_out(name) == []
