"""The fixture `measured`: an operation of ours as a benchmark of pytest-benchmark, beside its peers and its floor.

    def test_scan(measured, segment):
        measured(scan, segment, title="scan", size=segment.size, floor=reading(segment))

pytest-benchmark runs and times our calls, so its table, its comparisons and its JSON show the time of one call. Before
each of its rounds the peers and the floor are asked, another one first every time, so that all see the machine as it is
at that moment; a ratio is one of times of the same round. What ours returns is hashed: no work can be left out, and two
commits that answer differently are told apart. All this is in the `extra_info` of the JSON.

Peers and floors are asked only when LOGSTORE_BENCH_PEERS is `on`, as `make bench` has it. While pytest-benchmark is
disabled, as in `make test`, ours runs once and nothing else does.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, TypeVar

import numpy as np
import xxhash
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.support.page_cache import held, make_ready

Result = TypeVar("Result")
Side = Callable[[], float]  # runs what is compared once or more, and returns the seconds of once

ROUND_COUNT_MAX = 30
ROUND_SECONDS_MIN = 0.02  # below it the clock, the loop and cold caches would be seen
# Beside a peer, which takes as long: two processors of which one was idle are slower for that long. What writes would
# fill the disk meanwhile.
READING_ROUND_SECONDS_MIN = 0.1
STEADY_COUNT = 3  # rounds in which a peer has not become faster
IMPROVEMENT_MIN = 0.05  # of a peer that is warming up, from one round to the next
CALL_COUNT_MAX = 20_000
TRY_COUNT_MAX, TRIES_SECONDS = 5, 0.2  # of a single call, before it counts as one that lasts for a round


class PeerAbsentError(Exception):
    """A peer cannot run here; the message says why."""


@dataclass(frozen=True)
class Floor:
    """The bare work: no way of doing it can be faster."""

    name: str
    side: Side


@dataclass(frozen=True)
class Growth:
    """A point of a picture: `size` counts what the `picture` is named after; `series` is its line."""

    picture: str
    series: str
    size: int


@dataclass(frozen=True)
class Plan:
    """How long to measure: pytest-benchmark's `--benchmark-max-time` and `--benchmark-min-rounds`, and beside whom."""

    seconds: float = 1.0
    round_count_min: int = 5
    has_peers: bool = False


def has_peers() -> bool:
    """Return whether peers are asked for."""
    return os.environ.get("LOGSTORE_BENCH_PEERS") == "on"


class Sides:
    """The peers and the floor of one benchmark, and their times."""

    def __init__(self, peers: Mapping[str, Side], floor: Floor | str, plan: Plan) -> None:
        self.plan = plan
        self.peers = dict(peers) if plan.has_peers else {}
        self.floor = floor
        self.times: dict[str, list[float]] = {name: [] for name in self.peers}
        self.floor_times: list[float] = []
        self.reasons: dict[str, str] = {}
        self.round_count = 0
        self.slowest_s = 0.0  # that a peer took when it was asked, with all around it

    def run(self, make_ready: Callable[[], object] = lambda: None) -> None:
        """Run one round; a peer that cannot run is not asked again."""
        sides: list[str | None] = list(self.peers)
        if self.plan.has_peers and isinstance(self.floor, Floor):
            sides.append(None)
        first = self.round_count % len(sides) if sides else 0  # none is always behind what another one leaves
        for name in sides[first:] + sides[:first]:
            make_ready()
            if name is not None:
                self._ask(name)
            elif isinstance(self.floor, Floor):
                self.floor_times.append(self.floor.side())
        self.round_count += 1

    def _ask(self, name: str) -> None:
        start_s = perf_counter()
        try:
            self.times[name].append(self.peers[name]())
        except PeerAbsentError as absent:
            self.reasons[name] = str(absent)
            del self.peers[name]
        self.slowest_s = max(self.slowest_s, perf_counter() - start_s)

    def warm_up(self, make_ready: Callable[[], object]) -> None:
        """Run rounds that do not count: one, and of each peer as many as make it faster, as a JVM that compiles."""
        self.run(make_ready)
        for name in self.peers:
            self._settle(name, perf_counter() + self.plan.seconds - self.slowest_s)
        self.forget()

    def forget(self) -> None:
        """Drop the rounds so far."""
        for times in [*self.times.values(), self.floor_times]:
            times.clear()
        self.round_count = 0

    def _settle(self, name: str, end_s: float) -> None:
        times, steady_count = self.times[name], 0
        while steady_count < STEADY_COUNT and perf_counter() < end_s:
            times.append(self.peers[name]())
            is_faster = times[-1] < min(times[:-1]) * (1 - IMPROVEMENT_MIN)
            steady_count = 0 if is_faster else steady_count + 1

    def info(self) -> dict[str, Any]:
        """Return what the JSON file has of them."""
        peers: dict[str, Any] = {name: {"times_s": self.times[name]} for name in self.peers}
        peers |= {name: {"absent": reason} for name, reason in self.reasons.items()}
        if isinstance(self.floor, str):
            return {"peers": peers, "floor": {"none": self.floor}}
        return {"peers": peers, "floor": {"name": self.floor.name, "times_s": self.floor_times}}


