"""Workloads done by Kafka's log and by ours, one after the other, and where the two disagree."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.kafka.workload_log import WorkloadLog
from tests.support.oracle import Oracle
from tests.support.snapshots import comparable

# of a segment, with the time of its file
_KAFKA_DETAILS = re.compile(r"( Existing segment is Optional\[|(?<=active segment) )LogSegment\([^)]*\)\]?\.?")


class Asked:
    """A JVM with one of our classes, that answers each line with a line for as long as it is asked."""

    def __init__(self, oracle: Oracle, place: Path, main_class: str, *args: str) -> None:
        self._process = subprocess.Popen(
            oracle.command(main_class, *args, options=["-Dlogstore.log.level=OFF"]),
            cwd=place,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate(timeout=60)

    @property
    def pid(self) -> int:
        return self._process.pid

    def ask(self, question: object) -> Any:
        """The answer to a question, both of JSON."""
        return json.loads(self.answer(question))

    def answer(self, question: object) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline()


class Judge:
    """Workloads done below `place`: by Kafka's log, in a JVM with `Workloads`, and by ours."""

    def __init__(self, workloads: Asked, place: Path) -> None:
        self.workloads = workloads
        self.place = place

    def disagreements(self, work: dict[str, Any]) -> list[str]:
        """What is answered, kept or written otherwise; all files are removed if nothing is."""
        theirs, ours = self.place / "theirs" / "t-0", self.place / "ours" / "t-0"
        for directory in (theirs, ours):
            shutil.rmtree(directory.parent, ignore_errors=True)
            directory.parent.mkdir(parents=True)
        expected, found = self.real(work, theirs), WorkloadLog(work, ours).run()
        told = list(_differences(work, expected, found))
        is_open = expected["end"] is not None  # what a refused opening leaves is only to be looked at
        return told + list(_file_differences(theirs, ours)) if is_open else told

    def real(self, work: dict[str, Any], directory: Path) -> dict[str, Any]:
        """The answers of Kafka's log."""
        return json.loads(_KAFKA_DETAILS.sub(".", self.workloads.answer({**work, "directory": str(directory)})))


def _differences(work: dict[str, Any], expected: dict[str, Any], found: dict[str, Any]) -> Iterator[str]:
    for number, (step, theirs, ours) in enumerate(
        zip(work["steps"], expected["answers"], found["answers"], strict=False)
    ):
        if theirs != ours:
            short = {name: value if len(str(value)) < 100 else "…" for name, value in step.items()}
            yield f"step {number} {short}:\n  Kafka {theirs}\n  ours  {ours}"
            return
    if expected["end"] is None or found["end"] is None:
        if expected["end"] != found["end"]:
            yield f"only one opened again: Kafka {expected['answers'][-1]}, ours {found['answers'][-1]}"
        return
    for name, value in expected["end"].items():
        if found["end"][name] != value:
            yield f"{name} in the end:\n  Kafka {value}\n  ours  {found['end'][name]}"


def _file_differences(theirs: Path, ours: Path) -> Iterator[str]:
    expected, found = ({path.name: comparable(path) for path in place.iterdir()} for place in (theirs, ours))
    for name in sorted(expected.keys() | found.keys()):
        if expected.get(name) != found.get(name):
            sizes = [None if content is None else len(content) for content in (expected.get(name), found.get(name))]
            yield f"{name}: Kafka {sizes[0]} bytes, ours {sizes[1]}"
