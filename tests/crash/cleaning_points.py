"""Cleaning and retention stopped before each of their system calls, unsynced writes lost or torn, the log opened again.

In place of the segments that are cleaned into one there must be their old batches or the new ones, all of them; but
the last of those segments may be there as they were, if nothing of them is left in the new one: by its offsets a load
cannot tell then that it replaces them. Retention leaves the end of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

from logstore.config.topic import LogConfig
from logstore.disk.seam import Seam
from logstore.log.partition_log import PartitionLog
from tests.crash.lossy_disk import LossyDisk
from tests.crash.points import DRAWS, Point
from tests.kafka.cleaning_cases import NOW, CleaningCase, cleaning_cases, example_case, lay_out, opened
from tests.support.dice import Dice
from tests.support.logs import Batches, batches_of
from tests.support.seams import UnsyncedSeam

LATER = NOW + 100_000


def cleaning_points(seed: str, place: Path) -> Iterator[Point]:
    """Clean a log twice."""
    config, directory = laid_out(seed, place)
    disk = LossyDisk(directory, seed, draws=DRAWS)
    log = opened(directory, config, NOW, was_clean=True, seam=disk)
    states, rounds, end_offset = [batches_of(log)], [], log.log_end_offset
    for now_ms in (NOW, LATER):
        old_bases = log.state.segments.base_offsets
        log.clean(log.cleanable(None, now_ms), now_ms)
        log.remove_deleted_files(now_ms)
        states.append(batches_of(log))
        rounds.append(Round(states[-2], states[-1], old_bases, [*log.state.segments.base_offsets, end_offset]))
    log.roll()  # there are calls also where nothing is cleaned
    log.close()
    yield from points_of(disk, config, end_offset, lambda found: any(round_.may_leave(found) for round_ in rounds))


def retention_points(seed: str, place: Path) -> Iterator[Point]:
    """Delete all segments of a log, one after the other."""
    config, directory = laid_out(seed, place)
    disk = LossyDisk(directory, seed, draws=DRAWS)
    log = opened(directory, config, NOW, was_clean=True, seam=disk)
    before, end_offset = batches_of(log), log.log_end_offset
    delete_all(log)
    assert batches_of(log) == []
    log.close()
    yield from points_of(disk, config, end_offset, lambda found: found == before[len(before) - len(found) :])


def laid_out(seed: str, place: Path) -> tuple[LogConfig, Path]:
    """The example that has everything, or a log by chance."""
    case: CleaningCase = Dice(seed).choose([example_case(10), *cleaning_cases(f"{seed} crash", 3)])
    case.config |= {"min.compaction.lag.ms": "0", "cleanup.policy": "compact", "delete.retention.ms": "10"}
    directory = place / "watched" / "t-0"
    return lay_out(case, directory), directory


def delete_all(log: PartitionLog) -> None:
    """Segment after segment, the active one too."""
    for segment in list(log.state.segments)[1:]:
        log.increment_log_start_offset(segment.base_offset)
        log.delete_old_segments(NOW)
    log.remove_deleted_files(NOW)
    log.update_config({**log.config, "cleanup.policy": ["delete"], "retention.ms": 0})
    log.delete_old_segments(LATER + 10**9)
    log.remove_deleted_files(LATER + 10**9)


def points_of(
    disk: LossyDisk, config: LogConfig, end_offset: int, is_right: Callable[[Batches], bool]
) -> Iterator[Point]:
    """What the disk may have left: a log that ends at `end_offset` with the right batches."""
    for left in disk.left:
        look = partial(check, config, end_offset, is_right)
        yield Point.of(left, "t-0", reopen=partial(reopen, config), look=look)


def reopen(config: LogConfig, directory: Path, seam: Seam) -> PartitionLog:
    """As after a crash, with nothing known to be flushed."""
    return opened(directory, config, NOW, was_clean=False, seam=seam)


def check(config: LogConfig, end_offset: int, is_right: Callable[[Batches], bool], directory: Path, _: bool) -> None:
    log = reopen(config, directory, UnsyncedSeam())
    assert log.log_end_offset == end_offset
    assert is_right(batches_of(log))
    log.close()


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
