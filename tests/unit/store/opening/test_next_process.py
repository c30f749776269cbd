"""What one process leaves and the next one finds: names that are used again, directories to be removed, the marker."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any

import pytest

import logstore
from logstore.client.store import Store
from logstore.disk.side_files import read_offset_checkpoint
from logstore.errors import CorruptRecordError, LogstoreError
from logstore.layout.checkpoint_writing import offset_checkpoint_bytes
from logstore.log.load.opening import PlannedLog
from logstore.store import partitions
from tests.support.clock import Clock
from tests.support.small_store import START_MS

CHECKPOINTS = ("recovery-point", "log-start", "replication", "cleaner")


def checkpoint(root: Path, name: str) -> dict[tuple[str, int], int]:
    return read_offset_checkpoint(str(root / f"{name}-offset-checkpoint"))


def filled(store: Store) -> None:
    """A topic whose log begins at offset 5 and ends at 9."""
    store.create_topic("t", 1)
    store.create_topic("kept", 1)
    for name in ("t", "kept"):
        store.log(name, 0).append_records([b"%d" % number for number in range(9)])
        store.log(name, 0).delete_records(5)


def assert_new(store: Store) -> None:
    log = store.log("t", 0)
    assert (log.log_start_offset, log.log_end_offset, log.recovery_point) == (0, 0, 0)
    assert log.append_records([b"a"]).first_offset == 0
    assert store.log("kept", 0).log_start_offset == 5


def test_a_topic_that_is_made_anew_begins_at_0_in_a_later_process_too(tmp_path: Path) -> None:
    with logstore.open(tmp_path) as store:
        filled(store)
    with logstore.open(tmp_path) as store:
        store.delete_topic("t")
        store.create_topic("t", 1)
        assert_new(store)


def test_it_does_where_a_crash_left_the_checkpoints_of_the_deleted_one(tmp_path: Path) -> None:
    with logstore.open(tmp_path / "running") as store:
        filled(store)
    kept = {("kept", 0): 5}
    before = {**kept, ("t", 0): 5}
    with logstore.open(tmp_path / "running") as store:
        store.delete_topic("t")
        crashed = Path(shutil.copytree(tmp_path / "running", tmp_path / "crashed"))
    for name in CHECKPOINTS:
        (crashed / f"{name}-offset-checkpoint").write_bytes(offset_checkpoint_bytes(before))
    with logstore.open(crashed) as store:
        assert {name: checkpoint(crashed, name) for name in CHECKPOINTS} == dict.fromkeys(CHECKPOINTS, kept)
        store.create_topic("t", 1)
        assert_new(store)


def test_directories_that_an_earlier_process_put_aside_are_removed(tmp_path: Path) -> None:
    clock = Clock(START_MS)
    with logstore.open(tmp_path, now_ms=clock) as store:
        filled(store)
        store.delete_topic("t")
        assert len(list(tmp_path.glob("t-0.*-delete"))) == 1
    clock.now_ms += 3_600_000
    with logstore.open(tmp_path, now_ms=clock) as store:
        clock.now_ms += 59_000  # `file.delete.delay.ms` begins anew, as for a broker
        store.run_due()
        assert len(list(tmp_path.glob("t-0.*-delete"))) == 1
        clock.now_ms += 61_000
        store.run_due()
        assert list(tmp_path.glob("t-0*")) == []
        assert store.failures == {}


def crashed_with_many(tmp_path: Path) -> Path:
    with logstore.open(tmp_path / "running") as store:
        store.create_topic("many", 6)
        for number in range(6):
            store.log("many", number).append_records([b"a"])
        return Path(shutil.copytree(tmp_path / "running", tmp_path / "crashed"))


class Meeting:
    """Plans of openings that wait until so many are made at once."""

    def __init__(self, count: int) -> None:
        self.barrier = threading.Barrier(count)
        self.real = partitions.PlannedLog

    def open(self, path: str, *args: Any, **kwargs: Any) -> PlannedLog:
        if "many-" in path:
            self.barrier.wait(60)
        return self.real(path, *args, **kwargs)


def test_partitions_are_recovered_side_by_side(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = crashed_with_many(tmp_path)
    monkeypatch.setattr(partitions, "PlannedLog", Meeting(3).open)
    with logstore.open(root, config={"num.recovery.threads.per.data.dir": 3}) as store:
        assert [store.log("many", number).log_end_offset for number in range(6)] == [1] * 6


def test_of_partitions_that_are_recovered_side_by_side_the_bad_one_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = crashed_with_many(tmp_path)
    before = {path: path.read_bytes() for path in root.glob("many-*/*")}

    def told_planning(path: str, *args: Any, **kwargs: Any) -> PlannedLog:
        if path.endswith("many-4"):
            raise CorruptRecordError("damaged", path=path)
        return PlannedLog(path, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(partitions, "PlannedLog", told_planning)
        with pytest.raises(LogstoreError, match="damaged") as caught:
            logstore.open(root, config={"num.recovery.threads.per.data.dir": 3})
    assert caught.value.__notes__[0].startswith("of partition many-4;")
    assert {path: path.read_bytes() for path in root.glob("many-*/*")} == before
    with logstore.open(root) as store:
        assert [store.log("many", number).log_end_offset for number in range(6)] == [1] * 6
