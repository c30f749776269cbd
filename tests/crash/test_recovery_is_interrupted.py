"""Recovery stopped before each of its system calls, unsynced writes lost or torn, and run again ends the same.

`LOGSTORE_CRASH_CASES` adds that many damaged directories by chance to those below, `LOGSTORE_CRASH_SEED`
makes a run again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from logstore.disk.seam import Seam
from logstore.errors import LogstoreError
from logstore.log.load.recover import recover_partition
from logstore.log.load.recovered import as_json
from tests.crash.lossy_disk import LossyDisk, write_survivor
from tests.recovery.cases import NOW_MS, Case, damaged_cases
from tests.recovery.comparison import Answer, described, files
from tests.support.sampling import case_count, seed_of
from tests.support.seams import UnsyncedSeam

CASE_COUNT = case_count("LOGSTORE_CRASH_CASES", sample=1, whole=4)
SEED = seed_of("CRASH")
SMALL = {"segment.index.bytes": "65536", "index.interval.bytes": "100"}
BASE = "000000000000000000{}"
LOG = BASE + ".log"


def case(number: int, partition: str, *damages: tuple[str, str, str], log_start: int = 0) -> Case:
    golden, name = partition.split("/")
    return Case(number, golden, name, damages, False, log_start, 0, NOW_MS, SMALL)


CASES = [
    case(0, "killed/rolled-0"),
    case(1, "killed/rolled-0", ("tear", LOG.format(33), "1")),
    case(2, "transactions/rolled-0", ("damage", f"flip-bit:{LOG.format(16)}", "2"), ("remove", LOG.format(49), "")),
    case(3, "transactions/rolled-0", ("leave-over", f".swap:{BASE.format(16)}", "3")),
    case(
        4,
        "transactions/rolled-0",
        ("leave-over", f".cleaned:{BASE.format(16)}", "4"),
        ("swap", BASE.format(49), "4"),
    ),
    case(5, "transactions/rolled-0", ("tear", LOG.format(65), "5"), log_start=90),
    case(6, "transactions/rolled-0", ("offset", f"{LOG.format(65)}:5000000000", "")),
    case(7, "transactions/rolled-0", ("damage", f"repeat-batch:{LOG.format(16)}", "7")),
    case(8, "compacted/tombstones-kept-0", ("remove", f"{BASE.format('00')}.index", ""), ("snapshot", "121", "8")),
]


def recover(directory: Path, chosen: Case, seam: Seam) -> Answer:
    state = as_json(recover_partition(str(directory), chosen.settings(), seam))
    del state["repaired"]
    return {"state": state, "files": files(directory)}


def check(chosen: Case, source: Path, place: Path) -> int:
    """Recovers again what a crash before each call would have left; the number of those directories.

    After a crash at the very end that is a second recovery, which for Kafka too may know more than the first: an epoch
    that was dropped because it began behind a cut, say, is found again in the batches before.
    """
    whole = chosen.lay_out(source, place / "whole")
    expected = recover(whole, chosen, UnsyncedSeam())
    twice = recover(whole, chosen, UnsyncedSeam())
    directory = chosen.lay_out(source, place / "watched")
    disk = LossyDisk(directory, f"{SEED}/{chosen.number}")
    assert recover(directory, chosen, disk) == expected
    durable = disk.survivor("lost")
    assert {name: described(content) for name, content in durable} == expected["files"], "not all is synced in the end"
    for number, (survivor, crash) in enumerate(disk.survivors.items()):
        again = write_survivor(survivor, place / f"{number}" / directory.name)
        assert recover(again, chosen, UnsyncedSeam()) in (expected, twice), f"{chosen} seed {SEED} crash {crash}"
    return len(disk.survivors)


@pytest.mark.parametrize("chosen", CASES, ids=lambda chosen: str(chosen.number))
def test_interrupted_recovery_ends_the_same(chosen: Case, golden: Callable[[str], Path], tmp_path: Path) -> None:
    assert check(chosen, golden(chosen.golden), tmp_path) > 20


def test_interrupted_recovery_of_any_damage_ends_the_same(golden: Callable[[str], Path], tmp_path: Path) -> None:
    """From offset 0, so that nothing that the damage made up, a producer snapshot say, is believed in either run."""
    recovered_count = 0
    for damaged in damaged_cases(SEED, golden, 2 * CASE_COUNT + 5):
        if recovered_count == CASE_COUNT:
            break
        chosen = replace(damaged, clean=False, log_start=0, recovery_point=0, now=NOW_MS)
        place = tmp_path / str(chosen.number)
        try:
            recover(chosen.lay_out(golden(chosen.golden), place / "asked"), chosen, UnsyncedSeam())
        except LogstoreError:
            continue  # a broker does not start with it either
        assert check(chosen, golden(chosen.golden), place) > 0
        recovered_count += 1
    assert recovered_count == CASE_COUNT, f"seed {SEED}: one in twenty is refused, not most"
