"""`make bench-compare BASE=<commit>`: what a change did to speed, and what is noise.

    python -m benchmarks.compare BASE [--head COMMIT] [--only OPERATION]… [--rounds N] [--scale PART] [--seconds S]

Both commits run in turn, in processes of their own, asked by the benchmarks of the newer one; a round is one process of
each, and which goes first alternates. The ratio of a benchmark is taken round by round. It changed when every round
says so and the middle one by more than 3 %: without a change, chance alone does that in one of 2^(rounds - 1) cases.
The smallest and largest ratio are the bounds of the noise. Benchmarks that only one side can run are listed, and those
whose results differ.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.checkouts import Checkout, checkouts
from benchmarks.results import Measurement, read_results
from benchmarks.run import ROOT, operations, pytest_command
from benchmarks.sizes import REAL_SECONDS
from benchmarks.table import time_text

CHANGE_MIN = 0.03
ROUND_COUNT_MIN = 5

Round = dict[str, Measurement]  # by identity


@dataclass(frozen=True)
class Change:
    """One benchmark in both commits; ratios are of the time after to the time before, a round each."""

    title: str
    before_s: float
    after_s: float
    ratios: list[float]
    is_same_result: bool

    @property
    def verdict(self) -> str:
        """What can be said."""
        middle = statistics.median(self.ratios)
        if max(self.ratios) < 1 and middle < 1 - CHANGE_MIN:
            return f"**{1 / middle:.2f}× as fast**"
        if min(self.ratios) > 1 and middle > 1 + CHANGE_MIN:
            return f"**{middle:.2f}× as slow**"
        return "no change seen"

    @property
    def row(self) -> str:
        """A line of the table."""
        noise = f"{100 * (min(self.ratios) - 1):+.1f} % to {100 * (max(self.ratios) - 1):+.1f} %"
        differs = "" if self.is_same_result else ", **another result**"
        times = f"{time_text(self.before_s)} | {time_text(self.after_s)}"
        return f"| {self.title} | {times} | {self.verdict}{differs} | {noise} |"


def changes(before: Sequence[Round], after: Sequence[Round]) -> list[Change]:
    """Of the benchmarks that both sides ran in every round, in their order."""
    shared = [name for name in after[0] if all(name in each for each in [*before, *after])]
    found = []
    for name in shared:
        times = [(one[name].median_s, other[name].median_s) for one, other in zip(before, after, strict=True)]
        found.append(
            Change(
                title=f"{after[0][name].operation}: {after[0][name].title}",
                before_s=statistics.median(one for one, _ in times),
                after_s=statistics.median(other for _, other in times),
                ratios=[other / one for one, other in times],
                is_same_result=before[0][name].digest == after[0][name].digest,
            )
        )
    return found


def only_in(rounds: Sequence[Round], others: Sequence[Round]) -> list[str]:
    """Identities that one side ran and the other did not in every round."""
    return sorted(name for name in rounds[0] if not all(name in each for each in others))


def report(before: Sequence[Round], after: Sequence[Round]) -> str:
    """Markdown: what changed first, by how much."""
    found = sorted(changes(before, after), key=lambda change: (change.verdict == "no change seen", change.title))
    chance = 2.0 ** (1 - len(before)) * len(found)
    lines = ["| benchmark | before | after | change | rounds |", "|---|---|---|---|---|", *(each.row for each in found)]
    lines.append(f"\n{len(found)} benchmarks, {len(before)} rounds; chance alone may call up to {chance:.1f} changed.")
    for words, names in (("before", only_in(before, after)), ("after", only_in(after, before))):
        lines += [f"\nRan only {words}:", *(f"- {name}" for name in names)] if names else []
    return "\n".join(lines)


def measured_round(checkout: Checkout, chosen: Sequence[str], sizes: dict[str, str], json_path: Path) -> Round:
    """All that this commit can run.

    Raises:
        RuntimeError: nothing; with what pytest said.
    """
    command = pytest_command(chosen, json_path)[1:]
    done = checkout.run(*command, "--continue-on-collection-errors", environment=sizes)
    if not json_path.exists() or json_path.stat().st_size == 0:
        raise RuntimeError(f"nothing was measured in {checkout.commit}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return {each.identity: each for each in read_results(json_path)}


def compare(options: argparse.Namespace, place: Path) -> str:
    """The report."""
    sizes = {
        "LOGSTORE_BENCH_SCALE": str(options.scale),
        "LOGSTORE_BENCH_SECONDS": str(options.seconds),
        "LOGSTORE_BENCH_PEERS": "off",
    }
    rounds: dict[str, list[Round]] = {}
    with checkouts(ROOT, place, options.base, options.head) as sides:
        for number in range(options.rounds):
            for checkout in sides if number % 2 == 0 else reversed(sides):
                json_path = place / f"{checkout.path.name}-{number}.json"
                found = measured_round(checkout, options.only or operations(), sizes, json_path)
                rounds.setdefault(checkout.path.name, []).append(found)
        commits = " to ".join(checkout.commit[:12] for checkout in sides)
    return f"From {commits}, scale {options.scale:g}.\n\n{report(rounds['base'], rounds['head'])}\n"


def round_count(text: str) -> int:
    """Enough of them that chance is not taken for a change."""
    count = int(text)
    if count < ROUND_COUNT_MIN:
        raise argparse.ArgumentTypeError(f"{count} rounds cannot tell a change from chance: {ROUND_COUNT_MIN} can")
    return count


def main(argv: Iterable[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", help="the commit before")
    parser.add_argument("--head", help="the commit after; without it the checkout as it is, new files left out")
    parser.add_argument("--only", action="append", choices=operations(), metavar="OPERATION", help="may be repeated")
    parser.add_argument("--rounds", type=round_count, default=7)
    parser.add_argument("--scale", type=float, default=0.05, help="part of the real sizes; 0 is tiny")
    parser.add_argument(
        "--seconds", type=float, default=REAL_SECONDS, help="of the rounds of one benchmark in one process"
    )
    options = parser.parse_args(None if argv is None else list(argv))
    with tempfile.TemporaryDirectory() as name:
        try:
            text = compare(options, Path(name))
        except RuntimeError as error:
            sys.stderr.write(f"{error}\n")
            return 1
    out = ROOT / "bench-out"
    out.mkdir(exist_ok=True)
    (out / "compare.md").write_text(text)
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
