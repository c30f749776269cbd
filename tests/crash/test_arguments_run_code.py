"""An argument that runs Python of its own, and appends, sends, rolls or closes then, is refused or harmless."""

from __future__ import annotations

import pytest

from tests.crash.interrupt_runs import Runs
from tests.crash.reentrant_calls import REENTRANT
from tests.support.sampling import sampled


@pytest.mark.parametrize("name", sampled(REENTRANT, list(REENTRANT)[::2], pytest.mark.slow))
def test_code_that_an_argument_runs_is_refused_or_harmless(name: str, runs: Runs) -> None:
    assert runs.try_out(name) == []
