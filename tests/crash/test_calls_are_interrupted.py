"""What comes in the middle of a call, an exception, a signal or other calls, loses an answer at most.

The call was interrupted in a store or log that was in use. Afterwards the same call and others work or say why not,
closing does not hang, and after opening again everything acknowledged is there, once, where it was said to be; an audit
finds nothing. Here each call is interrupted before every `LOGSTORE_INTERRUPT_STEP`th line, and by a few
signals; `make prove-interrupts` takes every line and 100,000 signals.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random

import pytest

from tests.crash.handled_calls import HANDLED
from tests.crash.interrupt_runs import Runs
from tests.crash.interrupted_calls import CALLS
from tests.crash.reentrant_calls import REENTRANT
from tests.support.sampling import case_count, sampled, seed_of

STEP = case_count("LOGSTORE_INTERRUPT_STEP", sample=3240, whole=90)
START = int(os.environ.get("LOGSTORE_INTERRUPT_SEED") or Random(seed_of("INTERRUPT")).randrange(STEP))
SHORT = ("log append", "send at once", "send cold", "send with")
SIGNAL_COUNT = case_count("LOGSTORE_INTERRUPT_SIGNALS", sample=100, whole=1000)
OTHER_CALLS = {**REENTRANT, **HANDLED}


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    """The process in which calls are made and interrupted, and which may hang."""
    made = Runs()
    yield made
    made.close()


@pytest.mark.parametrize("name", sampled(CALLS, list(CALLS)[::2], pytest.mark.slow))
def test_an_interrupt_before_any_line_loses_an_answer_at_most(name: str, runs: Runs) -> None:
    step = min(STEP, 10) if name == "send" or name.startswith(SHORT) else STEP
    outcome = runs.run(name, step=step, start=START % step)
    assert outcome.count > 0
    assert outcome.wrong == {}, f"LOGSTORE_INTERRUPT_SEED={START} LOGSTORE_INTERRUPT_STEP={step}"


@pytest.mark.parametrize("name", sampled(CALLS, list(CALLS)[::9]))
def test_a_signal_at_any_moment_loses_an_answer_at_most(name: str, runs: Runs) -> None:
    outcome = runs.run(name, signals=max(SIGNAL_COUNT // len(CALLS), 1), start=START)
    assert outcome.wrong == {}, f"LOGSTORE_INTERRUPT_SEED={START}"


@pytest.mark.parametrize("name", sampled(OTHER_CALLS, [*list(REENTRANT)[::2], *list(HANDLED)[::2]], pytest.mark.slow))
def test_calls_that_a_handler_or_an_argument_makes_are_refused_or_harmless(name: str, runs: Runs) -> None:
    assert runs.try_out(name) == []
