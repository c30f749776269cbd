"""Cleaning and retention stopped before each of their system calls, unsynced writes lost or torn, the log opened again.

In place of the segments that are cleaned into one there must be their old batches or the new ones, all of them; but
the last of those segments may be there as they were, if nothing of them is left in the new one: by its offsets a load
cannot tell then that it replaces them. `LOGSTORE_CRASH_CASES` is the number of logs, `LOGSTORE_CRASH_SEED`
makes a run again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from logstore.errors import DataDirectoryError
from logstore.log.config import LogConfig
from logstore.log.partition_log import PartitionLog
from tests.crash.lossy_disk import LossyDisk, write_survivor
from tests.kafka.cleaning_cases import NOW, CleaningCase, cleaning_cases, example_case, lay_out, opened
from tests.support.logs import Batches, batches_of
from tests.support.sampling import case_count, seed_of
from tests.support.seams import FullDisk, UnsyncedSeam

CASE_COUNT = case_count("LOGSTORE_CRASH_CASES", sample=1, whole=4)
SEED = seed_of("CRASH")
LATER = NOW + 100_000


def delete_all(log: PartitionLog) -> None:
    """Segment after segment, the active one too."""
    for segment in list(log.segments)[1:]:
        log.increment_log_start_offset(segment.base_offset)
        log.delete_old_segments(NOW)
    log.remove_deleted_files(NOW)
    log.update_config({**log.config, "cleanup.policy": ["delete"], "retention.ms": 0})
    log.delete_old_segments(LATER + 10**9)
    log.remove_deleted_files(LATER + 10**9)


def survivors(disk: LossyDisk, place: Path) -> list[Path]:
    """The directories that a crash could have left."""
    return [write_survivor(each, place / str(number) / "t-0") for number, each in enumerate(disk.survivors)]


def laid_out(number: int, place: Path) -> tuple[CleaningCase, LogConfig, Path]:
    """The example that has everything first, then logs by chance."""
    case = [example_case(10), *cleaning_cases(f"{SEED} crash", number)][number]
    case.config |= {"min.compaction.lag.ms": "0", "cleanup.policy": "compact", "delete.retention.ms": "10"}
    directory = place / "watched" / "t-0"
    return case, lay_out(case, directory), directory


@pytest.mark.parametrize("number", range(CASE_COUNT))
def test_an_interrupted_cleaning_leaves_old_or_new_batches(number: int, tmp_path: Path) -> None:
    case, config, directory = laid_out(number, tmp_path)
    disk = LossyDisk(directory, f"{SEED}/{number}")
    log = opened(directory, config, NOW, was_clean=True, seam=disk)
    states, rounds, end_offset = [batches_of(log)], [], log.log_end_offset
    for now_ms in (NOW, LATER):
        old_bases = log.segments.base_offsets
        log.clean(log.cleanable(None, now_ms), now_ms)
        log.remove_deleted_files(now_ms)
        states.append(batches_of(log))
        rounds.append(Round(states[-2], states[-1], old_bases, [*log.segments.base_offsets, end_offset]))
    log.close()
    assert number > 0 or states[0] != states[1] != states[2]
    assert len(disk.survivors) > (5 if number else 20) or states[0] == states[2]
    for directory in survivors(disk, tmp_path):
        again = opened(directory, config, NOW, was_clean=False, seam=UnsyncedSeam())
        where = f"seed {SEED} case {case.number} {directory}"
        assert again.log_end_offset == end_offset, where
        found = batches_of(again)
        assert any(round_.may_leave(found) for round_ in rounds), where
        again.close()


@dataclass
class Round:
    """A round of cleaning: the batches and base offsets before, and the batches and bounds of the segments after it."""

    old: Batches
    new: Batches
    old_bases: list[int]
    bounds: list[int]

    def may_leave(self, found: Batches) -> bool:
        """Whether each segment has its new batches, or the old ones of all those it was made of."""
        return all(part(found, *ends) in self._allowed(*ends) for ends in pairwise(self.bounds))

    def _allowed(self, start: int, end: int) -> Iterator[Batches]:
        yield part(self.new, start, end)
        for base in self.old_bases:
            if start <= base < end and (base == start or not part(self.new, base, end)):
                yield part(self.new, start, base) + part(self.old, base, end)


def part(batches: Batches, start: int, end: int) -> Batches:
    return [batch for batch in batches if start <= batch[0] < end]


@pytest.mark.parametrize("number", range(CASE_COUNT))
def test_an_interrupted_retention_leaves_the_end_of_the_log(number: int, tmp_path: Path) -> None:
    case, config, directory = laid_out(number, tmp_path)
    disk = LossyDisk(directory, f"{SEED}/{number}")
    log = opened(directory, config, NOW, was_clean=True, seam=disk)
    before, end_offset = batches_of(log), log.log_end_offset
    delete_all(log)
    assert batches_of(log) == []
    log.close()
    lengths = set()
    for directory in survivors(disk, tmp_path):
        again = opened(directory, config, NOW, was_clean=False, seam=UnsyncedSeam())
        found = batches_of(again)
        assert found == before[len(before) - len(found) :], f"seed {SEED} case {case.number} {directory}"
        assert again.log_end_offset == end_offset
        lengths.add(len(found))
        again.close()
    assert len(lengths) >= len(case.segments)


@pytest.mark.parametrize("writes_left", [0, 1, 4])
def test_a_disk_that_is_full_ends_a_cleaning_and_changes_nothing(writes_left: int, tmp_path: Path) -> None:
    _, config, directory = laid_out(0, tmp_path)
    disk = FullDisk()
    log = opened(directory, config, NOW, was_clean=True, seam=disk)
    before, names = batches_of(log), sorted(path.name for path in directory.iterdir())
    disk.writes_left = writes_left
    with pytest.raises(DataDirectoryError, match="No space left"):
        log.clean(log.cleanable(None, NOW), NOW)
    assert batches_of(log) == before
    assert sorted(path.name for path in directory.iterdir()) == names
    log.close()
