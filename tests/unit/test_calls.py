"""A call in the middle of another one of its thread is refused at its own level and above it."""

from __future__ import annotations

import threading

import pytest

from logstore.calls import (
    GROUPS,
    LOG,
    SENDING,
    SHORT,
    STORE,
    TRANSACTIONS,
    alone,
    alone_in_log,
    is_inside,
    require_outside,
)
from logstore.errors import IllegalStateError, ReentrantCallError


def test_calls_go_down() -> None:
    with alone(SENDING), alone(TRANSACTIONS), alone(GROUPS), alone_in_log(), alone(SHORT):
        assert is_inside(STORE)
    assert not is_inside(STORE)


@pytest.mark.parametrize("level", [STORE, SENDING, GROUPS, LOG])
def test_a_call_at_the_same_level_or_above_is_refused(level: int) -> None:
    with alone(LOG):
        with pytest.raises(ReentrantCallError, match="in the middle of a call of a log in the same thread"):
            alone(level)
        with pytest.raises(IllegalStateError, match="set a flag"):
            require_outside()
    with alone(level):
        pass


def test_a_log_is_refused_within_a_log_only() -> None:
    with alone(LOG), pytest.raises(ReentrantCallError):
        alone_in_log()
    with alone(SENDING):
        alone_in_log()


def test_nothing_stays_behind_an_exception() -> None:
    with pytest.raises(KeyboardInterrupt), alone(LOG):
        raise KeyboardInterrupt
    require_outside()


def test_threads_have_nothing_to_do_with_each_other() -> None:
    passed: list[int] = []

    def call() -> None:
        with alone(LOG):
            passed.append(LOG)

    with alone(LOG):
        thread = threading.Thread(target=call)
        thread.start()
        thread.join()
    assert passed == [LOG]
