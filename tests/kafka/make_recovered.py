"""Asks the real UnifiedLog to open golden partition directories, whole and damaged, and keeps what it makes of them.

Run by hand after `make_golden`, from the root of the repository: `python -m tests.kafka.make_recovered`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tests.golden.archive import unpack, write_rows
from tests.golden.provenance import write_hashes
from tests.kafka.judge import Asked
from tests.recovery.cases import DAMAGED_ANSWERS, GOLDEN_ANSWERS, Case, damaged_cases, golden_cases
from tests.support.golden import Golden
from tests.support.oracle import Oracle

SEED = "kept"
CASE_COUNT = 1200


def ask(check: Asked, cases: Sequence[Case], golden: Golden, place: Path) -> list[dict[str, Any]]:
    """What `LogCheck` answers about each case, laid out below `place`."""
    place.mkdir(exist_ok=True)
    for case in cases:
        case.lay_out(golden(case.golden), place)
    questions = [{**case.question(), "directory": str(place / case.directory)} for case in cases]
    return [check.ask(question) for question in questions]


def main() -> None:
    oracle = Oracle()
    with tempfile.TemporaryDirectory() as whole:
        golden = cache(lambda name: unpack(name, Path(whole)))
        for path, cases in (
            (GOLDEN_ANSWERS, golden_cases(golden)),
            (DAMAGED_ANSWERS, damaged_cases(SEED, golden, CASE_COUNT)),
        ):
            with tempfile.TemporaryDirectory() as place, Asked(oracle, Path(place), "LogCheck") as check:
                answers = ask(check, cases, golden, Path(place))
            rows = [{"case": case.row(), **answer} for case, answer in zip(cases, answers, strict=True)]
            write_rows(path, rows)
    write_hashes()


if __name__ == "__main__":
    main()
