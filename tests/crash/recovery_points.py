"""Recovery stopped before each of its system calls, unsynced writes lost or torn, and run again ends the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from logstore.disk.seam import Seam
from logstore.errors import LogstoreError
from logstore.layout.file_names import LOG_SUFFIX, segment_file_name
from logstore.log.load.recover import recover_partition
from tests.crash.lossy_disk import LossyDisk
from tests.crash.points import DRAWS, Point
from tests.recovery.cases import NOW_MS, Case, damaged_cases
from tests.recovery.comparison import Answer, described, files
from tests.support.dice import Dice
from tests.support.recovered_json import as_json
from tests.support.seams import UnsyncedSeam
from tests.support.snapshots import comparable_content

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
    case(9, "compacted/tombstones-kept-0", ("remove", f"{BASE.format(65)}.index", "")),
    case(10, "transactions-v0/rolled-0", ("remove", f"{BASE.format(33)}.index", ""), ("epochs", "", "10")),
]


def recover(directory: Path, chosen: Case, seam: Seam) -> Answer:
    state, _ = recover_partition(str(directory), chosen.settings(), seam)
    return {"state": as_json(state), "files": files(directory)}


def points(golden: Callable[[str], Path], seed: str, place: Path) -> Iterator[Point]:
    """Recover one of the directories above, or one damaged by chance that a broker starts with."""
    if Dice(seed).chance(20):
        yield from points_of(Dice(f"{seed} chosen").choose(CASES), golden, seed, place)
        return
    for damaged in damaged_cases(seed, golden, 20):  # one in twenty is refused, not most
        # from offset 0, so that nothing that the damage made up, a producer snapshot say, is believed in either run
        chosen = replace(damaged, clean=False, log_start=0, recovery_point=0, now=NOW_MS)
        directory = chosen.lay_out(golden(chosen.golden), place / "asked")
        sizes = {path.name: path.stat().st_size for path in directory.iterdir()}
        try:
            answer = recover(directory, chosen, UnsyncedSeam())
        except LogstoreError:
            continue
        if not is_cut_inside(answer, sizes):
            yield from points_of(chosen, golden, seed, place)
            return


def is_cut_inside(answer: Answer, sizes: Mapping[str, int]) -> bool:
    """Whether a segment was cut and those behind it were kept.

    For Kafka too: a torn segment whose index is damaged as well is cut when its index is made, before the load comes to
    it. Had a crash come between the two, the load would cut it, and remove the segments behind it.
    """
    segments = answer["state"]["segments"][:-1]
    return any(one["bytes"] < sizes.get(segment_file_name(one["base"], LOG_SUFFIX), 0) for one in segments)


def points_of(chosen: Case, golden: Callable[[str], Path], seed: str, place: Path) -> Iterator[Point]:
    """Recover the directory.

    After a crash at the very end that is a second recovery, or after two crashes a third, which for Kafka too may know
    more than the one before: an epoch that was dropped because it began behind a cut, say, is found again in the
    batches before.
    """
    source = golden(chosen.golden)
    whole = chosen.lay_out(source, place / "whole")
    expected = [recover(whole, chosen, UnsyncedSeam()) for _ in range(3)]
    directory = chosen.lay_out(source, place / "watched")
    disk = LossyDisk(directory, seed, draws=DRAWS)
    assert recover(directory, chosen, disk) == expected[0]
    durable = disk.survivor("lost")
    assert {name: described(comparable_content(name, content)) for name, content in durable} == expected[0]["files"], (
        "not all is synced in the end"
    )
    for left in disk.left:
        look = partial(check, chosen, expected)
        yield Point.of(left, directory.name, reopen=partial(reopen, chosen), look=look)


def reopen(chosen: Case, directory: Path, seam: Seam) -> None:
    """Recover it again."""
    recover_partition(str(directory), chosen.settings(), seam)


def check(chosen: Case, expected: list[Answer], directory: Path, _: bool) -> None:
    assert recover(directory, chosen, UnsyncedSeam()) in expected, str(chosen)
