"""What a run of the benchmarks found, read from pytest-benchmark's JSON file."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Ratio:
    """How many times as long another side takes, each in the same round."""

    median: float
    lowest: float
    highest: float
    round_count: int

    @classmethod
    def of(cls, others: Sequence[float], ours: Sequence[float]) -> Ratio:
        """Of the times of all rounds."""
        rounds = [other / our for other, our in zip(others, ours, strict=True)]
        return cls(statistics.median(rounds), min(rounds), max(rounds), len(rounds))


@dataclass(frozen=True)
class Measurement:
    """One benchmark.

    Attributes:
        identity: `operation::test[parameters]`, the operation being the file's name without `bench_`.
        times_s: of one call, a round each.
        size, count, unit: bytes of one call, and how many of the unit; 0 where that says nothing.
        peers: ratios to those that ran. `absent`: why the others did not.
        floor: its name, and the share that its best round has of our median, 1 when nothing is lost.
        floorless: why it has none.
        growth: picture, line and size of a point, if it is one.
    """

    identity: str
    title: str
    times_s: list[float]
    size: int
    count: int
    unit: str
    digest: str
    peers: dict[str, Ratio] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    floor: tuple[str, float] | None = None
    floorless: str = ""
    growth: tuple[str, str, int] | None = None
    figures: dict[str, float] = field(default_factory=dict)

    @property
    def operation(self) -> str:
        """What was measured."""
        return self.identity.partition("::")[0]

    @property
    def median_s(self) -> float:
        """Of one call."""
        return statistics.median(self.times_s)

    @property
    def rate(self) -> float | None:
        """`unit` a second."""
        return self.count / self.median_s if self.count else None


def read_results(path: Path) -> list[Measurement]:
    """All, in the order of the run."""
    return [_measurement(each) for each in json.loads(path.read_text())["benchmarks"]]


def identity_of(fullname: str) -> str:
    """
    >>> identity_of("benchmarks/bench_append.py::test_append[10]")
    'append::test_append[10]'
    """
    path, _, test = fullname.partition("::")
    return f"{Path(path).stem.removeprefix('bench_')}::{test}"


def _measurement(benchmark: dict[str, Any]) -> Measurement:
    info = benchmark["extra_info"]
    times_s = [round_s / info.get("calls", 1) for round_s in benchmark["stats"]["data"]]
    floor, growth, peers = info["floor"], info.get("growth"), info["peers"]
    ran = {name: peer["times_s"] for name, peer in peers.items() if "times_s" in peer}
    floor_times_s = floor.get("times_s")
    return Measurement(
        identity=identity_of(benchmark["fullname"]),
        title=info["title"],
        times_s=times_s,
        size=info["bytes"],
        count=info["count"],
        unit=info["unit"],
        digest=info["hash"],
        peers={name: Ratio.of(times, times_s) for name, times in ran.items()},
        absent={name: peer["absent"] for name, peer in peers.items() if "absent" in peer},
        floor=(floor["name"], min(floor_times_s) / statistics.median(times_s)) if floor_times_s else None,
        floorless=floor.get("none", ""),
        growth=(growth["picture"], growth["series"], growth["size"]) if growth else None,
        figures=info.get("figures", {}),
    )