class Measured:
    """The fixture `measured`; see the module."""

    def __init__(self, benchmark: BenchmarkFixture, files: ExitStack, plan: Plan) -> None:
        self.benchmark = benchmark
        self.plan = plan
        self._files = files  # until the test ends

    def __call__(
        self,
        ours: Callable[..., Result],
        *arguments: Any,
        floor: Floor | str,
        title: str | None = None,
        size: int = 0,
        count: int = 0,
        unit: str = "records",
        peers: Mapping[str, Side] | None = None,
        prepare: Callable[[], object] | None = None,
        rounds: int | None = None,
        reads: Iterable[Path] = (),
        written_size: int = 0,
        growth: Growth | None = None,
        hashed: Callable[[Result], Any] = lambda result: result,
    ) -> Result:
        """Run `ours(*arguments)` as often as its time allows.

        Args:
            floor: what nothing can beat, or why there is no such thing.
            title: in the report; None: the words of the test's name.
            size: bytes that one call handles.
            count: how many of `unit` one call handles.
            peers: by name, each returns the seconds of what one call does.
            prepare: runs before each round, outside its time; then a round is one call.
            reads: files that a round reads; the page cache keeps them, see `page_cache.held`.
            written_size: bytes that one call adds to files, about; see `page_cache.make_ready`.
            rounds: None: as many as the seconds allow, after one to warm up; a number: so many, and none before.
            hashed: what of the result is hashed: bytes, arrays, numbers, text, and sequences of them.

        Returns:
            The last result.
        """
        sides = Sides(peers or {}, floor, self.plan)
        call_count = 1
        has_growing_files = self.plan.has_peers and written_size > 0

        def find_memory() -> None:
            if has_growing_files:
                make_ready(call_count * written_size)

        def before_round() -> None:
            if self.benchmark.enabled:
                sides.run(find_memory)
            if prepare is not None:
                prepare()
            if self.benchmark.enabled:
                find_memory()

        if self.benchmark.enabled:
            if has_growing_files:
                os.sync()  # else what others have left for the disk is written beside a round, which then waits
            self._files.enter_context(held(reads))
            if rounds is None:
                sides.warm_up(find_memory)
                if prepare is None:
                    is_reading = bool(sides.peers) and not written_size
                    least_s = READING_ROUND_SECONDS_MIN if is_reading else ROUND_SECONDS_MIN
                    call_count = calls_of_a_round(ours, *arguments, least_s=least_s)
                rounds = self._round_count(sides, before_round, lambda: seconds_of(call_count, ours, *arguments))
        result = self._run(ours, arguments, rounds or 1, call_count, before_round)
        info = {"title": title or title_of(self.benchmark.name), "bytes": size, "count": count, "unit": unit}
        self.benchmark.extra_info.update(info, hash=digest(hashed(result)), **sides.info())
        if growth is not None:
            self.benchmark.extra_info["growth"] = vars(growth)
        return result

    def _run(
        self,
        ours: Callable[..., Result],
        arguments: tuple[Any, ...],
        round_count: int,
        call_count: int,
        before_round: Callable[[], None],
    ) -> Result:
        """Let pytest-benchmark run the rounds; its `teardown` prepares the next one."""
        left = round_count

        def after_round(*_: Any) -> None:
            nonlocal left
            left -= 1
            if left > 0:
                before_round()

        before_round()
        rounds = {"rounds": round_count, "iterations": call_count}
        result: Result = self.benchmark.pedantic(ours, args=arguments, teardown=after_round, **rounds)
        return result

    def _round_count(self, sides: Sides, before_round: Callable[[], None], one_round: Callable[[], object]) -> int:
        """Return how many rounds fit the time, after one that does not count."""
        if sides.slowest_s > 2 * self.plan.seconds:
            return self.plan.round_count_min
        start_s = perf_counter()
        before_round()
        one_round()
        spent_s = perf_counter() - start_s
        sides.forget()
        fitting = int(self.plan.seconds / max(spent_s, 1e-9))
        return max(self.plan.round_count_min, min(ROUND_COUNT_MAX, fitting))


