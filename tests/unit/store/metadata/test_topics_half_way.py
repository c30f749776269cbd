"""Changes of topics that fail between the record and the directories: what there is then, and after a new opening."""

from __future__ import annotations

import errno
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from logstore.disk.system_errors import nio_error
from logstore.errors import DataDirectoryError, KafkaStorageError
from logstore.replay.metadata_image import MetadataImage, TopicImage
from logstore.store import partitions
from logstore.store.metadata.topics import TopicDescription, describe
from tests.recovery.comparison import UnsyncedSeam
from tests.support.clock import Clock
from tests.support.small_store import START_MS
from tests.support.stores import open_store

opened = partial(open_store, now_ms=Clock(START_MS))


def directories(root: Path) -> list[str]:
    """Those of the topic, as far as they are live."""
    return sorted(path.name for path in root.glob("t-*") if path.is_dir() and "." not in path.name)


def test_a_topic_that_cannot_be_made_is_not_there(tmp_path: Path) -> None:
    opened(tmp_path).close()
    (tmp_path / "t-1").write_text("in the way")
    for _ in range(2):
        with opened(tmp_path) as store:
            for _ in range(2):
                with pytest.raises(DataDirectoryError, match="t-1") as caught:
                    store.create_topic("t", 3)
                assert "of partition t-1" in caught.value.__notes__[0]
                assert list(store.topics) == directories(tmp_path) == []
    (tmp_path / "t-1").unlink()
    with opened(tmp_path) as store:
        assert store.create_topic("t", 3).partition_count == 3
        assert [store.log("t", one).append_records([b"a"]).first_offset for one in range(3)] == [0, 0, 0]


def test_a_topic_whose_making_is_interrupted_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with opened(tmp_path) as store:
        with monkeypatch.context() as patch:
            patch.setattr(partitions, "make_log", interrupted)
            with pytest.raises(KeyboardInterrupt):
                store.create_topic("t")
        assert list(store.topics) == []
        store.create_topic("t")


