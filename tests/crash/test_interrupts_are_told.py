"""The tracer raises where it says, and what is wrong afterwards is told: the proof is itself tried on faults."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.client.consumer.polling import OneThread
from tests.crash.acknowledged import Acknowledged, Span, Transaction
from tests.crash.interrupt_runs import interrupted
from tests.crash.interrupted_calls import Interrupted
from tests.crash.interrupted_log import LogWorld
from tests.support.interrupts import Alarm, LineTracer

PLACE = ("t", 0)


class ForgetfulWorld(LogWorld):
    """Tells a record that the log never got."""

    def append(self, count: int) -> None:
        super().append(count)
        self.acknowledged.tell(self.values(1), PLACE, self.log.log_end_offset)


def use() -> None:
    """A call with lines of product code, before and behind a `with`."""
    with OneThread():
        pass


def test_each_line_is_interrupted_once_and_an_exit_is_not_kept_from() -> None:
    dry = LineTracer()
    dry.run(use)
    places = []
    for number in range(dry.line_count):
        tracer = LineTracer(number)
        tracer.run(use)
        assert tracer.was_interrupted
        places.append(tracer.place)
    assert len(set(places)) == len(places) >= 6
    beyond = LineTracer(dry.line_count)
    beyond.run(use)
    assert not beyond.was_interrupted


def test_a_signal_interrupts_product_code_only() -> None:
    log_is_busy = OneThread()

    def busy() -> None:
        while True:
            with log_is_busy:
                pass

    alarm = Alarm(0.01)
    alarm.run(busy)
    assert "OneThread" in alarm.place
    alarm = Alarm(1e-6)
    alarm.run(lambda: sum(range(100_000)))
    assert not alarm.was_interrupted


def test_a_loss_is_told(tmp_path: Path) -> None:
    what = Interrupted(ForgetfulWorld, lambda world: world.append(1))
    assert any("was acknowledged" in problem for problem in interrupted(what, tmp_path / "0", [LineTracer(5)]).problems)


@pytest.mark.parametrize(
    ("records", "spans", "expected"),
    [
        ([(0, b"a"), (1, b"b"), (2, b"c")], [Span(0, 2)], ""),
        ([(0, b"a")], [Span(0, 0)], ""),
        ([(1, b"a")], [Span(1, 1)], "acknowledged at"),
        ([], [], "acknowledged at"),
        ([(0, b"a"), (1, b"a")], [Span(0, 1)], "2 times"),
        ([(0, b"a"), (1, b"b")], [Span(0, 1)], "1 of the 2 records"),
        ([(0, b"a"), (1, b"z")], [Span(0, 1)], "nobody wrote"),
        ([(0, b"a")], [Span(0, 0), Span(2, 2)], "where 1 is to come"),
        ([(0, b"a")], [Span(0, 0), Span(0, 0)], "where 1 is to come"),
    ],
)
def test_differences_are_told(records: list[tuple[int, bytes]], spans: list[Span], expected: str) -> None:
    acknowledged = Acknowledged(tried=[(b"a",), (b"b", b"c")])
    acknowledged.tell([b"a"], PLACE, 0)
    problems = acknowledged.problems({PLACE: records}, {PLACE: spans})
    assert any(expected in problem for problem in problems) if expected else problems == []


@pytest.mark.parametrize(
    ("outcome", "visible", "expected"),
    [
        ("committed", [b"a", b"b"], ""),
        ("committed", [b"a"], "1 of 2"),
        ("aborted", [b"a"], "is visible"),
        ("aborted", [], ""),
        ("", [b"a"], "is torn"),
        ("", [b"a", b"b"], ""),
    ],
)
def test_transactions_that_are_not_whole_are_told(outcome: str, visible: list[bytes], expected: str) -> None:
    told = Acknowledged(transactions=[Transaction([b"a", b"b"], outcome)]).unsettled(visible)
    assert expected in told[0] if expected else told == []
