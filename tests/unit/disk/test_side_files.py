"""Reading side files from disk: golden ones as values, unreadable ones as errors in Java's words."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from logstore.disk import side_files
from logstore.disk.files import ends_of, read_file, read_index_file
from logstore.disk.names import absolute_path, child, file_name, java_file, parent, sibling
from logstore.disk.system_errors import io_error, path_in
from logstore.errors import CorruptSnapshotError, DataDirectoryError
from tests.naive.checksum import crc32c


def test_the_side_files_of_a_real_broker_agree_with_one_another(golden: Callable[[str], Path]) -> None:
    root = golden("transactions")
    recovery_points = side_files.read_offset_checkpoint(str(root / "recovery-point-offset-checkpoint"))
    high_watermarks = side_files.read_offset_checkpoint(str(root / "replication-offset-checkpoint"))
    assert recovery_points == high_watermarks != {}
    for topic, partition in recovery_points:
        directory = root / f"{topic}-{partition}"
        assert len(side_files.read_partition_metadata(str(directory / "partition.metadata")).topic_id) == 22
        epochs = side_files.read_leader_epoch_checkpoint(str(directory / "leader-epoch-checkpoint"))
        assert epochs == sorted(epochs)
    meta_properties = side_files.read_meta_properties(str(root / "meta.properties"))
    assert (meta_properties.version, meta_properties.node_id) == (1, 1)
    state = side_files.read_quorum_state(str(root / "__cluster_metadata-0/quorum-state"))
    assert state.leader_id == 1


def test_the_indexes_of_a_real_broker_are_sane(golden: Callable[[str], Path]) -> None:
    aborted_count = 0
    for directory in golden("transactions").glob("*-*"):
        for path in directory.glob("*.index"):
            side_files.read_offset_index(str(path)).sanity_check()
            side_files.read_time_index(str(path.with_suffix(".timeindex"))).sanity_check()
        for path in directory.glob("*.txnindex"):
            index = side_files.read_transaction_index(str(path))
            index.sanity_check(int(path.stem))
            aborted_count += index.entry_count
        for path in directory.glob("*.snapshot"):
            snapshot = side_files.read_producer_snapshot(str(path))
            assert snapshot.stored_crc == crc32c(path.read_bytes()[6:])
    assert aborted_count > 0


def test_a_snapshot_with_another_checksum_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "1.snapshot"
    path.write_bytes(b"\0\1" + crc32c(bytes(4)).to_bytes(4, "big") + bytes(4))
    assert side_files.read_producer_snapshot(str(path)).entry_count == 0
    path.write_bytes(bytes([0, 1, 0, 0, 0, 5]) + bytes(4))
    with pytest.raises(CorruptSnapshotError, match=r"Snapshot is corrupt \(CRC is no longer valid\). Stored crc: 5."):
        side_files.read_producer_snapshot(str(path))


@pytest.mark.parametrize(
    ("read", "name", "java_class", "text"),
    [
        (read_file, "none", "java.nio.file.NoSuchFileException", "{}/none"),
        (read_file, "file/x", "java.nio.file.FileSystemException", "{}/file/x: Not a directory"),
        (read_file, "directory", "java.io.IOException", "Is a directory"),
        (
            read_file,
            "loop",
            "java.nio.file.FileSystemException",
            "{}/loop: Too many levels of symbolic links or unable to access attributes of symbolic link",
        ),
        (read_file, "huge", "java.lang.IllegalArgumentException", "Size exceeds Integer.MAX_VALUE"),
        (read_index_file, "none", "java.io.FileNotFoundException", "{}/none (No such file or directory)"),
        (read_index_file, "directory//", "java.io.FileNotFoundException", "{}/directory (Is a directory)"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_as_by_java(
    read: Callable[[str], bytes], name: str, java_class: str, text: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "directory").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate(2**31)
    with pytest.raises(DataDirectoryError) as caught:
        read(f"{tmp_path}/{name}")
    assert (caught.value.java_class, caught.value.message) == (java_class, text.format(tmp_path))


def test_the_ends_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"12345")
    assert [ends_of(str(tmp_path / "x"), 4, *sizes) for sizes in ((1, 2), (9, 9))] == [b"134", b"12341234"]
    with pytest.raises(DataDirectoryError, match=f"{tmp_path}/y"):
        ends_of(str(tmp_path / "y"), 3, 3, 3)


def test_the_path_that_an_error_names(tmp_path: Path) -> None:
    refused = ValueError()
    refused.__cause__ = FileNotFoundError(2, "no such file", "/a/b")
    found = [path_in(error) for error in (DataDirectoryError("x", path="/a"), refused, ValueError())]
    assert found == ["/a", "/a/b", None]
    assert io_error(OSError(5, "Input/output error")).path is None  # of no file that is known


def test_names_are_those_of_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert [java_file(path) for path in ("a//b/", "b/", "/", "//", "./a/..", "")] == [
        *("a/b", "b", "/", "/", "./a/..", "")
    ]
    assert [file_name(path) for path in ("a//b/", "/", "b", "")] == ["b", "", "b", ""]
    assert [parent(path) for path in ("/a/b", "/a", "/")] == ["/a", "/", "/"]
    assert [child("/", "a"), child("/a", "b")] == ["/a", "/a/b"]
    assert [absolute_path(path) for path in ("./x", "/x//y", "")] == [f"{tmp_path}/./x", "/x/y", f"{tmp_path}"]
    assert sibling("d/../1.index", "1.log") == f"{tmp_path}/d/../1.log"
