"""Changes the product in one place at a time, and counts the changes that no test notices.

    python -m tests.mutation.prove [PATH:LINE …]

prints each survivor with its change. Places are drawn from what runs as Python, and from `kernels/rules.py`, whose
tests run it as Python too. A change has fallen when a test that runs its statement fails, or takes far longer than
before: first the quick tests, then the others. Each process works in a copy of the checkout. With arguments all changes
of these lines is tried.

| variable | says |
|---|---|
| `LOGSTORE_MUTANTS` | so many, 600 if it is not set: about an hour on two processors |
| `LOGSTORE_MUTATION_SEED` | which are drawn, again |
| `LOGSTORE_MUTATION_FOLDER` | where the recording of the tests is kept for the next run of the same sources |
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from hashlib import blake2b
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from tests.mutation.mutants import Mutant, mutants_of, sampled
from tests.mutation.programs import lines_that_run
from tests.mutation.recording import KERNELS, PYTHON, ROOT, Recorded, Suite, record

#: folders that changes are drawn from
DRAWN = (
    "logstore/audit",
    "logstore/client",
    "logstore/coordinator",
    "logstore/disk",
    "logstore/folds",
    "logstore/log",
    "logstore/replay",
    "logstore/rows",
    "logstore/view",
    "tools",
)
RULES = "logstore/kernels/rules.py"
ACCEPTED = Path(__file__).parent / "accepted.tsv"  # path, change and reason of those that no test need notice
FALLEN_SHARE_MIN = 0.95
PORTIONS_S = (
    1.0,
    15.0,
    180.0,
)  # tests of one change that take so long together, as they were recorded: most fall at once
STARTING_S = 60.0  # of pytest, on a busy machine
SLOWER = 10  # times as long as before is a test that hangs


class Answer(NamedTuple):
    """What became of a change, in words: `how` it fell, or None for a survivor; `test_count` tests were asked."""

    mutant: Mutant
    change: str
    how: str | None
    test_count: int


class Proof:
    """Copies of the checkout, one for each process, in which changes are made and judged."""

    def __init__(self, folder: Path, process_count: int) -> None:
        self._copies: SimpleQueue[Path] = SimpleQueue()
        copies = [_copied(folder / f"copy-{number}") for number in range(process_count)]
        for copy in copies:
            self._copies.put(copy)
        kept = Path(os.environ.get("LOGSTORE_MUTATION_FOLDER") or folder, _digest(copies[0]))
        kept.mkdir(parents=True, exist_ok=True)
        self._recorded: dict[Suite, Recorded] = {
            suite: record(suite, copies[0], kept, process_count) for suite in (PYTHON, KERNELS)
        }

    def judge(self, mutant: Mutant) -> Answer:
        """Make a change, and ask the tests that run it."""
        copy = self._copies.get()
        changed, asked_count = copy / mutant.path, 0
        original = changed.read_text()  # not that of the checkout, which may go on meanwhile
        suite, change = KERNELS if mutant.path.startswith("logstore/kernels") else PYTHON, mutant.change(original)
        tests = self._recorded[suite].tests_of(mutant.path, lines_that_run(original, mutant.line))
        try:
            changed.write_text(mutant.source(original))
            for names, seconds in _portions(tests):
                how = _failed(suite, copy, names, STARTING_S + SLOWER * seconds)
                asked_count += len(names)
                if how is not None:
                    return Answer(mutant, change, how, asked_count)
            return Answer(mutant, change, None, asked_count)
        finally:
            changed.write_text(original)
            self._copies.put(copy)


def _copied(copy: Path) -> Path:
    """Copy what git tracks, as it is in the working tree, and the built kernels."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.split(b"\0")
    for name in names:
        source = ROOT / name.decode()
        if name and source.exists():
            (copy / name.decode()).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, copy / name.decode())
    (copy / "logstore_tools").symlink_to("tools")  # its installed name, which would be that of the checkout
    built = Path("logstore/native/lib")
    shutil.copytree(ROOT / built, copy / built, dirs_exist_ok=True)
    return copy


