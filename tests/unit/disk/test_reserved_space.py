"""A log that grows has blocks set aside ahead of its end: never seen in its size, and given back when it is closed."""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path

import pytest

from logstore.disk.reserved_space import ReservedSpace
from logstore.disk.seam import SEAM, Seam
from logstore.log.partition_log import PartitionLog
from tests.support.logs import open_partition_log

NOW_MS = 10**13
MIB = 1 << 20
BLOCK_SIZE = 512  # what `st_blocks` counts
SLACK = 64 << 10  # bytes; what a file system may take for a file of its size


class Asked(Seam):
    """Remembers what it is asked to set aside; does it, or says that it cannot."""

    def __init__(self, *, has_room: bool = True) -> None:
        self.asked: list[tuple[int, int]] = []
        self.cuts: list[int] = []
        self._has_room = has_room

    def reserve(self, descriptor: int, position: int, size: int) -> bool:
        self.asked.append((position, size))
        return self._has_room and super().reserve(descriptor, position, size)

    def truncate(self, descriptor: int, size: int) -> None:
        self.cuts.append(size)
        super().truncate(descriptor, size)


class Roomy(Asked):
    """Has room without any file."""

    def reserve(self, descriptor: int, position: int, size: int) -> bool:
        self.asked.append((position, size))
        return True


def log_of(path: Path, seam: Seam, **config: str) -> PartitionLog:
    return open_partition_log(path, config, seam=seam)


def space_of(path: Path) -> int:
    return path.stat().st_blocks * BLOCK_SIZE


def can_reserve(place: Path) -> bool:
    path = place / "probe"
    descriptor = SEAM.create(str(path))
    is_able = SEAM.reserve(descriptor, 0, MIB)
    SEAM.close(descriptor)
    path.unlink()
    return is_able


def test_a_file_keeps_its_size_and_gives_back_what_it_does_not_use(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    descriptor = SEAM.create(str(path))
    SEAM.write(descriptor, b"batch")
    is_able = SEAM.reserve(descriptor, 5, MIB)
    assert path.stat().st_size == 5
    if sys.platform == "linux":
        assert is_able == (space_of(path) >= MIB)
    space = ReservedSpace(SEAM, descriptor, 5, 8 * MIB)
    space.extend(5, 10)
    space.give_back(5)
    assert space_of(path) <= SLACK
    SEAM.write(descriptor, b" and more")
    SEAM.close(descriptor)
    assert path.read_bytes() == b"batch and more"


def test_reserved_space_grows_as_the_file_does_up_to_its_greatest_size(tmp_path: Path) -> None:
    seam = Roomy()
    descriptor = seam.create(str(tmp_path / "0.log"))
    space = ReservedSpace(seam, descriptor, 7, 60 * MIB)
    seam.close(descriptor)
    size, ends = 7, [space.end]
    while size < 60 * MIB:
        if size + MIB > space.end:
            space.extend(size, min(MIB, 60 * MIB - size))
            ends.append(space.end)
        size = min(size + MIB, 60 * MIB)
    assert ends[:4] == [7 + MIB, 7 + 3 * MIB, 7 + 7 * MIB, 7 + 15 * MIB]
    assert max(later - earlier for earlier, later in itertools.pairwise(ends)) <= 17 * MIB
    assert ends[-1] == 60 * MIB
    assert len(seam.asked) > 4
    assert all(position + size <= 60 * MIB for position, size in seam.asked)


def test_a_larger_batch_than_was_thought_is_still_reserved(tmp_path: Path) -> None:
    seam = Roomy()
    descriptor = seam.create(str(tmp_path / "0.log"))
    space = ReservedSpace(seam, descriptor, 0, MIB)
    seam.close(descriptor)
    space.extend(0, 3 * MIB)
    assert (seam.asked, space.end) == ([(0, 3 * MIB)], 3 * MIB)


def test_disk_without_room_is_asked_once(tmp_path: Path) -> None:
    seam = Asked(has_room=False)
    log = log_of(tmp_path / "t-0", seam)
    for _ in range(40):
        log.append_records([bytes(100_000)])
    assert len(seam.asked) == 1
    log.close()
    assert not seam.cuts
    assert (tmp_path / "t-0" / f"{0:020}.log").stat().st_size == log.state.active.size


@pytest.mark.parametrize("ends", ["closed", "rolled"])
def test_a_log_asks_seldom_and_leaves_no_more_than_its_batches(tmp_path: Path, ends: str) -> None:
    seam = Asked()
    log = log_of(tmp_path / "t-0", seam)
    path = tmp_path / "t-0" / f"{0:020}.log"
    for number in range(5000):
        log.append_records([bytes(1000)])
        assert os.stat(path).st_size == log.state.active.size
        if number == 4000 and can_reserve(tmp_path):
            assert space_of(path) > log.state.active.size + MIB // 2
    assert 1 < len(seam.asked) <= 4
    size = log.state.active.size
    if ends == "rolled":
        log.roll()
    else:
        log.close()
    assert path.stat().st_size == size
    assert space_of(path) <= size + SLACK
    log.close()
    again = log_of(tmp_path / "t-0", SEAM)
    assert again.log_end_offset == 5000
    again.close()


def test_space_that_a_killed_writer_left_is_given_back(tmp_path: Path) -> None:
    log = log_of(tmp_path / "t-0", SEAM)
    log.append_records([bytes(100_000)] * 8)
    log.append_records([bytes(100_000)] * 8)
    size = log.state.active.size
    log.state.active.release()  # as the system does it; nothing else is done any more
    path = tmp_path / "t-0" / f"{0:020}.log"
    if can_reserve(tmp_path):
        assert space_of(path) > size + MIB // 2
    log_of(tmp_path / "t-0", SEAM).close()
    assert (path.stat().st_size, space_of(path) <= size + SLACK) == (size, True)


def test_a_small_log_asks_for_nothing(tmp_path: Path) -> None:
    seam = Asked()
    log = log_of(tmp_path / "t-0", seam)
    log.append_records([bytes(1000)] * 900)
    log.close()
    assert not seam.asked
    assert not seam.cuts


def test_a_cleaned_segment_leaves_no_more_than_its_batches(tmp_path: Path) -> None:
    seam = Asked()
    log = log_of(tmp_path / "t-0", seam, **{"cleanup.policy": "compact"})
    for number in range(40):
        keys = [b"%d-%d" % (number, key) for key in range(100)]
        log.append_records([bytes(1000)] * 100, keys)
    log.roll()
    asked_count = len(seam.asked)
    assert log.clean(log.cleanable(None, NOW_MS), NOW_MS) == 4000
    assert len(seam.asked) > asked_count
    assert sum(map(len, log.records().chunks())) == 4000
    path = tmp_path / "t-0" / f"{0:020}.log"
    assert space_of(path) <= path.stat().st_size + SLACK
    log.close()
