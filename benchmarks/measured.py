"""The fixture `measured`: one operation of ours beside its peers and its floor, in alternating rounds.

    def test_scan(measured, segment):
        measured(scan, segment, title="scan", size=segment.size, floor=reading(segment))

A round asks the peers and the floor, another one first every time, and then us, so that all see the machine as it is
at that moment; a ratio is one of times of the same round. What ours returns is hashed, so that no work can be left out,
and two commits that answer differently are told apart.

While pytest-benchmark is disabled, as in `make test`, ours runs once and nothing else does.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.digest import digest
from benchmarks.memory import make_ready
from benchmarks.page_cache import held
from benchmarks.sizes import SECONDS

Result = TypeVar("Result")
Side = Callable[[], float]  # runs what is compared once or more, and returns the seconds of once

ROUND_COUNTS = range(3, 31)
WARMING_PART, ALONE_PART = 0.8, 0.125  # of the seconds: for a peer's rounds that do not count, for all without peers
ROUND_SECONDS_MIN = 0.02  # below it the clock, the loop and cold caches would be seen
# Beside a peer, which takes as long: two processors of which one was idle are slower for that long. What writes would
# fill the disk meanwhile.
READING_ROUND_SECONDS_MIN = 0.1
STEADY_COUNT = 3  # rounds in which a peer has not become faster
IMPROVEMENT_MIN = 0.05  # of a peer that is warming up, from one round to the next
CALL_COUNT_MAX = 20_000
TRY_COUNT_MAX, TRIES_SECONDS = 5, 0.2  # of a single call, before it counts as one that lasts for a round
HAS_PEERS = os.environ.get("LOGSTORE_BENCH_PEERS") != "off"


class PeerAbsentError(Exception):
    """A peer cannot run here; the message says why."""


@dataclass(frozen=True)
class Floor:
    """What no way of doing it can be faster than."""

    name: str
    side: Side


@dataclass(frozen=True)
class Growth:
    """A point of a picture: `size` of what its `picture` is named after, on the line `series`."""

    picture: str
    series: str
    size: int


class Sides:
    """The peers and the floor of one benchmark, and their times."""

    def __init__(self, peers: Mapping[str, Side], floor: Floor | str, written_size: int) -> None:
        self.written_size = written_size  # bytes that a call writes, about
        self.call_count = 1  # of a round
        self.sides = dict(peers) if HAS_PEERS else {}
        self.floor = floor
        self.times: dict[str, list[float]] = {name: [] for name in self.sides}
        self.floor_times: list[float] = []
        self.reasons: dict[str, str] = {}
        self.round_count = 0
        self.asked_s: dict[str, float] = {}  # that a side took when it was asked last, with all around it

    def run(self) -> None:
        """One round; a peer that cannot run is not asked again."""
        sides: list[str | None] = list(self.sides)
        if HAS_PEERS and isinstance(self.floor, Floor):
            sides.append(None)
        first = self.round_count % len(sides) if sides else 0  # none is always behind what another one leaves
        for name in sides[first:] + sides[:first]:
            make_ready(self.call_count, self.written_size)
            if name is None:
                assert isinstance(self.floor, Floor)
                self.floor_times.append(self.floor.side())
            else:
                self._ask(name)
        self.round_count += 1

    def _ask(self, name: str) -> None:
        start_s = time.perf_counter()
        try:
            self.times[name].append(self.sides[name]())
        except PeerAbsentError as absent:
            self.reasons[name] = str(absent)
            del self.sides[name]
        self.asked_s[name] = time.perf_counter() - start_s

    def warm_up(self) -> None:
        """Rounds that do not count: one, and of each peer as many as make it faster, as a JVM that compiles becomes."""
        self.run()
        for name in self.sides:
            self._settle(name, time.perf_counter() + SECONDS * WARMING_PART - self.asked_s[name])
        self.forget()

    def forget(self) -> None:
        """The rounds so far do not count."""
        for times in [*self.times.values(), self.floor_times]:
            times.clear()
        self.round_count = 0

    def _settle(self, name: str, end_s: float) -> None:
        times, steady_count = self.times[name], 0
        while steady_count < STEADY_COUNT and time.perf_counter() < end_s:
            times.append(self.sides[name]())
            is_faster = times[-1] < min(times[:-1]) * (1 - IMPROVEMENT_MIN)
            steady_count = 0 if is_faster else steady_count + 1

    def info(self) -> dict[str, Any]:
        """For the JSON file."""
        peers = {name: {"times_s": self.times[name]} for name in self.sides}
        absent = {name: {"absent": reason} for name, reason in self.reasons.items()}
        if isinstance(self.floor, str):
            floor: dict[str, Any] = {"none": self.floor}
        else:
            floor = {"name": self.floor.name, "times_s": self.floor_times}
        return {"peers": {**peers, **absent}, "floor": floor}


class Measured:
    """What the fixture is."""

    def __init__(self, benchmark: BenchmarkFixture, files: ExitStack) -> None:
        self.benchmark = benchmark
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
            title: in the table; None: the words of the test's name.
            size: bytes that one call handles.
            count: how many of `unit` one call handles.
            peers: by name, each returns the seconds of what one call does.
            prepare: runs before each round of ours, outside its time; then a round is one call.
            reads: files that a round reads; the page cache keeps them, see `benchmarks.page_cache`.
            written_size: bytes that one call adds to files, about; their memory is made ready, see `benchmarks.memory`.
            rounds: None: as many as the seconds allow, after one to warm up; a number: so many, and none before.
            hashed: what of the result is hashed: bytes, arrays, numbers, text, and sequences of them.

        Returns:
            The last result.
        """
        sides = Sides(peers or {}, floor, written_size)
        call_count = 1
        if self.benchmark.enabled and written_size:
            os.sync()  # else what others have left for the disk is written beside a round, which then waits
        if self.benchmark.enabled:
            self._files.enter_context(held(reads))
        if self.benchmark.enabled and rounds is None:
            rounds, call_count = self._warm_up(ours, arguments, sides, prepare)
        sides.call_count = call_count

        def before() -> None:
            if self.benchmark.enabled:
                sides.run()
            if prepare is not None:
                prepare()
            if self.benchmark.enabled:
                make_ready(call_count, written_size)

        def one_round() -> Result:
            for _ in range(call_count - 1):
                ours(*arguments)
            return ours(*arguments)

        result: Result = self.benchmark.pedantic(one_round, setup=before, rounds=rounds or 1)
        info = {
            "title": title or title_of(self.benchmark.name),
            "calls": call_count,
            "bytes": size,
            "count": count,
            "unit": unit,
        }
        self.benchmark.extra_info.update(info, hash=digest(hashed(result)), **sides.info())
        if growth is not None:
            self.benchmark.extra_info["growth"] = vars(growth)
        return result

    def _warm_up(
        self,
        ours: Callable[..., object],
        arguments: tuple[Any, ...],
        sides: Sides,
        prepare: Callable[[], object] | None,
    ) -> tuple[int, int]:
        """(rounds, calls a round)."""
        sides.warm_up()
        call_size = sides.written_size
        least_s = READING_ROUND_SECONDS_MIN if sides.sides and not call_size else ROUND_SECONDS_MIN
        call_count = 1
        if prepare is None:
            call_count = calls_of_a_round(ours, *arguments, written_size=call_size, least_s=least_s)
        if max(sides.asked_s.values(), default=0.0) > 2 * SECONDS:  # its round has shown how many there may be
            return ROUND_COUNTS[0], call_count
        start = time.perf_counter()
        sides.run()
        sides.forget()
        if prepare is not None:
            prepare()
        _ready_seconds_of(call_count, call_size, ours, *arguments)
        spent = time.perf_counter() - start
        enough = SECONDS if sides.sides else SECONDS * ALONE_PART  # a ratio of two sides scatters more than one side
        return max(ROUND_COUNTS[0], min(ROUND_COUNTS[-1], int(enough / spent))), call_count