class RefusedDirectory(UnsyncedSeam):
    """A disk that refuses the directory of one partition, and tells what was done to directories."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def make_directory(self, path: str) -> None:
        if path.endswith("t-2"):
            self.done.append("refused")
            raise nio_error(OSError(errno.EACCES, os.strerror(errno.EACCES)), path)
        super().make_directory(path)
        self.done.append(Path(path).name)

    def sync_directory(self, path: str) -> None:
        self.done.append("synced")


def test_directories_made_by_an_opening_before_one_that_is_refused_are_synced(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.create_topic("t", 3)
    for path in tmp_path.glob("t-*"):
        shutil.rmtree(path)
    seam = RefusedDirectory()
    with pytest.raises(DataDirectoryError, match="t-2"):
        opened(tmp_path, seam=seam)
    # the next opening finds them, and takes them for synced
    assert seam.done[seam.done.index("t-0") :] == ["t-0", "t-1", "refused", "synced"]


class FullDisk(UnsyncedSeam):
    """From the second directory on nothing is written, until there is room again."""

    is_full = False

    def make_directory(self, path: str) -> None:
        if path.endswith("t-1"):
            self.is_full = True
        self._require_room(path)
        super().make_directory(path)

    def write(self, descriptor: int, data: bytes | bytearray | memoryview) -> None:
        self._require_room(None)
        super().write(descriptor, data)

    def _require_room(self, path: str | None) -> None:
        if self.is_full:
            raise DataDirectoryError("No space left on device", path=path)


def test_a_topic_that_can_neither_be_made_nor_removed_is_completed_by_the_next_opening(tmp_path: Path) -> None:
    seam = FullDisk()
    with opened(tmp_path, seam=seam) as store:
        with pytest.raises((DataDirectoryError, KafkaStorageError)) as caught:
            store.create_topic("t", 3)
        assert any("is completed by the next opening" in note for note in caught.value.__notes__)
        seam.is_full = False
    with opened(tmp_path) as store:
        assert store.topics["t"].partition_count == 3
        assert [store.log("t", one).log_end_offset for one in range(3)] == [0, 0, 0]


def test_partitions_that_cannot_be_made_are_when_they_are_asked_for(tmp_path: Path) -> None:
    opened(tmp_path).close()
    (tmp_path / "t-2").write_text("in the way")
    with opened(tmp_path) as store:
        store.create_topic("t", 1)
        store.log("t", 0).append_records([b"a"])
        with pytest.raises(DataDirectoryError, match="t-2") as caught:
            store.add_partitions("t", 4)
        assert "each is made when it is asked for" in caught.value.__notes__[-1]
        assert store.topics["t"].partition_count == 4
        assert store.log("t", 3).append_records([b"d"]).first_offset == 0
        with pytest.raises(DataDirectoryError, match="t-2"):
            store.log("t", 2)
        (tmp_path / "t-2").unlink()
        assert store.log("t", 2).append_records([b"c"]).first_offset == 0
    with opened(tmp_path) as store:  # nobody had asked for the partition 1
        assert [store.log("t", one).log_end_offset for one in range(4)] == [1, 0, 1, 1]


class Unrenaming(UnsyncedSeam):
    """One directory cannot be renamed, as long as that is so."""

    is_refused = True

    def rename(self, path: str, new_path: str) -> None:
        if self.is_refused and path.endswith("t-0"):
            raise DataDirectoryError("Permission denied", path=path)
        super().rename(path, new_path)


def test_a_topic_whose_directories_cannot_be_put_aside_is_deleted(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.create_topic("t", 3)
        store.log("t", 0).append_records([b"a"])
    with opened(tmp_path, seam=Unrenaming()) as store:
        with pytest.raises(DataDirectoryError, match="Permission denied") as caught:
            store.delete_topic("t")
        assert "topic t is deleted" in caught.value.__notes__[-1]
        assert list(store.topics) == []
        assert store.stray_directories == (str(tmp_path / "t-0"),)
        assert directories(tmp_path) == ["t-0"]
    with opened(tmp_path) as store:
        assert directories(tmp_path) == []
        store.create_topic("t")
        assert store.log("t", 0).log_end_offset == 0


def test_a_topic_is_created_where_a_deleted_one_left_its_directory(tmp_path: Path) -> None:
    seam = Unrenaming()
    with opened(tmp_path, seam=seam) as store:
        store.create_topic("t")
        store.log("t", 0).append_records([b"a"])
        with pytest.raises(DataDirectoryError, match="Permission denied"):
            store.delete_topic("t")
        seam.is_refused = False
        store.create_topic("t")
        assert store.log("t", 0).log_end_offset == 0
        assert store.stray_directories == ()


def test_both_errors_of_a_deletion_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KafkaStorageError("the disk is full")

    with opened(tmp_path) as store:
        store.create_topic("t")
    with opened(tmp_path, seam=Unrenaming()) as store:
        monkeypatch.setattr(store.groups, "topic_deleted", fail)
        with pytest.raises(DataDirectoryError, match="Permission denied") as caught:
            store.delete_topic("t")
        assert "the disk is full" in caught.value.__notes__[-1]


def test_the_epoch_of_a_leader_waits_for_no_change_of_topics(tmp_path: Path) -> None:
    """Commits of offsets and markers ask for it; a change of topics holds the lock while it waits for the disk."""
    with opened(tmp_path) as store:
        store.create_topic("t")
        with store.directory.lock, ThreadPoolExecutor(1) as pool:
            assert pool.submit(lambda: store.log("t", 0).leader_epoch).result(10) == 0
            assert pool.submit(store.describe_topic, "t").result(10).name == "t"


def test_a_change_describes_the_topic_that_it_changes_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def counting(image: MetadataImage, topic: TopicImage) -> TopicDescription:
        calls.append(topic.name)
        return describe(image, topic)

    with opened(tmp_path) as store:
        for module in ("host", "metadata.topic_changes"):
            monkeypatch.setattr(f"logstore.store.{module}.describe", counting)
        for number in range(10):
            store.create_topic(f"t{number}")
        assert len(calls) <= 2 * 10
        assert len(store.topics) == 10
