"""The report of a run, from pytest-benchmark's JSON: a table, and pictures of growth.

    python -m benchmarks.support.report RESULTS.json              # table.md and growth-….svg beside it
    python -m benchmarks.support.report RESULTS.json --keep PATH  # what the documentation is made of, into PATH

`docs/generators/benchmarks.py` makes pages of what is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DIGEST_SIZE = 8  # hexadecimal digits that are shown; all are in the JSON file
TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
KEPT_DIGITS = 4  # of a time that is kept


@dataclass(frozen=True)
class Ratio:
    """How many times as long another side takes, round by round."""

    median: float
    lowest: float
    highest: float
    round_count: int

    @classmethod
    def of(cls, others: Sequence[float], ours: Sequence[float]) -> Ratio:
        """Return the ratio of the times of all rounds."""
        rounds = [other / our for other, our in zip(others, ours, strict=True)]
        return cls(statistics.median(rounds), min(rounds), max(rounds), len(rounds))

    def __str__(self) -> str:
        digits = 2 if self.lowest < 1 else 1
        return f"{self.median:.{digits}f}× ({self.lowest:.{digits}f} to {self.highest:.{digits}f})"


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
    size: int = 0
    count: int = 0
    unit: str = "records"
    digest: str = ""
    peers: dict[str, Ratio] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    floor: tuple[str, float] | None = None
    floorless: str = ""
    growth: tuple[str, str, int] | None = None

    @classmethod
    def read(cls, benchmark: dict[str, Any]) -> Measurement:
        """Read a benchmark of the JSON file."""
        info, times_s = benchmark["extra_info"], benchmark["stats"]["data"]
        floor, growth, peers = info["floor"], info.get("growth"), info["peers"]
        ran = {name: peer["times_s"] for name, peer in peers.items() if "times_s" in peer}
        floor_times_s = floor.get("times_s")
        return cls(
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
        )

    @property
    def median_s(self) -> float:
        """Return the median of one call."""
        return statistics.median(self.times_s)

    @property
    def speed(self) -> str:
        """Return bytes and units a second."""
        parts = []
        if self.size:
            parts.append(f"{_three_digits(self.size / self.median_s / 1e9)} GB/s")
        if self.count and self.unit != "bytes":
            rate = self.count / self.median_s
            value, letter = (rate / 1e6, "M ") if rate >= 1e6 else (rate, "")
            parts.append(f"{_three_digits(value)} {letter}{self.unit}/s")
        return ", ".join(parts)

    @property
    def floor_text(self) -> str:
        """Return the share of the floor, 100 % when nothing is lost, or why there is none."""
        if self.floor is None:
            return self.floorless
        name, share = self.floor
        return f"{_three_digits(100 * share)} % of {name}"


def read_results(path: Path) -> list[Measurement]:
    """Read all benchmarks of a JSON file, in the order of the run."""
    return [Measurement.read(each) for each in json.loads(path.read_text())["benchmarks"]]


def identity_of(fullname: str) -> str:
    """
    >>> identity_of("benchmarks/bench_append.py::test_append[10]")
    'append::test_append[10]'
    """
    path, _, test = fullname.partition("::")
    return f"{Path(path).stem.removeprefix('bench_')}::{test}"


def time_text(seconds: float) -> str:
    """
    >>> time_text(2), time_text(0.0123), time_text(4.5e-6), time_text(3e-10)
    ('2.00 s', '12.3 ms', '4.50 µs', '0.300 ns')
    """
    size, unit = next((each for each in TIMES if seconds >= each[0]), TIMES[-1])
    return f"{_three_digits(seconds / size)} {unit}"


def _three_digits(value: float) -> str:
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}" if value >= 1 else f"{value:.3f}"


def markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table; a bar would end a cell and becomes a slash."""
    lines = [head, ["---"] * len(head), *([cell.replace("|", "/") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def result_tables(measurements: Sequence[Measurement]) -> str:
    """Return a heading and a table for each operation, with a row for each of its benchmarks."""
    operations: dict[str, list[Measurement]] = {}
    for each in measurements:
        operations.setdefault(each.identity.partition("::")[0], []).append(each)
    head = ["benchmark", "median", "minimum", "speed", "beside", "of the floor", "hash"]
    parts = []
    for operation, found in operations.items():
        rows = [
            [
                each.title,
                time_text(each.median_s),
                time_text(min(each.times_s)),
                each.speed,
                "<br>".join(f"{name} {ratio}" for name, ratio in each.peers.items()),
                each.floor_text,
                each.digest[:DIGEST_SIZE],
            ]
            for each in found
        ]
        parts += [f"### {operation}", markdown_table(head, rows)]
    return "\n\n".join(parts)


def absent_list(measurements: Sequence[Measurement]) -> str:
    """Return a list of the peers that did not run, with the reasons."""
    reasons: dict[tuple[str, str], int] = {}
    for measurement in measurements:
        for absent in measurement.absent.items():
            reasons[absent] = reasons.get(absent, 0) + 1
    return "\n".join(f"- {name}: {reason} ({count} benchmarks)" for (name, reason), count in reasons.items())


def machine() -> str:
    """Return the name of the processor and how many there are."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{os.cpu_count()} × {name}"


def circumstances(results: Path) -> str:
    """Return commit, machine and size of a run, as `conftest.py` has put them into its JSON."""
    content = json.loads(results.read_text())
    commit, run = content["commit_info"], content["logstore"]
    dirty = ", with changes" if commit.get("dirty") else ""
    sizes = "real sizes" if run["scale"] >= 1 else f"{run['scale']:g} of the real sizes, at which a JVM is hardly warm"
    return (
        f"Commit {str(commit.get('id'))[:12]}{dirty}, {run['machine']}, load {run['load']:.1f} at the start, {sizes}. "
        "A ratio is how many times as long the other side takes (below 1 it is faster): the median of the rounds, with "
        "the smallest and the largest in brackets."
    )


def keep(results: Path, path: Path) -> None:
    """Write what the report reads of a run, a line a benchmark."""
    content = json.loads(results.read_text())
    commit = {name: content["commit_info"][name] for name in ("id", "dirty")}
    head = json.dumps({"commit_info": commit, "logstore": content["logstore"]})
    lines = [
        json.dumps(
            {
                "fullname": each["fullname"],
                "stats": {"data": _rounded(each["stats"]["data"])},
                "extra_info": _rounded(each["extra_info"]),
            }
        )
        for each in content["benchmarks"]
    ]
    path.write_text(f'{head[:-1]}, "benchmarks": [\n' + ",\n".join(lines) + "\n]}\n")


def _rounded(value: Any) -> Any:
    """Round each float to KEPT_DIGITS digits.

    >>> _rounded({"times_s": [0.0123456, 2], "hash": "ab"})
    {'times_s': [0.01235, 2], 'hash': 'ab'}
    """
    if isinstance(value, dict):
        return {name: _rounded(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.{KEPT_DIGITS}g}") if isinstance(value, float) else value


def write_report(results: Path) -> str:
    """Write the table and the pictures beside the JSON; return the table."""
    from benchmarks.support.pictures import drawn, file_name, growth

    measurements = read_results(results)
    pictures = growth(measurements)
    for old in results.parent.glob("growth-*.svg"):
        old.unlink()
    for picture, lines in pictures.items():
        (results.parent / file_name(picture)).write_text(drawn(f"Time against {picture}", picture, lines))
    parts = [circumstances(results), result_tables(measurements)]
    if pictures:
        images = [f"![Time against {picture}]({file_name(picture)})" for picture in pictures]
        parts += ["## How cost grows", "\n".join(images)]
    if absent := absent_list(measurements):
        parts += ["## Peers that did not run", absent]
    text = "\n\n".join(parts) + "\n"
    (results.parent / "table.md").write_text(text)
    return text


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, help="what pytest's --benchmark-json has written")
    parser.add_argument("--keep", type=Path, metavar="PATH", help="where to keep what the documentation is made of")
    options = parser.parse_args(argv)
    results: Path = options.results
    if not results.exists() or not json.loads(results.read_text() or "{}").get("benchmarks"):
        sys.stderr.write("nothing was measured\n")
        return 1
    if options.keep is not None:
        keep(results, options.keep)
    else:
        sys.stdout.write(write_report(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
