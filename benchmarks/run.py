"""`make bench`: run the benchmarks, then write what they found.

    python -m benchmarks.run [--only OPERATION]… [--scale PART] [--seconds S] [--out DIRECTORY]

Writes `results.json` (pytest-benchmark's), `table.md`, and a picture `growth-….svg` for each thing that cost may grow
with. An operation is a file `bench_….py`. Ends with 1 when a benchmark failed; what the others found is written.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.pictures import drawn, growth
from benchmarks.results import Measurement, read_results
from benchmarks.sizes import REAL_SECONDS
from benchmarks.table import absent_list, result_table
from benchmarks.targets import target_table

HERE = Path(__file__).parent
ROOT = HERE.parent
PYTEST_OPTIONS = (
    "-o",
    "addopts=--import-mode=importlib",
    "-p",
    "no:cacheprovider",
    "-q",
    "--no-header",
    "-rN",
)


def operations() -> list[str]:
    """All that there are benchmarks of."""
    return sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))


def pytest_command(chosen: Sequence[str], json_path: Path) -> list[str]:
    """The command that measures operations; run it in the root of a checkout."""
    files = [f"benchmarks/bench_{operation}.py" for operation in chosen]
    options = ["--benchmark-enable", "--benchmark-quiet", "--durations=20", f"--benchmark-json={json_path}"]
    return [sys.executable, "-m", "pytest", *PYTEST_OPTIONS, *options, *files]


def write_report(out: Path, chosen: Sequence[str], scale: float, head: str) -> None:
    """Everything beside `results.json`, from it; `chosen` are the operations that were to be measured."""
    measurements = read_results(out / "results.json")
    pictures = growth(measurements)
    for old in out.glob("growth-*.svg"):
        old.unlink()
    for picture, lines in pictures.items():
        (out / _file_name(picture)).write_text(drawn(picture, lines))
    targets = target_table(measurements, chosen, scale)
    (out / "table.md").write_text(_page(measurements, targets, list(pictures), head))


def _page(measurements: Sequence[Measurement], targets: str, pictures: Sequence[str], head: str) -> str:
    parts = [
        head,
        "## Asked for and seen",
        targets,
        "## All of them",
        result_table(measurements),
    ]
    if pictures:
        images = "\n".join(f"![Time against {picture}]({_file_name(picture)})" for picture in pictures)
        parts += ["## How cost grows", images]
    absent = absent_list(measurements)
    return "\n\n".join([*parts, *(["## Peers that did not run", absent] if absent else [])]) + "\n"


def _file_name(picture: str) -> str:
    return f"growth-{picture.replace(' ', '-')}.svg"


def machine() -> str:
    """The processor and how many there are of it."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())
    return f"{os.cpu_count()} × {name}"


def commit() -> str:
    """Of the checkout, marked when it has changes; empty outside one."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def command_of(chosen: Sequence[str], scale: float) -> str:
    """What is to be typed for such a run.

    >>> command_of([], 1), command_of(["append", "read"], 4)
    ('make bench', 'make bench ONLY="append read" SCALE=4')
    """
    parts = ["make bench"]
    if chosen:
        parts.append(f'ONLY="{" ".join(chosen)}"')
    if scale != 1:
        parts.append(f"SCALE={scale:g}")
    return " ".join(parts)


def main(argv: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=operations(), metavar="OPERATION", help="may be repeated")
    parser.add_argument("--scale", type=float, default=1, help="part of the real sizes; 0 is tiny")
    parser.add_argument("--seconds", type=float, default=REAL_SECONDS, help="of the rounds of one benchmark")
    parser.add_argument("--out", type=Path, help="bench-out, and below it a folder of its own for some operations")
    options = parser.parse_args(argv)
    out: Path = (options.out or ROOT / "bench-out" / "-".join(options.only or [])).resolve()
    out.mkdir(parents=True, exist_ok=True)
    results = out / "results.json"
    results.unlink(missing_ok=True)
    sizes = {"LOGSTORE_BENCH_SCALE": str(options.scale), "LOGSTORE_BENCH_SECONDS": str(options.seconds)}
    load = os.getloadavg()[0]
    start = time.monotonic()
    chosen = options.only or operations()
    command = pytest_command(chosen, results)
    code = subprocess.run(command, cwd=ROOT, env={**os.environ, **sizes}, check=False).returncode
    if not results.exists() or not json.loads(results.read_text() or "{}").get("benchmarks"):
        sys.stderr.write("nothing was measured\n")
        return 1
    minutes = (time.monotonic() - start) / 60
    said = command_of(options.only or [], options.scale)
    head = (
        f"Commit {commit()}, {machine()}, load {load:.1f} at the start, {minutes:.1f} minutes, "
        f"scale {options.scale:g}: `{said}`.\nA ratio is the median of the rounds', with the smallest and the largest "
        "in brackets; page cache warm. The floor is what the machine or the library takes for the same, at best."
    )
    write_report(out, chosen, options.scale, head)
    sys.stdout.write((out / "table.md").read_text())
    return 1 if code else 0


if __name__ == "__main__":
    sys.exit(main())
