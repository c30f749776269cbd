"""Asks the newest Kafka's tool every recorded call again, and keeps its answers that are others than those of 4.3.1.

Run by hand after `make_golden` and `make_damaged`, from the root: `python -m tests.kafka.make_overlay`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from logstore.config.kafka_version import NEWEST
from tests.conformance.comparison import differences
from tests.conformance.damaged_cases import ANSWERS, Case
from tests.golden.archive import NAMES, answers, overlay, read_rows, unpack, write_rows
from tests.golden.provenance import write_hashes
from tests.support.oracle import Oracle


def others(oracle: Oracle, name: str, rows: list[dict[str, Any]], directory: Path) -> Iterator[dict[str, Any]]:
    """The rows of a set that the tool answers otherwise, with the new answers."""
    dumps = oracle.dump(directory, [row["argv"] for row in rows])
    for row, dump in zip(rows, dumps, strict=True):
        before, after = (row["rc"], row["stdout"], row["stderr"]), (dump.rc, dump.stdout, dump.stderr)
        # both ways: any answer passes for one that only a heap of Kafka's explains
        if differences(dump.argv, before, after) or differences(dump.argv, after, before):
            yield {"name": name, **row, **vars(dump)}


def overlaid(oracle: Oracle, whole: Path, broken: Path) -> Iterator[dict[str, Any]]:
    """The rows of all sets, of the damaged files last."""
    golden = cache(lambda name: unpack(name, whole))
    for name in NAMES:
        yield from others(oracle, name, read_rows(answers(name)), golden(name))
    damaged = read_rows(ANSWERS)
    for row in damaged:
        case = Case(**row["case"])
        case.lay_out(golden(case.directory), broken)
    yield from others(oracle, "damaged", damaged, broken)


def main() -> None:
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as broken:
        rows = list(overlaid(Oracle(NEWEST.release), Path(whole), Path(broken)))
    write_rows(overlay(), rows)
    write_hashes()
    print(f"{len(rows)} answers are others")


if __name__ == "__main__":
    main()
