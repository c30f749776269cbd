"""Results of the reader and its helpers come in order; errors in their place; nobody is left running."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest

from logstore import threads
from logstore.view import parallel_scan as module
from logstore.view.parallel_scan import in_order


@pytest.fixture(params=[1, 2, 8], autouse=True)
def processor_count(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    count: int = request.param
    monkeypatch.setattr(module, "processor_count", lambda: count)
    return count


def counter(count: int) -> Callable[[], int | None]:
    numbers = iter(range(count))
    return lambda: next(numbers, None)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 50])
def test_results_come_in_order_though_the_first_takes_longest(count: int, processor_count: int) -> None:
    another_is_done = threading.Event()

    def work(number: int) -> int:
        if number == 0 and count > 1 and processor_count > 1:
            assert another_is_done.wait(60)
        if number == 1:
            another_is_done.set()
        return number * number

    assert list(in_order(counter(count), work)) == [number * number for number in range(count)]


def test_things_are_made_one_at_a_time() -> None:
    making = threading.Lock()
    numbers = iter(range(200))

    def make() -> int | None:
        assert making.acquire(blocking=False)
        number = next(numbers, None)
        making.release()
        return number

    assert list(in_order(make, str)) == [str(number) for number in range(200)]


@pytest.mark.parametrize("bad", [0, 1, 7])
def test_an_error_of_the_work_comes_in_the_place_of_its_result(bad: int) -> None:
    def work(number: int) -> int:
        if number == bad:
            raise ValueError(f"number {number}")
        return number

    found: list[int] = []
    with pytest.raises(ValueError, match=f"number {bad}"):
        found.extend(in_order(counter(20), work))
    assert found == list(range(bad))


def test_an_error_of_the_making_comes_behind_what_was_made() -> None:
    numbers = iter(range(5))

    def make() -> int:
        number = next(numbers, None)
        if number is None:
            raise KeyError("no more")
        return number

    found: list[int] = []
    with pytest.raises(KeyError):
        found.extend(in_order(make, abs))
    assert found == [0, 1, 2, 3, 4]


def test_work_is_not_done_further_ahead_than_there_is_room() -> None:
    worked: list[int] = []
    results = in_order(counter(1000), worked.append)
    next(results)
    results.close()
    assert len(worked) <= module.AHEAD_COUNT + module.HELPER_COUNT_MAX


def test_all_processors_work_but_no_more_than_the_helpers_and_the_reader(processor_count: int) -> None:
    thread_count = min(processor_count, module.HELPER_COUNT_MAX + 1)
    together = threading.Barrier(thread_count)
    workers: set[int] = set()

    def work(number: int) -> None:
        workers.add(threading.get_ident())
        if number < thread_count:
            together.wait(60)

    assert len(list(in_order(counter(60), work))) == 60
    assert len(workers) == thread_count
    assert threading.get_ident() in workers


def test_one_thing_is_made_and_worked_on_before_the_next_without_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "processor_count", lambda: 1)
    calls: list[str] = []
    numbers = counter(3)

    def make() -> int | None:
        calls.append("make")
        return numbers()

    for _ in in_order(make, lambda number: calls.append(f"work {number}")):
        calls.append("read")
    assert calls == ["make", "work 0", "read", "make", "work 1", "read", "make", "work 2", "read", "make"]


def test_an_interrupt_of_the_reader_waits_for_no_result() -> None:
    """It comes in the reader's thread, and so at once, whatever it interrupts."""
    reader, found = threading.get_ident(), list[int]()

    def work(number: int) -> int:
        if number >= 4 and threading.get_ident() == reader:
            raise KeyboardInterrupt
        return number

    with pytest.raises(KeyboardInterrupt):
        found.extend(in_order(counter(100_000), work))
    assert found == list(range(len(found)))


@pytest.mark.parametrize("room", [0, 1])
def test_helpers_that_cannot_start_are_done_without(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    start, started = threads.start_new_thread, list[int]()

    def fail_later(*work: Any) -> None:
        if len(started) == room:
            raise RuntimeError("can't start new thread")
        started.append(start(*work))

    monkeypatch.setattr(threads, "start_new_thread", fail_later)
    assert list(in_order(counter(30), abs)) == list(range(30))


@pytest.fixture
def helpers(monkeypatch: pytest.MonkeyPatch) -> list[threading.Event]:
    """For each helper that was started, what its end sets."""
    start, ends = threads.start_new_thread, list[threading.Event]()

    def noted(work: Callable[[], object], _: tuple[()]) -> int:
        ends.append(threading.Event())

        def run(end: threading.Event = ends[-1]) -> None:
            work()
            end.set()

        return start(run, ())

    monkeypatch.setattr(threads, "start_new_thread", noted)
    return ends


def test_threads_end_with_the_reader(processor_count: int, helpers: list[threading.Event]) -> None:
    results = in_order(counter(1000), abs)
    assert next(results) == 0
    results.close()
    assert bool(helpers) == (processor_count > 1)
    assert all(end.wait(60) for end in helpers)


def test_a_reader_that_is_forgotten_is_ended_wherever_the_garbage_collection_comes(
    helpers: list[threading.Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the start of a thread too, which holds locks that the end of a `threading.Thread` waits for."""
    lock = getattr(threading, "_shutdown_locks_lock", threading.Lock())
    monkeypatch.setattr(threading.Thread, "join", lambda *_: pytest.fail("a thread is waited for"))
    results = in_order(counter(1000), abs)
    next(results)
    cycle = [results]
    cycle.append(cycle)
    del results, cycle
    with lock:
        gc.collect()
    assert all(end.wait(60) for end in helpers)


def test_a_helper_may_be_the_one_that_ends_the_reader(helpers: list[threading.Event]) -> None:
    """By a garbage collection in its own work, for whose end nobody waits then."""
    reader, is_forgotten = threading.get_ident(), threading.Event()

    def work(number: int) -> int:
        if number > 0 and threading.get_ident() != reader:
            assert is_forgotten.wait(60)
            gc.collect()
        return number

    results = in_order(counter(1000), work)
    next(results)
    cycle: list[object] = [results]
    cycle.append(cycle)
    del results, cycle
    is_forgotten.set()
    assert all(end.wait(60) for end in helpers)
