"""Work on threads: told as it is done, given up without a rest, and done without threads too."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import logstore
from logstore import threads
from logstore.cached_property import cached_property
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


class _Lazy:
    other: _Lazy | None = None

    @cached_property
    def number(self) -> int:
        if self.other is not None:
            thread = threading.Thread(target=getattr, args=[self.other, "number"], daemon=True)
            thread.start()
            thread.join(30)
            assert not thread.is_alive()
            assert self.other.number == 7
        return 7


def test_a_property_is_computed_while_another_thread_computes_that_of_another_object() -> None:
    """A kernel's loading may end a reader, by the garbage collection, whose helper loads another one."""
    lazy = _Lazy()
    lazy.other = _Lazy()
    assert lazy.number == vars(lazy)["number"] == 7


_A_HELPER_WORKS = """
import os, sys, threading, time
from logstore.view import parallel_scan

def work(number):
    if number > 0 and os.getpid() == process:
        if threading.get_ident() != reader:
            is_begun.set()
            time.sleep(600)
        is_begun.wait()
    return number

parallel_scan.processor_count = lambda: 2
process, reader, is_begun = os.getpid(), threading.get_ident(), threading.Event()
numbers = iter(range(20))
results = parallel_scan.in_order(lambda: next(numbers, None), work)
next(results)
is_begun.wait()
sys.excepthook = lambda *_: None
"""
_IN_A_FORK = "child = os.fork()\nif child:\n  os._exit(os.waitpid(child, 0)[1])\n"


@pytest.mark.parametrize(
    ("ending", "code"),
    [
        ("def read(results): raise ValueError\nread(globals().pop('results'))", 1),  # kept by `sys.last_value`
        (f"{_IN_A_FORK}results.close()", 0),
        (f"{_IN_A_FORK}assert list(results) == list(range(1, 20))", 0),
    ],
)
def test_a_thread_that_runs_no_more_is_not_waited_for(ending: str, code: int) -> None:
    ended = subprocess.run([sys.executable, "-c", _A_HELPER_WORKS + ending], timeout=60, check=False)
    assert ended.returncode == code
