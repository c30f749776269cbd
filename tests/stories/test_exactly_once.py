"""A program that consumes, transforms and produces is killed again and again: in the end everything is there once.

`LOGSTORE_KILL_ROUNDS` is how often; `make prove-exactly-once` does it a thousand times.
"""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from logstore.model import FetchIsolation
from tests.house.sources import ROOT
from tests.stories.exactly_once_program import GROUP, OUTPUTS, PARTITION_COUNT, open_store
from tests.support.logs import records_of
from tests.support.sampling import case_count

ROUND_COUNT = case_count("LOGSTORE_KILL_ROUNDS", sample=3, whole=8)
FINISH_EVERY = 50  # rounds, so that a fault is found near where it happened
SEED = 20261121
WORK_SECONDS_MAX = 0.5
OPENING_SECONDS_MAX = 1.5


def start(directory: Path, seed: int, *how: str) -> subprocess.Popen[str]:
    """Begin a round."""
    command = [sys.executable, "-m", "tests.stories.exactly_once_program", str(directory), str(seed), *how]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_and_kill(directory: Path, seed: int) -> None:
    """Let the program run, and kill it: while it works, or, now and then, while it opens the store."""
    dice = random.Random(seed)
    program = start(directory, seed)
    assert program.stdout is not None
    if dice.random() < 0.25:
        time.sleep(dice.uniform(0, OPENING_SECONDS_MAX))
    else:
        program.stdout.readline()
        time.sleep(dice.uniform(0, WORK_SECONDS_MAX))
    assert program.poll() is None, program.communicate()[1]
    program.kill()
    program.communicate()


def finish(directory: Path, seed: int) -> None:
    """Let the program consume what is left, and end."""
    program = start(directory, seed, "finish")
    _, errors = program.communicate()
    assert (program.returncode, errors) == (0, "")


def check_counts(directory: Path) -> int:
    """Every input is in both outputs once, whole transactions in both, and the group has read all of it."""
    with open_store(str(directory)) as store:
        topics = {
            topic: [
                records_of(store.log(topic, partition), isolation=FetchIsolation.READ_COMMITTED)
                for partition in range(PARTITION_COUNT)
            ]
            for topic in ("in", *OUTPUTS)
        }
        numbers = {
            topic: sorted(int(record.value or b"") for partition in partitions for record in partition)
            for topic, partitions in topics.items()
        }
        assert numbers["in"] == list(range(len(numbers["in"])))
        assert all(numbers[topic] == numbers["in"] for topic in OUTPUTS)
        transactions = [
            Counter(record.headers[0][1] for partition in topics[topic] for record in partition) for topic in OUTPUTS
        ]
        assert transactions[0] == transactions[1]
        offsets = store.groups.fetch(GROUP)
        for number, records in enumerate(topics["in"]):
            reached = offsets.get(("in", number))
            assert all(reached is not None and record.offset < reached.offset for record in records)
        for partition in range(PARTITION_COUNT):
            for topic in ("in", *OUTPUTS):
                log = store.log(topic, partition)
                assert log.last_stable_offset == log.log_end_offset  # nothing is left open
        return len(numbers["in"])


@pytest.mark.slow
def test_every_input_is_in_the_output_once_however_often_it_is_killed(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    count = 0
    for number in range(ROUND_COUNT):
        run_and_kill(directory, SEED + number)
        if (number + 1) % FINISH_EVERY == 0 or number + 1 == ROUND_COUNT:
            finish(directory, SEED - number)
            count = check_counts(directory)
    assert count > 0
