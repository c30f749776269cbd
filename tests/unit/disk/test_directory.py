"""A data directory as values: what lies where, and what does not belong there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from logstore.disk.directory import list_data_directory, list_partition_directory
from logstore.errors import DataDirectoryError, InvalidNameError
from logstore.layout.file_names import DirectoryKind


def touch(root: Path, *paths: str) -> None:
    for path in paths:
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()


def test_directory_of_a_real_broker_is_listed_whole(golden: Callable[[str], Path]) -> None:
    path = golden("transactions")
    directory = list_data_directory(str(path))
    assert directory.errors == ()
    assert directory.left_overs == ()
    expected = {entry.name for entry in path.iterdir() if entry.is_dir()}
    assert {f"{partition.topic}-{partition.partition}" for partition in directory.partitions} == expected
    for partition in directory.partitions:
        assert partition.left_overs == ()
        assert {segment.log for segment in partition.segments} == {
            str(log) for log in Path(partition.path).glob("*.log")
        }


def test_segments_ascend_and_know_which_files_they_have(tmp_path: Path) -> None:
    touch(tmp_path, "t-0/9.log", "t-0/10.log", "t-0/10.index", "t-0/10.timeindex", "t-0/9.txnindex", "t-0/8.index")
    partition = list_partition_directory(f"{tmp_path}//t-0/")
    at = f"{tmp_path}/t-0/"
    nine, ten = partition.segments
    assert (nine.base_offset, nine.log, nine.offset_index, nine.transaction_index) == (
        9,
        at + "9.log",
        None,
        at + "9.txnindex",
    )
    assert (ten.base_offset, ten.offset_index, ten.time_index, ten.transaction_index) == (
        10,
        at + "10.index",
        at + "10.timeindex",
        None,
    )
    assert partition.left_overs == (at + "8.index",)


def test_snapshots_checkpoints_and_left_overs_are_told_apart(tmp_path: Path) -> None:
    snapshot = "00000000000000000042-0000000003.checkpoint"
    touch(tmp_path, *[f"__cluster_metadata-0/{name}" for name in ("7.snapshot", snapshot, snapshot + ".part")])
    touch(tmp_path, "__cluster_metadata-0/quorum-state", "__cluster_metadata-0/7.log.deleted")
    partition = list_data_directory(str(tmp_path)).partitions[0]
    at = f"{tmp_path}/__cluster_metadata-0/"
    assert partition.producer_snapshots == {7: at + "7.snapshot"}
    assert partition.kraft_snapshots == {(42, 3): at + snapshot}
    assert partition.files == {"quorum-state": at + "quorum-state"}
    assert partition.left_overs == (at + snapshot + ".part", at + "7.log.deleted")


def test_two_names_of_one_offset_are_a_segment_and_a_left_over(tmp_path: Path) -> None:
    touch(tmp_path, "t-0/007.log", "t-0/7.log")
    partition = list_partition_directory(str(tmp_path / "t-0"))
    assert [segment.log for segment in partition.segments] == [f"{tmp_path}/t-0/007.log"]
    assert partition.left_overs == (f"{tmp_path}/t-0/7.log",)


def test_the_name_that_a_broker_gives_comes_first(tmp_path: Path) -> None:
    names = [f"{0:020d}.log", f"{0:019d}.log", "+0.log", f"{0:021d}.log"]
    for name in names:
        touch(tmp_path, f"t-0/{name}")
    partition = list_partition_directory(str(tmp_path / "t-0"))
    assert [segment.log for segment in partition.segments] == [f"{tmp_path}/t-0/{names[0]}"]
    assert {error.path for error in partition.errors} == {f"{tmp_path}/t-0/{name}" for name in names[1:]}


def test_snapshots_of_the_metadata_log_are_asked_for_there_alone(tmp_path: Path) -> None:
    touch(tmp_path, "t-0/backup.checkpoint", "__cluster_metadata-0/backup.checkpoint")
    metadata, other = list_data_directory(str(tmp_path)).partitions
    assert [error.path for error in metadata.errors] == [f"{tmp_path}/__cluster_metadata-0/backup.checkpoint"]
    assert (other.errors, other.left_overs) == ((), (f"{tmp_path}/t-0/backup.checkpoint",))


def test_a_file_without_an_offset_is_an_error_and_a_left_over(tmp_path: Path) -> None:
    touch(tmp_path, "t-0/x.log", "t-0/1.log")
    partition = list_partition_directory(str(tmp_path / "t-0"))
    assert [segment.base_offset for segment in partition.segments] == [1]
    assert partition.left_overs == (f"{tmp_path}/t-0/x.log",)
    assert [error.message for error in partition.errors] == ['For input string: "x"']


def test_a_directory_or_a_fifo_with_the_name_of_a_file_is_an_error_and_a_left_over(tmp_path: Path) -> None:
    touch(tmp_path, "t-0/0.log", "t-0/other/0.log")
    (tmp_path / "t-0" / "0.index").mkdir()
    os.mkfifo(tmp_path / "t-0" / "9.log")
    os.mkfifo(tmp_path / "t-0" / "other.fifo")
    partition = list_partition_directory(str(tmp_path / "t-0"))
    assert [(segment.base_offset, segment.offset_index) for segment in partition.segments] == [(0, None)]
    assert [error.path for error in partition.errors] == [f"{tmp_path}/t-0/0.index", f"{tmp_path}/t-0/9.log"]
    assert [Path(path).name for path in partition.left_overs] == ["0.index", "9.log", "other", "other.fifo"]


def test_partitions_are_told_apart_by_their_suffix(tmp_path: Path) -> None:
    touch(tmp_path, "a-0/0.log", "a-1.f00d-delete/0.log", "a-2.f00d-future/0.log", "a-3.f00d-stray/0.log")
    partitions = list_data_directory(str(tmp_path)).partitions
    kinds = [(partition.partition, partition.kind) for partition in partitions]
    assert kinds == [
        (0, DirectoryKind.LIVE),
        (1, DirectoryKind.DELETE),
        (2, DirectoryKind.FUTURE),
        (3, DirectoryKind.STRAY),
    ]


def test_stray_files_are_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    touch(tmp_path, "t-0/0.log", "foreign/x", "remote-log-index-cache/x", "meta.properties", "note.txt")
    directory = list_data_directory(str(tmp_path))
    assert [partition.topic for partition in directory.partitions] == ["t"]
    assert directory.files == {"meta.properties": f"{tmp_path}/meta.properties"}
    assert directory.left_overs == (f"{tmp_path}/note.txt",)
    (error,) = directory.errors
    assert isinstance(error, InvalidNameError)
    assert error.java_class == "org.apache.kafka.common.KafkaException"
    assert (error.message or "").startswith(f"Found directory {tmp_path}/foreign, 'foreign' is not in the form of")


def test_links_are_followed_within_the_data_directory_only(tmp_path: Path) -> None:
    touch(tmp_path, "outside/0.log", "data/t-0/0.log")
    (tmp_path / "data/u-0").symlink_to(tmp_path / "data/t-0")
    (tmp_path / "data/v-0").symlink_to(tmp_path / "outside")
    (tmp_path / "data/t-0/1.log").symlink_to(tmp_path / "outside/0.log")
    directory = list_data_directory(str(tmp_path / "data"))
    assert [(partition.topic, len(partition.segments)) for partition in directory.partitions] == [("t", 1), ("u", 1)]
    assert [error.path for error in directory.errors] == [f"{tmp_path}/data/v-0"]
    assert [error.path for error in directory.partitions[0].errors] == [f"{tmp_path}/data/t-0/1.log"]


def test_path_that_is_no_data_directory_is_refused(tmp_path: Path) -> None:
    touch(tmp_path, "file")
    with pytest.raises(DataDirectoryError) as caught:
        list_data_directory(str(tmp_path / "none"))
    assert caught.value.message == f"{tmp_path}/none"
    with pytest.raises(DataDirectoryError, match="Not a directory"):
        list_data_directory(str(tmp_path / "file"))
    with pytest.raises(InvalidNameError):
        list_partition_directory(str(tmp_path))
