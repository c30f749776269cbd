"""Work on threads: told as it is done, given up without a rest, and done without threads too."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

import logstore
from logstore import threads
from logstore.threads import each_done


@pytest.mark.parametrize("can_start", [True, False])
def test_each_is_told_with_its_error(can_start: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise RuntimeError("can't start new thread")

    if not can_start:
        monkeypatch.setattr(threads, "start_new_thread", refused)
    found = {item: repr(error) for item, error in each_done(lambda item: 1 // item, [2, 0, 1], 2)}
    assert found == {2: "None", 1: "None", 0: repr(ZeroDivisionError("integer division or modulo by zero"))}


def test_nobody_works_and_nothing_is_begun_when_it_was_given_up() -> None:
    begun: list[int] = []
    ended: list[int] = []

    def work(item: int) -> None:
        begun.append(item)
        time.sleep(0.02)
        ended.append(item)

    told = each_done(work, range(200), 2)
    next(told)
    told.close()
    at_the_end = sorted(ended)
    assert sorted(begun) == at_the_end
    assert len(at_the_end) < 200
    time.sleep(0.1)
    assert sorted(begun) == sorted(ended) == at_the_end


def test_no_thread_is_started_where_a_signal_interrupts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starters, start = list[int](), threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda self: (starters.append(threading.get_ident()), start(self)))
    with logstore.open(tmp_path) as store:
        store.create_topic("orders")
        store.producer(linger_ms=1).send("orders", value=b"a").result(30)
    assert len(starters) == 2
    assert threading.get_ident() not in starters
