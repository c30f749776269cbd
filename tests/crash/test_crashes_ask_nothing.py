"""A log that was cleaning or deleting when its process ended is recovered without asking: no record would go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from logstore.config.topic import LogConfig
from logstore.disk.seam import Writable
from logstore.log.load.loader import LoadSettings
from logstore.log.load.recover import plan_recovery
from logstore.log.partition_log import PartitionLog
from tests.crash.cleaning_points import LATER, delete_all, laid_out
from tests.kafka.cleaning_cases import NOW, opened
from tests.support.seams import UnsyncedSeam


class Planning(UnsyncedSeam):
    """Plans a recovery before each call that changes a file.

    Attributes:
        swap_count: plans beside a `.swap` file.
        lost: what they would have removed.
    """

    def __init__(self, directory: Path, config: LogConfig) -> None:
        self._directory = directory
        self._settings = LoadSettings(False, 0, 0, NOW, config, accepts_loss=False)
        self.swap_count = 0
        self.lost = list[object]()

    def plan(self) -> None:
        self.swap_count += any(path.suffix == ".swap" for path in self._directory.iterdir())
        self.lost += plan_recovery(str(self._directory), self._settings).readable

    def create(self, path: str) -> int:
        self.plan()
        return super().create(path)

    def write(self, descriptor: int, data: Writable) -> None:
        self.plan()
        super().write(descriptor, data)

    def rename(self, path: str, new_path: str) -> None:
        self.plan()
        super().rename(path, new_path)

    def unlink(self, path: str) -> None:
        self.plan()
        super().unlink(path)


def clean_twice(log: PartitionLog) -> None:
    for now_ms in (NOW, LATER):
        log.clean(log.cleanable(None, now_ms), now_ms)
        log.remove_deleted_files(now_ms)


@pytest.mark.parametrize("work", [clean_twice, delete_all], ids=["cleaning", "retention"])
@pytest.mark.parametrize("seed", ["a", "b", "c", "d"])
def test_no_record_would_go(work: Callable[[PartitionLog], None], seed: str, tmp_path: Path) -> None:
    config, directory = laid_out(seed, tmp_path)
    seam = Planning(directory, config)
    log = opened(directory, config, NOW, was_clean=True, seam=seam)
    work(log)
    log.close()
    seam.plan()
    assert seam.lost == []
    assert seam.swap_count > 0 or work is delete_all
