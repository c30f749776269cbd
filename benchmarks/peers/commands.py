"""Commands as a user runs them, from start to exit with output to a file: ours, and the real `kafka-dump-log`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from time import perf_counter

from benchmarks.peers.kafka import JVM_OPTIONS, oracle
from benchmarks.support.measure import Floor, Side

LOGSTORE = [sys.executable, str(Path(sys.executable).with_name("logstore"))]
DUMP_CLASS = "org.apache.kafka.tools.DumpLogSegments"
TOOL_JVM_OPTIONS = (*JVM_OPTIONS, "-Xmx256M")  # KAFKA_HEAP_OPTS of kafka-run-class.sh 4.3.1


def run(command: Sequence[str], output: Path, cwd: Path) -> float:
    """Run `command` with stdout to `output`, which is made anew; return its seconds.

    Python finds modules compiled, as where it is installed, from the second run in `cwd` on.

    Raises:
        CalledProcessError: it ends with another exit code than 0.
    """
    output.unlink(missing_ok=True)
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(cwd / "pycache")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with output.open("wb") as file:
        start_s = perf_counter()
        subprocess.run(command, cwd=cwd, stdout=file, stderr=subprocess.DEVNULL, env=environment, check=True)
        return perf_counter() - start_s


def printed(command: Sequence[str], cwd: Path) -> bytes:
    """Run a command, as `run` does, and return what it prints."""
    output = cwd / "printed.txt"
    run(command, output, cwd)
    return output.read_bytes()


def kafka_dump_log(argv: Sequence[str], output: Path, cwd: Path) -> Side:
    """Return a side: seconds of the tool from start to exit, what it prints going to `output`."""

    def side() -> float:
        return run(oracle().command(DUMP_CLASS, *argv, options=TOOL_JVM_OPTIONS), output, cwd)

    return side


def bare_python(cwd: Path) -> Floor:
    """Start Python and let it end."""
    return Floor("bare Python", lambda: run([sys.executable, "-c", "pass"], cwd / "python.txt", cwd))
