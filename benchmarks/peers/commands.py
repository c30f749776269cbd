"""Commands as a user runs them, from start to exit with output to a file: ours, and the real `kafka-dump-log`."""

from __future__ import annotations

import os
import select
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from benchmarks.peers.kafka import oracle
from benchmarks.support.measure import Floor, Side

WATCH_MS = 10
LOGSTORE = [sys.executable, str(Path(sys.executable).with_name("logstore"))]
DUMP_CLASS = "org.apache.kafka.tools.DumpLogSegments"

# KAFKA_HEAP_OPTS and KAFKA_JVM_PERFORMANCE_OPTS of bin/kafka-run-class.sh 4.3.1
JVM_OPTIONS = (
    "-XX:-UseSerialGC",
    "-XX:TieredStopAtLevel=4",
    "-Xmx256M",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-Djava.awt.headless=true",
)


@dataclass(frozen=True)
class Run:
    """One finished process."""

    wall_s: float
    memory_max: int  # bytes resident at most, mapped pages of the file included


def run(command: Sequence[str], output: Path, cwd: Path) -> Run:
    """Run `command` with stdout to `output`, which is made anew.

    Python finds modules compiled, as where it is installed, from the second run in `cwd` on.

    Raises:
        RuntimeError: it ends with another exit code than 0.
    """
    output.unlink(missing_ok=True)
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(cwd / "pycache")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with output.open("wb") as file:
        start_s = perf_counter()
        process = subprocess.Popen(command, cwd=cwd, stdout=file, stderr=subprocess.DEVNULL, env=environment)
        watched = _watch(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = perf_counter() - start_s
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"exit code {process.returncode}: {' '.join(command)}")
    return Run(wall_s, watched or usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))


def printed(command: Sequence[str], cwd: Path) -> bytes:
    """Run a command, as `run` does, and return what it prints."""
    output = cwd / "printed.txt"
    run(command, output, cwd)
    return output.read_bytes()


def _watch(pid: int) -> int:
    """Return the most bytes resident until the process ends; 0 where only the kernel's sum is there.

    That sum (`ru_maxrss`) begins with the memory of the process that starts another: here a large one.
    """
    if not hasattr(os, "pidfd_open"):
        return 0
    descriptor = os.pidfd_open(pid)
    try:
        ended = select.poll()
        ended.register(descriptor, select.POLLIN)
        memory_max = 0
        while not ended.poll(WATCH_MS):
            memory_max = max(memory_max, _resident_max(pid))
        return memory_max
    finally:
        os.close(descriptor)


def _resident_max(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    kib = next((line.split()[1] for line in lines if line.startswith("VmHWM:")), "0")
    return int(kib) * 1024


def kafka_dump_log(argv: Sequence[str], output: Path, cwd: Path) -> Side:
    """Return a side: seconds of the tool from start to exit, what it prints going to `output`."""

    def side() -> float:
        return run(oracle().command(DUMP_CLASS, *argv, options=JVM_OPTIONS), output, cwd).wall_s

    return side


def bare_python(cwd: Path) -> Floor:
    """Start Python and let it end."""
    return Floor("bare Python", lambda: run([sys.executable, "-c", "pass"], cwd / "python.txt", cwd).wall_s)
