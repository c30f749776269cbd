"""`logstore dump` beside the real `kafka-dump-log`, in alternating rounds, page cache warm, output to a file.

    python -m benchmarks.dump_against_kafka [--size BYTES] [--rounds N]

Prints a Markdown table: the median of each side, the ratio of the medians, the smallest and largest ratio of a round.
The first round also compares the two outputs byte for byte.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.kafka_dump_log import kafka_dump_log
from benchmarks.segments import write_segment
from tests.kafka.oracle import Oracle, OracleUnavailableError

LOGSTORE = Path(sys.executable).with_name("logstore")
SEGMENT = "00000000000000000000.log"
SMALL_SIZE = 10_000
DEPTHS = {
    "batch level": (),
    "--deep-iteration": ("--deep-iteration",),
    "--print-data-log": ("--print-data-log",),
}


@dataclass(frozen=True)
class Run:
    """One finished process."""

    wall_s: float
    memory_max: int  # bytes resident at most, mapped pages of the file included


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    ours: list[Run]
    theirs: list[Run]

    def markdown(self) -> str:
        """Medians and ratios."""
        ours = statistics.median(run.wall_s for run in self.ours)
        theirs = statistics.median(run.wall_s for run in self.theirs)
        ratios = [b.wall_s / a.wall_s for a, b in zip(self.ours, self.theirs, strict=True)]
        memory_mib = max(run.memory_max for run in self.ours) / 2**20
        return (
            f"| {self.name} | {theirs:.2f} s | {ours:.2f} s | **{theirs / ours:.1f}×** "
            f"| {min(ratios):.1f}-{max(ratios):.1f}× | {memory_mib:.0f} MiB |"
        )


def measure(command: Sequence[str], output: Path, cwd: Path) -> Run:
    """Run `command` with stdout to `output`, which is made anew; from start to exit."""
    output.unlink(missing_ok=True)
    with output.open("wb") as file:
        start_s = time.perf_counter()
        process = subprocess.Popen(command, cwd=cwd, stdout=file, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - start_s
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"exit code {process.returncode}: {' '.join(command)}")
    return Run(wall_s, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))


def compare(name: str, oracle: Oracle, argv: Sequence[str], cwd: Path, rounds: int) -> Row:
    """Alternate the two tools on `argv`; RuntimeError when their outputs differ."""
    ours_output, theirs_output = cwd / "logstore.txt", cwd / "kafka.txt"
    ours_command = [str(LOGSTORE), "dump", *argv]
    theirs_command = kafka_dump_log(oracle, *argv)
    measure(ours_command, ours_output, cwd)
    row = Row(name, [], [])
    for _ in range(rounds):
        row.theirs.append(measure(theirs_command, theirs_output, cwd))
        row.ours.append(measure(ours_command, ours_output, cwd))
        if len(row.ours) == 1 and not filecmp.cmp(ours_output, theirs_output, shallow=False):
            raise RuntimeError(f"the outputs of {name} differ")
    return row


def main() -> None:
    """Make the segments, run all rounds, print the table."""
    parser = argparse.ArgumentParser(description="Time logstore dump against kafka-dump-log.")
    parser.add_argument("--size", type=int, default=2**30, help="bytes of the large segment")
    parser.add_argument("--rounds", type=int, default=3, help="runs of each side")
    arguments = parser.parse_args()
    try:
        oracle = Oracle()
    except OracleUnavailableError as error:
        sys.exit(f"skipped: the real Kafka cannot run here: {error}")
    with tempfile.TemporaryDirectory() as place:
        print("| input | kafka-dump-log | logstore dump | ratio | rounds | memory |")
        print("|---|---|---|---|---|---|")
        for label, size, rounds in (
            (f"{arguments.size / 2**30:g} GiB", arguments.size, arguments.rounds),
            ("10 KB", SMALL_SIZE, 3 * arguments.rounds),
        ):
            cwd = Path(place, label.replace(" ", "-"))
            cwd.mkdir()
            write_segment(cwd / SEGMENT, size, batch_size=min(16 * 1024, size // 3))
            for depth, options in DEPTHS.items():
                row = compare(f"{label}, {depth}", oracle, ["--files", SEGMENT, *options], cwd, rounds)
                print(row.markdown(), flush=True)


if __name__ == "__main__":
    main()
