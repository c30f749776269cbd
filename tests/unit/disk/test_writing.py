"""Files are replaced whole and durably, links are not followed, and a data directory is locked as Kafka locks it."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from logstore.disk import seam
from logstore.disk.atomic import replace_file, truncate_file, write_output
from logstore.disk.lock import DataDirectoryLock, data_directory_lock, is_lock_held, require_not_held
from logstore.disk.seam import SEAM
from logstore.errors import DataDirectoryError
from logstore.layout.checkpoint_writing import leader_epoch_checkpoint_bytes
from logstore.layout.leader_epoch_checkpoint import parse_leader_epoch_checkpoint
from tests.support.seams import FullDisk, ListeningSeam

LOCKS_IT = """
import fcntl, sys
file = open(sys.argv[1], "r+")
fcntl.lockf(file, fcntl.LOCK_EX)
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_file_is_replaced_in_the_order_that_survives_a_crash(tmp_path: Path) -> None:
    path = tmp_path / "0.index"
    path.write_bytes(b"old and longer")
    listening = ListeningSeam()
    replace_file(listening, str(path), b"new", temporary_suffix=".tmp")
    assert path.read_bytes() == b"new"
    assert listening.calls == [
        "create 0.index.tmp",
        "write",
        "sync",
        "rename 0.index",
        f"sync directory {tmp_path.name}",
    ]
    assert [file.name for file in tmp_path.iterdir()] == ["0.index"]


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o002, 0o664), (0o077, 0o600)])
def test_files_are_made_for_whom_the_umask_lets_in(umask: int, mode: int, tmp_path: Path) -> None:
    """As a JVM makes them: a broker of another user of the group starts on the directory."""
    before = os.umask(umask)
    try:
        replace_file(SEAM, str(tmp_path / "0.index"), b"")
        DataDirectoryLock(str(tmp_path)).release()
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert modes == {"0.index": mode, ".lock": mode}


def test_an_output_is_whole_or_the_old_one_and_an_error_names_the_file_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    write_output(SEAM, str(path), b"old")
    with pytest.raises(DataDirectoryError):
        write_output(FullDisk(writes_left=0), str(path), b"new and longer")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("page.html", b"old")]
    write_output(SEAM, str(path), b"new and longer")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("page.html", b"new and longer")]
    with pytest.raises(DataDirectoryError) as caught:
        write_output(SEAM, str(tmp_path / "nosuch" / "page.html"), b"")
    assert caught.value.message == str(tmp_path / "nosuch" / "page.html")


def test_an_output_goes_to_a_device_or_pipe_as_it_is_and_not_to_what_a_link_names(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    descriptor = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_output(SEAM, str(tmp_path / "pipe"), b"a page")
    assert os.read(descriptor, 100) == b"a page"
    os.close(descriptor)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataDirectoryError, match="symbolic link"):
        write_output(SEAM, str(tmp_path / "link"), b"a page")
    assert {file.name for file in tmp_path.iterdir()} == {"pipe", "link"}


@pytest.mark.parametrize("size", [0, 3, 4, 5, 9])
def test_no_call_of_the_system_gets_more_than_it_takes(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    write = os.write

    def written(descriptor: int, data: bytes) -> int:
        sizes.append(len(data))
        return write(descriptor, data)

    monkeypatch.setattr(os, "write", written)
    monkeypatch.setattr(seam, "_WRITE_SIZE_MAX", 4)
    descriptor = SEAM.create(str(tmp_path / "x"))
    SEAM.write(descriptor, b"123456789"[:size])
    SEAM.close(descriptor)
    assert (tmp_path / "x").read_bytes() == b"123456789"[:size]
    assert max(sizes) <= 4


def test_a_file_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "0.log"
    path.write_bytes(b"0123456789")
    truncate_file(SEAM, str(path), 4)
    assert path.read_bytes() == b"0123"


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"keep this")
    (tmp_path / "0.log").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataDirectoryError, match="symbolic link") as caught:
        truncate_file(SEAM, str(tmp_path / "0.log"), 0)
    assert caught.value.found == str(tmp_path / "elsewhere")
    assert (tmp_path / "elsewhere").read_bytes() == b"keep this"


