"""`make bench-compare BASE=<commit>`: what a change did to speed, and how sure that is.

    python -m benchmarks.support.compare BASE [--only OPERATION]… [--rounds N] [--scale PART]

The commit before has a work tree of its own, the change is the checkout as it is; the same benchmarks ask both, in
processes of their own, a round each in turn, and which goes first alternates. A ratio is one of times of a round, its
spread is the smallest and the largest. A benchmark changed when every round says so, and the middle one by more than
3 %: without a change, chance alone does that in one of 2^(rounds - 1) cases.

On a machine that others use, PYTEST_ADDOPTS="--benchmark-timer=time.process_time" counts processor time alone.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.support.data import DEFAULT_SCALE
from benchmarks.support.report import Measurement, markdown_table, read_results, time_text

ROOT = Path(__file__).parents[2]
CHANGE_MIN = 0.03
ASKING = ("benchmarks", "tests")  # folders that ask, the same for both
PYTEST_SETTINGS = "pyproject.toml"  # of who asks, too
KERNELS = Path("logstore", "native", "lib")
COMPILE = "import sys; from logstore_tools.main import main; sys.argv[1:] = ['doctor', '--compile']; main()"
WHERE = "import logstore, logstore_tools; print(logstore.__file__, logstore_tools.__file__)"

Round = dict[str, Measurement]  # by identity


def environment() -> dict[str, str]:
    """Return the environment for a pytest of its own: without pytest-xdist's, for a worker measures nothing."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST_")}


def python(checkout: Path, *words: str, **variables: str) -> str:
    """Run Python in a checkout, which is imported before anything installed, and return what it prints.

    Raises:
        RuntimeError: it failed; the message ends with what it printed.
    """
    own = {"PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1", "LOGSTORE_BENCH_PEERS": "off"}
    command, variables = [sys.executable, *words], {**environment(), **own, **variables}
    done = subprocess.run(command, cwd=checkout, env=variables, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{checkout}: {' '.join(words)}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


@contextlib.contextmanager
def checkout_of(root: Path, place: Path, commit: str) -> Iterator[Path]:
    """Make a work tree of a commit, with its own kernels and the benchmarks of `root`; remove it at the end.

    Raises:
        RuntimeError: no such commit, or its kernels do not compile.
    """
    _git(root, "worktree", "add", "--quiet", "--detach", str(place), commit)
    try:
        for folder in ASKING:
            shutil.rmtree(place / folder, ignore_errors=True)
            shutil.copytree(root / folder, place / folder, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copyfile(root / PYTEST_SETTINGS, place / PYTEST_SETTINGS)
        (place / "logstore_tools").symlink_to("tools")
        if (root / KERNELS).exists():  # those with the same sources: their names hold a hash of them
            shutil.copytree(root / KERNELS, place / KERNELS, dirs_exist_ok=True)
        python(place, "-c", COMPILE)
        if (where := python(place, "-c", WHERE)).count(str(place)) != 2:
            raise RuntimeError(f"another logstore than that of {place} is imported: {where}")
        yield place
    finally:
        _git(root, "worktree", "remove", "--force", str(place))


def _git(root: Path, *words: str) -> None:
    done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"git {' '.join(words)}: {done.stderr.strip()}")


def measured_round(checkout: Path, files: Sequence[str], scale: float, results: Path) -> Round:
    """Measure what a checkout can run of some files of benchmarks."""
    options = ["--benchmark-only", "--benchmark-quiet", f"--benchmark-json={results}", "-q", "-p", "no:cacheprovider"]
    options = [*options, "--continue-on-collection-errors", *files]
    try:
        python(checkout, "-m", "pytest", *options, LOGSTORE_BENCH_SCALE=str(scale))
    except RuntimeError as error:  # a benchmark that this commit has nothing for is left out
        if not results.exists() or results.stat().st_size == 0:
            raise RuntimeError(f"nothing was measured in {checkout}") from error
    return {each.identity: each for each in read_results(results)}


def change_row(name: str, before: Sequence[Measurement], after: Sequence[Measurement]) -> list[str]:
    """Return the cells of one benchmark: its times, and their ratio round by round."""
    times = [(one.median_s, other.median_s) for one, other in zip(before, after, strict=True)]
    ratios = [other / one for one, other in times]
    middle, lowest, highest = statistics.median(ratios), min(ratios), max(ratios)
    is_slower, is_faster = lowest > 1 and middle > 1 + CHANGE_MIN, highest < 1 and middle < 1 - CHANGE_MIN
    words = "slower" if is_slower else "faster" if is_faster else ""
    if before[0].digest != after[0].digest:
        words += ", another result" if words else "another result"
    medians = [time_text(statistics.median(side)) for side in zip(*times, strict=True)]
    return [name, *medians, f"**{middle:.2f}** ({lowest:.2f} to {highest:.2f})", words]


def changes(before: Sequence[Round], after: Sequence[Round]) -> str:
    """Return Markdown: a row for what both ran in every round, and the names of what only one side did."""
    rounds = [*before, *after]
    shared = [name for name in after[0] if all(name in each for each in rounds)]
    rows = [change_row(name, [each[name] for each in before], [each[name] for each in after]) for name in shared]
    alone = sorted({name for each in rounds for name in each} - set(shared))
    parts = [markdown_table(["benchmark", "before", "after", "after / before", ""], rows)]
    return "\n\n".join([*parts, *(["Only on one side: " + ", ".join(alone)] if alone else [])])


def main(argv: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base", help="the commit before")
    parser.add_argument("--only", action="append", metavar="OPERATION", help="a file bench_….py; may be repeated")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=DEFAULT_SCALE, help="part of the real sizes")
    options = parser.parse_args(argv)
    files = [f"benchmarks/bench_{name}.py" for name in options.only or []] or ["benchmarks"]
    rounds: dict[str, list[Round]] = {"before": [], "after": []}
    with tempfile.TemporaryDirectory() as name, checkout_of(root, Path(name, "base"), options.base) as base:
        sides = [("before", base), ("after", root)]
        for number in range(options.rounds):
            for side, checkout in sides if number % 2 == 0 else reversed(sides):
                results = Path(name, f"{side}-{number}.json")
                rounds[side].append(measured_round(checkout, files, options.scale, results))
    sys.stdout.write(
        f"{changes(rounds['before'], rounds['after'])}\n\n{options.rounds} rounds, scale {options.scale:g}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
