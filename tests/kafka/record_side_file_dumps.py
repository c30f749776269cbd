"""Ask the real tool again what it prints for the cases of `tests/support/side_file_cases.py`, and keep the answers.

python -m tests.kafka.record_side_file_dumps
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from tests.conformance.comparison import UNCAUGHT
from tests.support.oracle import Oracle
from tests.support.side_file_cases import ANSWERS_PATH, CASES, Answer, Case


def real_answers(oracle: Oracle, cases: Sequence[Case], directory: Path) -> list[Answer]:
    """What the real tool says to each case, as if its files were in the working directory; `directory` is empty."""
    places = [f"case{number}/" for number in range(len(cases))]
    argvs = []
    for place, case in zip(places, cases, strict=True):
        (directory / place).mkdir()
        case.write(directory / place)
        *options, files = case.argv
        argvs.append([*options, ",".join(place + file for file in files.split(","))])
    return [
        Answer(dump.rc, dump.stdout.replace(place, ""), without_stack_trace(dump.stderr).replace(place, ""))
        for place, dump in zip(places, oracle.dump(directory, argvs), strict=True)
    ]


def without_stack_trace(stderr: str) -> str:
    """`stderr` up to the first line of an uncaught exception."""
    start = stderr.find(UNCAUGHT)
    return stderr if start < 0 else stderr[: stderr.index("\n", start) + 1]


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        answers = real_answers(Oracle(), CASES, Path(directory))
    texts = [answer.to_text(case.story) for case, answer in zip(CASES, answers, strict=True)]
    ANSWERS_PATH.write_text("".join(texts), encoding="utf-8")


if __name__ == "__main__":
    main()
