"""Asks the real tool about damaged copies of golden files, and keeps the answers.

Run by hand after `make_golden`, from the root of the repository: `python -m tests.kafka.make_damaged`.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from tests.conformance.damaged_cases import ANSWERS, cases, lay_out_all
from tests.golden.archive import unpack, write_rows
from tests.golden.provenance import write_hashes
from tests.support.oracle import Oracle

SEED = "kept"
CASE_COUNT = 1440


def main() -> None:
    oracle = Oracle()
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as broken:
        golden = cache(lambda name: unpack(name, Path(whole)))
        chosen = cases(SEED, golden, CASE_COUNT)
        argvs = lay_out_all(chosen, golden, Path(broken))
        dumps = oracle.dump(Path(broken), argvs)
        rows = [{"case": vars(case), **vars(dump)} for case, dump in zip(chosen, dumps, strict=True)]
    write_rows(ANSWERS, rows)
    write_hashes()


if __name__ == "__main__":
    main()