def _digest(copy: Path) -> str:
    """Return a digest of the sources: a recording of others may name tests that are gone, which look like failures."""
    hashed = blake2b(digest_size=8)
    for path in sorted(copy.rglob("*.py")):
        hashed.update(path.read_bytes())
    return hashed.hexdigest()


def _portions(tests: list[tuple[str, float]]) -> Iterator[tuple[list[str], float]]:
    """Return the tests in portions, the quickest first, each with its seconds; none beyond the last limit."""
    total_s, start = 0.0, 0
    for limit_s in PORTIONS_S:
        end = start
        begun_s = total_s
        while end < len(tests) and (total_s + tests[end][1] <= limit_s or not end):
            total_s += tests[end][1]
            end += 1
        if end > start:
            yield [name for name, _ in tests[start:end]], total_s - begun_s
        start = end


def _failed(suite: Suite, copy: Path, names: list[str], timeout_s: float) -> str | None:
    """Run tests in a copy until one fails; return its name, or why they ended otherwise; None if all passed."""
    asked = copy / "asked-tests"
    asked.write_text("\n".join(names))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "--no-header",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        f"@{asked}",
    ]
    environment = {**suite.environment, "PYTHONPATH": str(copy), "TMPDIR": str(copy.parent)}
    try:
        ran = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True, timeout=timeout_s, check=False
        )
    except subprocess.TimeoutExpired:
        return "a test hangs"
    if ran.returncode == 0:
        return None
    failed = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0] if failed else f"pytest ends with {ran.returncode}: {ran.stdout[-200:]}{ran.stderr[-200:]}"


def chosen(arguments: list[str]) -> list[Mutant]:
    """Return the changes of the lines that are asked for, or a sample of all."""
    if arguments:
        wanted = {(path, int(line)) for path, _, line in (argument.partition(":") for argument in arguments)}
        sources = {path: (ROOT / path).read_text() for path, _ in sorted(wanted)}
        found = [mutant for path, source in sources.items() for mutant in mutants_of(path, source)]
        return [mutant for mutant in found if mutant[:2] in wanted and mutant.is_other_program(sources[mutant.path])]
    paths = [path for folder in DRAWN for path in (ROOT / folder).rglob("*.py")] + [ROOT / RULES]
    seed = os.environ.get("LOGSTORE_MUTATION_SEED") or secrets.token_hex(4)
    print(f"LOGSTORE_MUTATION_SEED={seed}", flush=True)
    names = sorted(str(path.relative_to(ROOT)) for path in paths)
    return sampled(ROOT, names, int(os.environ.get("LOGSTORE_MUTANTS") or 600), seed)


def main(arguments: list[str]) -> int:
    """Try the changes, and print those that no test notices; return 1 if there are too many."""
    mutants, process_count = chosen(arguments), os.cpu_count() or 1
    accepted = {line.rpartition("\t")[0] for line in ACCEPTED.read_text().splitlines()}
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        proof = Proof(Path(folder), process_count)
        with ThreadPoolExecutor(process_count) as threads:
            for judged in as_completed([threads.submit(proof.judge, mutant) for mutant in mutants]):
                answer = judged.result()
                is_accepted = f"{answer.mutant.path}\t{answer.change}" in accepted
                state = "fell" if answer.how else "accepted" if is_accepted else "survived"
                counts[state] += 1
                if state == "survived":
                    place = f"{answer.mutant.path}:{answer.mutant.line}"
                    print(f"{place} ({answer.test_count} tests ran it): {answer.change}", flush=True)
    count = sum(counts.values())
    print(
        f"{count:,} changes: {counts['fell']:,} fell, {counts['survived']:,} survived, {counts['accepted']:,} accepted"
    )
    return int(counts["survived"] > (1 - FALLEN_SHARE_MIN) * count)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
