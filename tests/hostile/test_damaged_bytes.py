"""Damaged bytes are answered or refused by every parser; what ends the process is told with its input.

`LOGSTORE_HOSTILE_BYTES` says how many, `LOGSTORE_HOSTILE_SEED` makes them again; `make prove-bytes` tries 1 GiB
for each parser of logs.
"""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.hostile.guarded import GuardedBuffer
from tests.hostile.parsers import PARSERS
from tests.hostile.prove import Run
from tests.support.sampling import case_count, seed_of

BYTE_COUNT = case_count("LOGSTORE_HOSTILE_BYTES", sample=4_000_000, whole=100_000_000)
SEED = seed_of("HOSTILE")

BEHIND_THE_END = """
from tests.hostile.guarded import GuardedBuffer
from logstore.kernels.scan.crc32c import crc32c_range

data = GuardedBuffer(100).place(bytes(64))
print(crc32c_range(data, 0, 64), flush=True)
crc32c_range(data, 0, 65)
"""
ENDS_AT_9 = """
import os
from tests.hostile import inputs, prove

def last(data):
    if data[0] == 9: os.kill(os.getpid(), 11)
    if data[0] == 5: raise IndexError

inputs.Inputs.of = lambda self, number: inputs.Input(last, bytes([number]) * 100)
prove.parse_from({seed!r}, {first}, {step})
"""


def test_damaged_bytes_are_answered_or_refused() -> None:
    run = Run(SEED, 0, 1, BYTE_COUNT)
    assert run.wrong == [], f"LOGSTORE_HOSTILE_SEED={SEED}"
    assert run.counts.keys() == {parser.__name__ for parsers in PARSERS.values() for parser in parsers}


def test_a_kernel_that_reads_behind_the_end_ends_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", BEHIND_THE_END], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.count("\n")) == (-signal.SIGSEGV, 1), done.stderr


def test_what_ends_the_process_or_raises_is_told_and_the_others_are_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Run, "PROGRAM", ENDS_AT_9)
    run = Run(SEED, 0, 1, 2000)
    assert [wrong.number for wrong in run.wrong] == [5, 9]
    assert ["IndexError" in wrong.text for wrong in run.wrong] == [True, False]
    assert f"({-signal.SIGSEGV})" in run.wrong[1].text
    assert run.counts == {"last": 2000}


def test_what_is_placed_ends_at_the_guard_and_is_read_only() -> None:
    buffer = GuardedBuffer(5000)
    assert buffer.place(b"abc").tobytes() == b"abc"
    with pytest.raises(ValueError, match="read-only"):
        buffer.place(b"d")[0] = 1