def title_of(test: str) -> str:
    """
    >>> title_of("test_scan_batches"), title_of("test_dump_batches[deep]")
    ('scan batches', 'dump batches, deep')
    """
    name, _, parameters = test.removeprefix("test_").partition("[")
    return name.replace("_", " ") + (f", {parameters[:-1]}" if parameters else "")


def seconds_of(call_count: int, function: Callable[..., object], *arguments: Any) -> float:
    """Of so many calls together."""
    start = time.perf_counter()
    for _ in range(call_count):
        function(*arguments)
    return time.perf_counter() - start


def _ready_seconds_of(call_count: int, written_size: int, function: Callable[..., object], *arguments: Any) -> float:
    make_ready(call_count, written_size)
    return seconds_of(call_count, function, *arguments)


def calls_of_a_round(
    function: Callable[..., object], *arguments: Any, written_size: int = 0, least_s: float = ROUND_SECONDS_MIN
) -> int:
    """How many calls last long enough to be measured, each of which writes so many bytes.

    The fastest of some tries says it: first calls load, compile and allocate, and any may be interrupted. Of an append
    the first loads kernels, the second what later ones are quick by; on a busy machine each takes as long as a round.
    """
    call_count = 1
    while True:
        tries_s: list[float] = []
        while len(tries_s) < 2 or (call_count == 1 and len(tries_s) < TRY_COUNT_MAX and sum(tries_s) < TRIES_SECONDS):
            tries_s.append(_ready_seconds_of(call_count, written_size, function, *arguments))
        seconds = min(tries_s)
        if seconds >= least_s or call_count == CALL_COUNT_MAX:
            return call_count
        more = math.ceil(call_count * least_s / max(seconds, 1e-9))
        call_count = min(CALL_COUNT_MAX, more, 4 * call_count)  # cold calls say too little


def timed(function: Callable[..., object], *arguments: Any) -> Side:
    """A side that is Python in this process: a call, or the mean of as many as last long enough."""
    call_count = 0

    def side() -> float:
        nonlocal call_count
        call_count = call_count or calls_of_a_round(function, *arguments)
        return seconds_of(call_count, function, *arguments) / call_count

    return side
