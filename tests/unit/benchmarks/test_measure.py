"""What the fixture `measured` runs, in which order, and what it keeps of it; by a clock that only sides move."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

from benchmarks.support import measure
from benchmarks.support.measure import Floor, Growth, Measured, PeerAbsentError, Plan, calls_of_a_round, digest, timed


class World:
    """A clock, sides that take their time by it, and who ran when."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        self.order: list[str] = []
        monkeypatch.setattr(measure, "perf_counter", lambda: self.now_s)
        monkeypatch.setattr(measure, "make_ready", lambda size: self.order.append(f"ready for {size}"))

    def side(self, name: str, *seconds: float) -> Callable[[], float]:
        """It takes these seconds, the last ones from then on."""
        left = list(seconds or (1.0,))

        def run() -> float:
            taken_s = left.pop(0) if len(left) > 1 else left[0]
            self.order.append(name)
            self.now_s += taken_s
            return taken_s

        return run

    def measured(self, **plan: Any) -> Measured:
        return Measured(FakeBenchmark(self), ExitStack(), Plan(**{"has_peers": True, **plan}))  # type: ignore[arg-type]


class FakeBenchmark:
    """pytest-benchmark's fixture as far as it is used; `rounds` are the seconds of each, told by the clock."""

    def __init__(self, world: World, *, enabled: bool = True) -> None:
        self.world, self.enabled, self.name = world, enabled, "test_it"
        self.extra_info: dict[str, Any] = {}
        self.rounds: list[float] = []
        self.iterations = 0

    def pedantic(
        self, ours: Callable[..., Any], args: Any, teardown: Callable[..., None], rounds: int, iterations: int
    ) -> Any:
        self.iterations = iterations
        for _ in range(rounds if self.enabled else 0):
            start_s = self.world.now_s
            for _ in range(iterations):
                result = ours(*args)
            self.rounds.append(self.world.now_s - start_s)
            teardown(*args)
        return ours(*args) if iterations > 1 or not self.enabled else result


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_sides_run_before_every_round_and_another_one_first(world: World) -> None:
    peers = {"one": world.side("one", 2.0), "two": world.side("two", 3.0)}
    measured = world.measured()
    measured(world.side("ours"), peers=peers, floor=Floor("nothing", world.side("floor", 0.5)), rounds=3)
    first, second, third = ["one", "two", "floor"], ["two", "floor", "one"], ["floor", "one", "two"]
    assert world.order == [*first, "ours", *second, "ours", *third, "ours"]
    info = measured.benchmark.extra_info
    assert info["peers"] == {"one": {"times_s": [2.0] * 3}, "two": {"times_s": [3.0] * 3}}
    assert info["floor"] == {"name": "nothing", "times_s": [0.5] * 3}
    assert info["hash"] == digest(1.0)
    assert measured.benchmark.rounds == [1.0] * 3  # of ours alone


def test_short_calls_are_counted_by_pytest_benchmark(world: World) -> None:
    measured = world.measured()
    peers = {"one": world.side("one", 0.1)}
    measured(world.side("ours", 0.001), peers=peers, floor="none")
    assert measured.benchmark.iterations == pytest.approx(100, abs=1)
    assert measured.benchmark.rounds == pytest.approx([0.1] * 5, rel=0.1)
    assert world.measured(has_peers=False)(world.side("ours", 0.001), floor="none") == 0.001


def test_a_disabled_benchmark_runs_ours_once_and_no_peer(world: World) -> None:
    measured = world.measured()
    measured.benchmark.enabled = False
    growth = Growth("segments", "append", 10)
    measured(world.side("ours"), peers={"one": world.side("one")}, floor="a test", growth=growth, written_size=5)
    assert world.order == ["ours"]
    assert measured.benchmark.extra_info["floor"] == {"none": "a test"}
    assert measured.benchmark.extra_info["growth"] == {"picture": "segments", "series": "append", "size": 10}


def test_a_peer_is_warm_when_it_is_no_faster_three_times(world: World) -> None:
    warming = world.side("one", 9.0, 5.0, 3.0, 3.1, 2.9, 3.0)  # from the third on it is not faster by a twentieth
    measured = world.measured(seconds=60.0)
    measured(world.side("ours"), peers={"one": warming}, floor="none", prepare=world.side("new"))
    assert world.order[:6] == ["one"] * 6
    assert world.order[6:] == ["one", "new", "ours"] * (len(measured.benchmark.rounds) + 1)
    assert set(measured.benchmark.extra_info["peers"]["one"]["times_s"]) == {3.0}


@pytest.mark.parametrize(
    ("calls_s", "call_count"),
    [
        ([0.03, 0.025, 0.001], 20),  # two calls load something, and those behind them do not
        ([0.03] * 5, 1),
        ([0.15, 0.15, 0.001], 1),  # nobody waits for a third one
    ],
)
def test_a_round_has_as_many_calls_as_fill_it_once_all_is_loaded(
    calls_s: list[float], call_count: int, world: World
) -> None:
    assert calls_of_a_round(world.side("ours", *calls_s)) == pytest.approx(call_count, abs=1)


def test_a_timed_side_is_one_call_and_a_floor_its_best_part(world: World) -> None:
    assert timed(world.side("ours", 0.5))() == pytest.approx(0.5)
    slow_at_first = [0.01] * 6 + [0.03, 0.02]  # of a round of two calls
    assert timed(world.side("ours", *slow_at_first), part_count=2)() == pytest.approx(0.02)


def test_an_absent_peer_is_asked_once_and_a_wrong_one_is_an_error(world: World) -> None:
    asked: list[int] = []

    def absent() -> float:
        asked.append(1)
        raise PeerAbsentError("java is not installed")

    def wrong() -> float:
        raise RuntimeError("counted 3 instead of 4")

    measured = world.measured()
    measured(world.side("ours"), peers={"Kafka": absent, "one": world.side("one")}, floor="none", rounds=4)
    assert len(asked) == 1
    assert measured.benchmark.extra_info["peers"]["Kafka"] == {"absent": "java is not installed"}
    assert len(measured.benchmark.extra_info["peers"]["one"]["times_s"]) == 4
    with pytest.raises(RuntimeError, match="3 instead of 4"):
        world.measured()(world.side("ours"), peers={"Kafka": wrong}, floor="none", rounds=1)


def test_a_digest_tells_results_apart() -> None:
    values = [b"a", "b", 1, 2, None, (1, 2), (12,), [b"a", b"b"], np.arange(3), np.arange(4)]
    assert len({digest(value) for value in values}) == len(values)
    assert digest(np.arange(8)[::2]) == digest(np.array([0, 2, 4, 6]))
    with pytest.raises(TypeError, match="object"):
        digest(object())