def title_of(test: str) -> str:
    """
    >>> title_of("test_scan_batches"), title_of("test_dump_batches[deep]")
    ('scan batches', 'dump batches, deep')
    """
    name, _, parameters = test.removeprefix("test_").partition("[")
    return name.replace("_", " ") + (f", {parameters[:-1]}" if parameters else "")


def seconds_of(call_count: int, function: Callable[..., object], *arguments: Any) -> float:
    """Return the seconds of so many calls together."""
    start_s = perf_counter()
    for _ in range(call_count):
        function(*arguments)
    return perf_counter() - start_s


def calls_of_a_round(function: Callable[..., object], *arguments: Any, least_s: float = ROUND_SECONDS_MIN) -> int:
    """Return how many calls last long enough to be measured.

    The fastest of some tries says it: first calls load, compile and allocate, and any may be interrupted.
    """
    call_count = 1
    while True:
        tries_s: list[float] = []
        while len(tries_s) < 2 or (call_count == 1 and len(tries_s) < TRY_COUNT_MAX and sum(tries_s) < TRIES_SECONDS):
            tries_s.append(seconds_of(call_count, function, *arguments))
        seconds = min(tries_s)
        if seconds >= least_s or call_count == CALL_COUNT_MAX:
            return call_count
        more = math.ceil(call_count * least_s / max(seconds, 1e-9))
        call_count = min(CALL_COUNT_MAX, more, 4 * call_count)  # cold calls say too little


def timed(function: Callable[..., object], *arguments: Any, part_count: int = 1) -> Side:
    """Return a side that is Python in this process: the mean of as many calls as last long enough.

    Of several parts of a round the fastest one counts, as for a floor: what has its processor taken away is no limit.
    """
    call_count = 0

    def side() -> float:
        nonlocal call_count
        call_count = call_count or calls_of_a_round(function, *arguments)
        parts = min(call_count, part_count)
        return min(seconds_of(call_count // parts, function, *arguments) for _ in range(parts)) / (call_count // parts)

    return side


def digest(value: Any) -> str:
    """Return the XXH64 of a result, in hexadecimal; the same for the same bytes, numbers and text.

    >>> digest(b"abc") == digest(np.frombuffer(b"abc", np.uint8)), digest((1, "a")) == digest((1, "b"))
    (True, False)
    """
    hasher = xxhash.xxh64()
    _add(hasher, value)
    return hasher.hexdigest()


def _add(hasher: Any, value: Any) -> None:
    if isinstance(value, bytes | bytearray | memoryview):
        hasher.update(value)
    elif isinstance(value, np.ndarray):
        hasher.update(np.ascontiguousarray(value))
    elif isinstance(value, tuple | list):
        for each in value:
            _add(hasher, each)
            hasher.update(b"\0")
    elif value is None or isinstance(value, int | float | str | np.number):
        hasher.update(str(value).encode())
    else:
        raise TypeError(f"a {type(value).__name__} has no hash of its own: say with `hashed` what of it counts")
