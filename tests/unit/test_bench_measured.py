"""What the fixture `measured` runs, in which order, and what it keeps of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import measured as module
from benchmarks.digest import digest
from benchmarks.measured import Floor, Growth, Measured, PeerAbsentError, calls_of_a_round, timed


class FakeBenchmark:
    """pytest-benchmark's fixture as far as it is used: rounds of setup and target."""

    def __init__(self, *, enabled: bool) -> None:
        self.enabled = enabled
        self.extra_info: dict[str, Any] = {}
        self.rounds = 0

    def pedantic(self, target: Callable[[], Any], setup: Callable[[], None], rounds: int) -> Any:
        self.rounds = rounds if self.enabled else 1
        for _ in range(self.rounds):
            setup()
            result = target()
        return result


class Recorded:
    """Which side ran when."""

    def __init__(self) -> None:
        self.order: list[str] = []

    def side(self, name: str, seconds: float = 1.0) -> Callable[[], float]:
        def run() -> float:
            self.order.append(name)
            return seconds

        return run

    def ours(self) -> bytes:
        self.order.append("ours")
        return b"result"


def measured_of(benchmark: FakeBenchmark) -> Measured:
    return Measured(benchmark, ExitStack())  # type: ignore[arg-type]


@pytest.mark.parametrize("enabled", [True, False])
def test_files_that_are_read_are_held_to_the_end(enabled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = Recorded()

    @contextmanager
    def held(paths: Iterable[Path]) -> Iterator[None]:
        recorded.order.append(f"held {[path.name for path in paths]}")
        yield
        recorded.order.append("released")

    monkeypatch.setattr(module, "held", held)
    with ExitStack() as files:
        benchmark = FakeBenchmark(enabled=enabled)
        Measured(benchmark, files)(recorded.ours, title="t", floor="none", rounds=1, reads=[Path("log")])  # type: ignore[arg-type]
    assert recorded.order == (["held ['log']", "ours", "released"] if enabled else ["ours"])


def test_memory_is_made_ready_before_each_side_that_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    recorded, benchmark = Recorded(), FakeBenchmark(enabled=True)
    monkeypatch.setattr(os, "sync", lambda: recorded.order.append("sync"))
    monkeypatch.setattr(module, "make_ready", lambda count, size: recorded.order.append(f"ready for {count * size}"))
    peers, floor = {"one": recorded.side("one")}, Floor("nothing", recorded.side("floor"))
    measured_of(benchmark)(recorded.ours, title="t", peers=peers, floor=floor, rounds=2, written_size=5)
    sides = ("one", "floor", "ours", "floor", "one", "ours")
    assert recorded.order == ["sync", *(word for side in sides for word in ("ready for 5", side))]


def test_memory_is_made_ready_for_the_calls_that_tell_how_many_a_round_has(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that wait for memory would be counted as slow, and a round would be one of them."""
    recorded, benchmark = Recorded(), FakeBenchmark(enabled=True)
    monkeypatch.setattr(os, "sync", lambda: None)
    monkeypatch.setattr(module, "make_ready", lambda count, size: recorded.order.append(f"ready for {count * size}"))
    measured_of(benchmark)(recorded.ours, title="t", peers={}, floor="none", written_size=5)
    assert recorded.order[:4] == ["ready for 5", "ours", "ready for 5", "ours"]
    made_ready = [word for word in recorded.order if word != "ours"]
    for number, word in enumerate(recorded.order):
        if word in made_ready:
            size = int(word.removeprefix("ready for "))
            assert set(recorded.order[number + 1 : number + 1 + size // 5]) == {"ours"}
    sizes = [int(word.removeprefix("ready for ")) for word in made_ready]
    assert recorded.order.count("ours") == sum(sizes) // 5  # none without


@pytest.mark.parametrize(
    ("peers", "written_size", "least_s"),
    [({}, 0, 0.02), ({"one": lambda: 0.1}, 5, 0.02), ({"one": lambda: 0.1}, 0, 0.1)],
)
def test_a_round_beside_a_peer_lasts_longer_if_nothing_is_written(
    peers: dict[str, Callable[[], float]], written_size: int, least_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []
    monkeypatch.setattr(module, "calls_of_a_round", lambda *_, written_size, least_s: asked.append(least_s) or 1)
    monkeypatch.setattr(module, "SECONDS", 0.01)
    measured_of(FakeBenchmark(enabled=True))(abs, 1, title="t", peers=peers, floor="none", written_size=written_size)
    assert asked == [least_s]


@pytest.mark.parametrize(
    ("calls_s", "call_count"),
    [
        ([0.03, 0.025, 0.001], 20),  # two calls load something, and those behind them do not
        ([0.03] * 5, 1),
        ([0.15, 0.15, 0.001], 1),  # nobody waits for a third one
    ],
)
def test_a_round_has_as_many_calls_as_fill_it_once_all_is_loaded(
    calls_s: list[float], call_count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, left_s = 0.0, iter(calls_s)

    def call() -> None:
        nonlocal now_s
        now_s += next(left_s, calls_s[-1])

    monkeypatch.setattr(time, "perf_counter", lambda: now_s)
    assert calls_of_a_round(call) == pytest.approx(call_count, abs=1)


def test_sides_run_in_turn_in_every_round_and_another_one_first() -> None:
    recorded, benchmark = Recorded(), FakeBenchmark(enabled=True)
    peers = {"one": recorded.side("one", 2.0), "two": recorded.side("two", 3.0)}
    floor = Floor("nothing", recorded.side("floor", 0.5))
    measured_of(benchmark)(recorded.ours, title="t", peers=peers, floor=floor, rounds=3)
    first, second, third = ["one", "two", "floor"], ["two", "floor", "one"], ["floor", "one", "two"]
    assert recorded.order == [*first, "ours", *second, "ours", *third, "ours"]
    info = benchmark.extra_info
    assert info["peers"] == {"one": {"times_s": [2.0] * 3}, "two": {"times_s": [3.0] * 3}}
    assert info["floor"] == {"name": "nothing", "times_s": [0.5] * 3}
    assert info["hash"] == digest(b"result")


def test_the_rounds_to_warm_up_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.measured.SECONDS", 60.0)
    recorded, benchmark = Recorded(), FakeBenchmark(enabled=True)
    times_s = [9.0, 5.0, 3.0, 3.1, 2.9, 3.0]  # from the third on it is not faster by a twentieth
    slow = recorded.side("one")

    def warming() -> float:
        slow()
        return times_s.pop(0) if times_s else 3.0

    measured_of(benchmark)(recorded.ours, title="t", peers={"one": warming}, floor="none", prepare=recorded.side("new"))
    assert recorded.order[:6] == ["one"] * 6
    assert recorded.order[6:] == ["one", "new", "ours"] * (benchmark.rounds + 1)
    assert benchmark.extra_info["peers"]["one"]["times_s"] == [3.0] * benchmark.rounds
    assert benchmark.rounds >= 3


def test_a_peer_that_takes_long_is_asked_once_to_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.measured.SECONDS", 0.01)
    recorded, benchmark = Recorded(), FakeBenchmark(enabled=True)
    slow = recorded.side("one")

    def long() -> float:
        time.sleep(0.021)
        return slow()

    measured_of(benchmark)(recorded.ours, title="t", peers={"one": long}, floor="none", prepare=recorded.side("new"))
    assert recorded.order == ["one", *["one", "new", "ours"] * 3]


def test_short_calls_are_run_many_at_a_time() -> None:
    recorded, benchmark = Recorded(), FakeBenchmark(enabled=True)
    measured_of(benchmark)(recorded.ours, title="t", floor="none")
    calls = benchmark.extra_info["calls"]
    assert calls > 100
    assert recorded.order.count("ours") > calls * benchmark.rounds  # the first ones tell how many a round takes


def test_what_is_prepared_anew_is_called_once_a_round() -> None:
    recorded, benchmark = Recorded(), FakeBenchmark(enabled=True)
    measured_of(benchmark)(recorded.ours, title="t", floor="none", prepare=lambda: None)
    assert benchmark.extra_info["calls"] == 1


def test_a_disabled_benchmark_runs_ours_once_and_no_peer() -> None:
    recorded, benchmark = Recorded(), FakeBenchmark(enabled=False)
    growth = Growth("segments", "append", 10)
    peers = {"one": recorded.side("one")}
    result = measured_of(benchmark)(recorded.ours, title="t", peers=peers, floor="a test", growth=growth)
    assert result == b"result"
    assert recorded.order == ["ours"]
    assert benchmark.extra_info["floor"] == {"none": "a test"}
    assert benchmark.extra_info["growth"] == {"picture": "segments", "series": "append", "size": 10}


def test_an_absent_peer_is_asked_once_and_its_reason_kept() -> None:
    asked = []

    def absent() -> float:
        asked.append(1)
        raise PeerAbsentError("java is not installed")

    benchmark, recorded = FakeBenchmark(enabled=True), Recorded()
    peers = {"Kafka": absent, "one": recorded.side("one")}
    measured_of(benchmark)(recorded.ours, title="t", peers=peers, floor="none", rounds=4)
    assert len(asked) == 1
    assert benchmark.extra_info["peers"]["Kafka"] == {"absent": "java is not installed"}
    assert len(benchmark.extra_info["peers"]["one"]["times_s"]) == 4


def test_a_peer_that_fails_is_not_taken_for_absent() -> None:
    def broken() -> float:
        raise RuntimeError("counted 3 instead of 4")

    with pytest.raises(RuntimeError, match="3 instead of 4"):
        measured_of(FakeBenchmark(enabled=True))(lambda: 1, title="t", peers={"Kafka": broken}, floor="none", rounds=1)


def test_a_digest_tells_results_apart() -> None:
    values = [b"a", "b", 1, 2, None, (1, 2), (12,), [b"a", b"b"], np.arange(3), np.arange(4)]
    assert len({digest(value) for value in values}) == len(values)
    assert digest(np.arange(8)[::2]) == digest(np.array([0, 2, 4, 6]))
    with pytest.raises(TypeError, match="object"):
        digest(object())


def test_a_timed_side_gives_the_seconds_of_one_call() -> None:
    assert 0.009 < timed(time.sleep, 0.01)() < 1
    assert 0 < timed(int)() < 0.001


def test_who_measures_says_what_the_floor_is() -> None:
    with pytest.raises(TypeError, match="floor"):
        measured_of(FakeBenchmark(enabled=False))(lambda: 1, title="t")  # type: ignore[call-arg]
