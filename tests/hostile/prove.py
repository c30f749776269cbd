"""Gives damaged bytes to all parsers in their compiled form, on buffers that end at a guard page, and counts.

    python -m tests.hostile.prove [NUMBER …]

prints the bytes by parser. A process of its own parses, and says before each input which it is, so that one which ends
or hangs is known by its number; so is one that raises what is no LogstoreError. With arguments only these are tried.

| variable | says |
|---|---|
| `LOGSTORE_HOSTILE_BYTES` | so many, 10 GiB if it is not set: 1 GiB for each parser of logs |
| `LOGSTORE_HOSTILE_SEED` | what is drawn, again |
"""

from __future__ import annotations

import faulthandler
import json
import os
import secrets
import subprocess
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import NamedTuple

from logstore.errors import LogstoreError
from tests.hostile.guarded import GuardedBuffer
from tests.hostile.inputs import SIZE_MAX, Inputs

HANGING_S = 60.0


class Wrong(NamedTuple):
    """An input, and what came of it."""

    number: int
    text: str


# -- in the process of its own --------------------------------------------------------------------------------------


def parse(seed: str, numbers: Iterator[int]) -> None:
    """Parse these inputs, and print a line of JSON before each, with the bytes and parser; one behind what is wrong."""
    inputs, buffer = Inputs(seed), GuardedBuffer(SIZE_MAX)
    for number in numbers:
        one = inputs.of(number)
        _say({"number": number, "parser": one.parser.__name__, "bytes": len(one.content)})
        faulthandler.dump_traceback_later(HANGING_S, exit=True)
        try:
            one.parser(buffer.place(one.content))
        except LogstoreError:
            pass
        except Exception:
            _say({"wrong": traceback.format_exc()})
        faulthandler.cancel_dump_traceback_later()


def parse_from(seed: str, first: int, step: int) -> None:
    """Parse without end, and say where the process ends."""
    faulthandler.enable()
    parse(seed, count(first, step))


def _say(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


# -- in the other ---------------------------------------------------------------------------------------------------


class Run:
    """The inputs whose numbers are `first`, `first + step`, … until there are so many bytes.

    Attributes:
        counts: bytes by parser.
        wrong: what is wrong.
    """

    PROGRAM = "from tests.hostile.prove import parse_from; parse_from({seed!r}, {first}, {step})"

    def __init__(self, seed: str, first: int, step: int, limit: int) -> None:
        self.counts: Counter[str] = Counter()
        self.wrong: list[Wrong] = []
        self._seed, self._step, self._limit = seed, step, limit
        number = first
        while self.counts.total() < limit:
            number = self._process(number) + step

    def _process(self, first: int) -> int:
        """Read what one process says until it ends; the number of its last input."""
        program = self.PROGRAM.format(seed=self._seed, first=first, step=self._step)
        with subprocess.Popen(
            [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            number = first - self._step
            for line in process.stdout:
                said = json.loads(line)
                if "wrong" in said:
                    self.wrong.append(Wrong(number, said["wrong"]))
                    continue
                number = said["number"]
                self.counts[said["parser"]] += said["bytes"]
                if self.counts.total() >= self._limit:
                    process.kill()
                    return number
            stacks = process.stderr.read()
        if number < first:
            raise RuntimeError(f"the process did not begin:\n{stacks}")
        self.wrong.append(Wrong(number, f"hangs, or ends the process ({process.returncode}):\n{stacks[-3000:]}"))
        return number


def main(numbers: list[str]) -> int:
    seed = os.environ.get("LOGSTORE_HOSTILE_SEED") or secrets.token_hex(4)
    print(f"LOGSTORE_HOSTILE_SEED={seed}", flush=True)
    if numbers:
        parse(seed, map(int, numbers))
        return 0
    limit, processes = int(os.environ.get("LOGSTORE_HOSTILE_BYTES") or 10 << 30), os.cpu_count() or 1
    began_s = time.monotonic()
    with ThreadPoolExecutor(processes) as pool:
        runs = list(pool.map(lambda first: Run(seed, first, processes, limit // processes), range(processes)))
    counts = sum((run.counts for run in runs), Counter())
    for name, size in sorted(counts.items()):
        print(f"{name:20} {size:13,} bytes")
    wrong = sorted(one for run in runs for one in run.wrong)
    for one in wrong:
        print(f"wrong: LOGSTORE_HOSTILE_SEED={seed} python -m tests.hostile.prove {one.number}", one.text, sep="\n")
    seconds = time.monotonic() - began_s
    print(f"{counts.total():,} damaged bytes in {seconds:,.0f} s, {len(wrong)} inputs with something wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
