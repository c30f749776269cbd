"""Partitions damaged by chance: what a broker's recovery leaves is proven clean, and so is what salvage saves.

`LOGSTORE_AUDIT_CASES` says how many. Leader epochs, offsets and magic lie outside of a batch's checksum: a broker takes
them as they are, so that such damage outlives its recovery, and is found after it too.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from logstore.audit.partition import open_partition
from logstore.audit.verify import verify_partition
from logstore.errors import LogstoreError, UsageError
from logstore.log.load.recover import recover_partition
from logstore_tools.salvage.salvage import salvage
from tests.recovery.cases import Case, damaged_cases
from tests.support.sampling import case_count
from tests.support.seams import UnsyncedSeam

CASE_COUNT = case_count("LOGSTORE_AUDIT_CASES", sample=40, whole=240)
SEED = os.environ.get("LOGSTORE_AUDIT_SEED", "audit")
OUTSIDE_OF_CHECKSUMS = {"log-leader-epoch", "log-offset-order", "log-magic", "leader-epochs"}
CHECKPOINT = "log-start-offset-checkpoint"
BROKEN_WRAPPERS = "legacy"  # in which a broker's recovery itself fails
BROKEN_MARKERS = "broken-"  # found in the undamaged partition already, and no broker's recovery asks for them

Golden = Callable[[str], Path]


def rules_of(directory: Path) -> set[str]:
    return {finding.rule for finding in verify_partition(open_partition(str(directory))).findings}


@pytest.fixture(scope="module")
def cases(golden: Golden) -> list[Case]:
    return [
        replace(case, clean=False, recovery_point=0)
        for case in damaged_cases(SEED, golden, CASE_COUNT)
        if case.golden != BROKEN_WRAPPERS and not case.partition.startswith(BROKEN_MARKERS)
    ]


def laid_out(cases: list[Case], golden: Golden, place: Path) -> Iterator[tuple[Case, Path]]:
    """Each case's directory, with a checkpoint of its log start beside it; removed behind it."""
    for case in cases:
        directory = case.lay_out(golden(case.golden), place)
        topic, _, number = directory.name.rpartition("-")
        checkpoint = directory.parent / CHECKPOINT
        checkpoint.write_text(f"0\n1\n{topic} {number} {case.log_start}\n" if case.log_start else "")
        yield case, directory
        shutil.rmtree(directory.parent)


def test_recovered_directories_are_clean(cases: list[Case], golden: Golden, tmp_path: Path) -> None:
    found, recovered_count = [], 0
    for case, directory in laid_out(cases, golden, tmp_path):
        try:
            recover_partition(str(directory), case.settings(), UnsyncedSeam())
        except LogstoreError:
            continue  # damage with which no broker starts
        recovered_count += 1
        if rules := rules_of(directory) - OUTSIDE_OF_CHECKSUMS:
            found.append((case, rules))
    assert found == []
    assert recovered_count > CASE_COUNT // 2


def test_damage_that_recovery_cuts_is_found_before(cases: list[Case], golden: Golden, tmp_path: Path) -> None:
    missed, cut_count = [], 0
    for case, directory in laid_out(cases, golden, tmp_path):
        before = rules_of(directory)
        try:
            repairs = recover_partition(str(directory), case.settings(), UnsyncedSeam())[1].repairs
        except LogstoreError as error:
            repairs, cut = (), [str(error)]
        else:
            cut = [str(repair) for repair in repairs if repair.file.endswith(".log")]
        starts_beyond = any("starts at" in one for one in cut)  # found by the checkpoint, see `checkpoint_checks`
        cut_count += bool(cut)
        if cut and not before and not starts_beyond:
            missed.append((case, cut))
    assert missed == []
    assert cut_count > CASE_COUNT // 10


def test_salvaged_directories_are_clean(cases: list[Case], golden: Golden, tmp_path: Path) -> None:
    found, rescued_count = [], 0
    for case, directory in laid_out(cases, golden, tmp_path / "damaged"):
        if any(directory.glob("*.log.swap")):
            with pytest.raises(UsageError, match="in the place of segments"):
                salvage(str(directory), str(tmp_path / directory.name), case.settings())
            continue
        rescued = tmp_path / "rescued" / directory.name
        rescued.parent.mkdir(parents=True)
        salvage(str(directory), str(rescued), case.settings(), seam=UnsyncedSeam())
        # salvage keeps what a broker loads, a control batch of nobody too, and cannot bring back what is lost
        if rules := rules_of(rescued) - OUTSIDE_OF_CHECKSUMS - {"log-marker", "offsets-lost"}:
            found.append((case, rules))
        shutil.rmtree(rescued.parent)
        rescued_count += 1
    assert found == []
    assert rescued_count > CASE_COUNT // 2
