"""Which tests run which lines, and how long each test takes; recorded once for a proof, by coverage.py.

As a plugin of pytest it writes the durations: `-p tests.mutation.recording`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
DURATIONS = "LOGSTORE_MUTATION_DURATIONS"


class Suite(NamedTuple):
    """Tests that are recorded together.

    Attributes:
        name: of the files that are written.
        arguments: of pytest.
        interprets: kernels run as Python: what is compiled, no line of it is seen, and no change without a compiler.
    """

    name: str
    arguments: tuple[str, ...]
    interprets: bool

    @property
    def environment(self) -> dict[str, str]:
        """What its processes get."""
        interpreted = {"NUMBA_DISABLE_JIT": "1"} if self.interprets else {}
        return {**os.environ, **interpreted, "PYTHONDONTWRITEBYTECODE": "1"}


_SAMPLE = ("-m", "not slow and not long")
_FOLDERS = ("unit", "properties", "conformance", "recovery", "crash", "objects", "stories", "kafka")
#: what judges Python, and what judges kernels
PYTHON = Suite("python", (*(f"tests/{name}" for name in _FOLDERS), "logstore", "tools", *_SAMPLE), interprets=False)
KERNELS = Suite("kernels", ("tests/unit", "tests/properties", "-k", "kernel", *_SAMPLE), interprets=True)


class Recorded:
    """What was recorded of one suite."""

    def __init__(self, data: Path, durations: Path) -> None:
        import coverage

        self._durations = dict[str, float]()
        for line in durations.read_text().splitlines():
            name, seconds = line.rsplit("\t", 1)
            self._durations[name] = float(seconds)
        self._data = coverage.CoverageData(str(data))
        self._data.read()
        self._lines: dict[str, dict[int, list[str]]] = {}

    def tests_of(self, path: str, lines: range) -> list[tuple[str, float]]:
        """Return the tests that run any of these lines, and their seconds, the quickest first.

        Lines that run at the import alone, in other processes or in threads that coverage.py does not see, are run by
        all tests that run anything of the file, and those that start programs. Behind the tests that run a line of a
        command come those that start programs too.
        """
        if path not in self._lines:
            self._lines[path] = self._data.contexts_by_lineno(path)
        by_line = self._lines[path]
        seen = self._tests(name for line in lines for name in by_line.get(line, ()))
        others = set() if seen else self._tests(name for names in by_line.values() for name in names)
        if not seen or path.startswith("tools/"):
            others |= {name for name in self._durations if _starts_programs(name.partition("::")[0])}
        return [
            (name, self._durations[name])
            for tests in (seen, others - seen)
            for name in sorted(tests, key=self._durations.__getitem__)
        ]

    def _tests(self, contexts: Iterable[str]) -> set[str]:
        """Return the tests of contexts, which pytest-cov writes as `test|phase`."""
        return {context.rsplit("|", 1)[0] for context in contexts} & self._durations.keys()


@cache
def _starts_programs(path: str) -> bool:
    file = ROOT / path
    return file.is_file() and re.search(r"import .*\bsubprocess|os\.fork", file.read_text()) is not None


def record(suite: Suite, root: Path, folder: Path, process_count: int) -> Recorded:
    """Run a suite in `root` and return what it covers; raises CalledProcessError if a test fails."""
    data, durations = folder / f"{suite.name}.coverage", folder / f"{suite.name}.durations"
    if not durations.exists():
        written = durations.with_suffix(".new")
        written.unlink(missing_ok=True)
        options = ["-q", "-p", "no:cacheprovider", "-p", "tests.mutation.recording", "-n", str(process_count)]
        settings = folder / "coveragerc"
        settings.write_text("[run]\nrelative_files = true\n")
        covering = ["--cov=logstore", "--cov=tools", "--cov-context=test", "--cov-report=", f"--cov-config={settings}"]
        subprocess.run(
            [sys.executable, "-m", "pytest", *options, *covering, *suite.arguments],
            cwd=root,
            env={**suite.environment, "COVERAGE_FILE": str(data), DURATIONS: str(written)},
            check=True,
        )
        written.rename(durations)
    return Recorded(data, durations)


# -- as a plugin of pytest --------------------------------------------------------------------------------------------

_seconds: dict[str, float] = defaultdict(float)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count the seconds of a test's phases."""
    _seconds[report.nodeid] += report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the durations, once, where all tests are known."""
    if not hasattr(session.config, "workerinput") and (path := os.environ.get(DURATIONS)):
        Path(path).write_text("".join(f"{name}\t{seconds:.4f}\n" for name, seconds in _seconds.items()))