@pytest.mark.parametrize(
    ("call", "java_class"),
    [
        (lambda path: SEAM.open(path), "java.nio.file.NoSuchFileException"),
        (lambda path: SEAM.unlink(path), "java.nio.file.NoSuchFileException"),
        (lambda path: SEAM.rename(path, path + "x"), "java.nio.file.NoSuchFileException"),
        (lambda path: SEAM.make_directory(path + "/sub"), "java.nio.file.NoSuchFileException"),
        (lambda path: SEAM.sync_directory(path), "java.nio.file.NoSuchFileException"),
        (lambda path: SEAM.write(os.open("/dev/null", os.O_RDONLY), b"x"), "java.io.IOException"),
        (lambda path: SEAM.truncate(os.open("/dev/null", os.O_RDONLY), 0), "java.io.IOException"),
    ],
)
def test_errors_of_the_system_have_a_name(call: object, java_class: str, tmp_path: Path) -> None:
    with pytest.raises(DataDirectoryError) as caught:
        call(str(tmp_path / "missing"))  # type: ignore[operator]
    assert caught.value.java_class == java_class


def test_epochs_are_read_as_they_were_written() -> None:
    epochs = [(0, 0), (3, 17), (4, 2**62)]
    assert parse_leader_epoch_checkpoint(leader_epoch_checkpoint_bytes(epochs), path="/x") == epochs


def test_a_locked_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    argv = [sys.executable, "-c", LOCKS_IT, str(tmp_path / ".lock")]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "locked\n"
        with (
            pytest.raises(DataDirectoryError, match=r"Failed to acquire lock on file .lock in"),
            data_directory_lock(str(tmp_path)),
        ):
            pass
        with pytest.raises(DataDirectoryError, match=r"Failed to acquire lock on file .lock in") as held:
            require_not_held(str(tmp_path))
        assert held.value.found == f"process {other.pid}"
        other.communicate("")
    require_not_held(str(tmp_path))
    with data_directory_lock(str(tmp_path)):
        assert (tmp_path / ".lock").exists()


def test_a_file_system_without_locks_is_no_other_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".lock").touch()

    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "lockf", refuse)
    monkeypatch.setattr(fcntl, "fcntl", refuse)
    for call in (DataDirectoryLock, require_not_held):
        with pytest.raises(DataDirectoryError, match=r"Disk error while locking.*found No locks available") as refused:
            call(str(tmp_path))
        assert not is_lock_held(refused.value)
    monkeypatch.undo()
    DataDirectoryLock(str(tmp_path)).release()


def test_a_lock_is_looked_at_without_being_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".lock").touch()
    taken = list[object]()
    monkeypatch.setattr(fcntl, "lockf", lambda *asked: taken.append(asked))
    require_not_held(str(tmp_path))
    assert taken == []


def test_a_directory_of_no_broker_is_not_locked_and_gets_no_file(tmp_path: Path) -> None:
    with data_directory_lock(str(tmp_path)):
        assert list(tmp_path.iterdir()) == []
    (tmp_path / "meta.properties").touch()
    with data_directory_lock(str(tmp_path)):
        assert (tmp_path / ".lock").exists()


def test_a_lock_that_nobody_has_any_more_is_free(tmp_path: Path) -> None:
    """An interrupt may come between its making and the line that remembers it."""
    DataDirectoryLock(str(tmp_path))
    lock = DataDirectoryLock(str(tmp_path))
    with pytest.raises(DataDirectoryError, match="Failed to acquire lock"):
        DataDirectoryLock(str(tmp_path))
    lock.release()
    DataDirectoryLock(str(tmp_path)).release()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell the path of a descriptor")
def test_errors_of_calls_on_an_open_file_name_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    full, read_only = os.open("/dev/full", os.O_WRONLY), os.open(tmp_path / "file", os.O_RDONLY)
    with pytest.raises(DataDirectoryError, match="No space left on device; at /dev/full"):
        SEAM.write(full, b"x")
    with pytest.raises(DataDirectoryError, match=f"at {tmp_path}/file"):
        SEAM.truncate(read_only, 10)
    os.close(full)
    os.close(read_only)
