"""What a crash before a system call leaves, and what another one leaves while it is recovered from, is whole.

`LOGSTORE_CRASH_CASES` is the number of worlds of each kind, `LOGSTORE_CRASH_SEED` makes them again; `make
prove-crashes` looks at a million points.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from logstore.layout.file_names import LOG_SUFFIX
from tests.crash import log_points, recovery_points
from tests.crash.lossy_disk import LossyDisk
from tests.crash.points import Point
from tests.crash.prove import KINDS, looked_at
from tests.support.golden import Golden
from tests.support.sampling import IS_LONG, case_count, sampled, seed_of

CASE_COUNT = case_count("LOGSTORE_CRASH_CASES", sample=1, whole=4)
SEED = seed_of("CRASH")
POINTS_MAX = 2000 if IS_LONG else 10  # of a world; chosen by chance


def check_points(points: Callable[[str, Path], Iterator[Point]], seed: str, place: Path, *, least: int = 1) -> None:
    """Look at a world of which at least so many points are known."""
    try:
        counts = looked_at(points, seed, place, limit=POINTS_MAX)
    except Exception as error:
        error.add_note(f"LOGSTORE_CRASH_SEED={SEED}")
        raise
    assert counts["points"] >= least
    assert counts["again"] >= least


@pytest.mark.parametrize("number", range(CASE_COUNT))
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_crash_leaves_is_whole(kind: str, number: int, tmp_path: Path) -> None:
    check_points(KINDS[kind], f"{SEED} {kind} {number}", tmp_path)


@pytest.mark.parametrize(
    "chosen", sampled(recovery_points.CASES, recovery_points.CASES[::4]), ids=lambda chosen: str(chosen.number)
)
def test_interrupted_recovery_ends_the_same(chosen: recovery_points.Case, golden: Golden, tmp_path: Path) -> None:
    check_points(partial(recovery_points.points_of, chosen, golden), SEED, tmp_path, least=8)


@pytest.mark.parametrize("number", range(CASE_COUNT))
def test_interrupted_recovery_of_any_damage_ends_the_same(number: int, golden: Golden, tmp_path: Path) -> None:
    check_points(partial(recovery_points.points, golden), f"{SEED} {number}", tmp_path)


def test_a_flush_that_syncs_no_batches_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is as it was before the flush; only the later promise tells that something is missing."""
    sync = LossyDisk.sync

    def sync_beside(disk: LossyDisk, descriptor: int) -> None:
        if not os.readlink(f"/proc/self/fd/{descriptor}").endswith(LOG_SUFFIX):
            sync(disk, descriptor)

    monkeypatch.setattr(LossyDisk, "sync", sync_beside)
    with pytest.raises(AssertionError):
        looked_at(log_points.points, "unsynced", tmp_path)
