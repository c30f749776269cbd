"""A store of many partitions under a small limit of open files: the same bytes, as durable, an error that says so."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from logstore.client.store import Store
from logstore.config.broker import OPEN_FILES_MAX
from logstore.disk import open_files
from logstore.disk.open_files import OpenFiles
from logstore.disk.seam import Seam
from logstore.disk.system_errors import io_error
from logstore.errors import KafkaStorageError, TooManyOpenFilesError
from tests.support.clock import Clock
from tests.support.seams import ListeningSeam
from tests.support.stores import open_store

UNDER_A_LIMIT = """
import resource, sys
import logstore

path, limit, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
with logstore.open(path, now_ms=lambda: 1_700_000_000_000) as store:
    store.create_topic("many", count)
    for value in (b"a", b"b", b"c" * 200_000, b"d"):
        for number in range(count):
            store.log("many", number).append_records([value])
    consumer = store.consumer(enable_auto_commit=False, auto_offset_reset="earliest")
    consumer.assign([("many", number) for number in range(count)])
    read = 0
    while read < 4 * count:
        read += sum(map(len, consumer.poll(1000).values()))
    readers = [store.log("many", number).records() for number in range(count)]
    assert all(sum(map(len, reader.chunks())) == 4 for reader in readers)
with logstore.open(path) as store:
    assert [store.log("many", number).log_end_offset for number in range(count)] == [4] * count
"""


def content_of(path: Path) -> dict[str, bytes]:
    """Content of each file of the partitions, but their ids."""
    files = sorted(path.glob("many-*/*"))
    return {str(file.relative_to(path)): file.read_bytes() for file in files if file.name != "partition.metadata"}


def test_many_partitions_under_a_small_limit_have_the_same_bytes(tmp_path: Path) -> None:
    for name, limit in (("small", 100), ("large", 2000)):
        arguments = [sys.executable, "-c", UNDER_A_LIMIT, str(tmp_path / name), str(limit), "120"]
        subprocess.run(arguments, check=True)
    small = content_of(tmp_path / "small")
    assert len(small) > 120 * 4
    assert small == content_of(tmp_path / "large")


class SyncedFirst(Seam):
    """Notes what was written and is closed without a sync."""

    def __init__(self) -> None:
        self.unsynced: set[int] = set()
        self.closed_unsynced: list[str] = []
        self.open_logs: set[int] = set()
        self.most_open = 0
        self.failing: str | None = None

    def open(self, path: str) -> int:
        descriptor = super().open(path)
        if path.endswith(".log"):
            self.open_logs.add(descriptor)
            self.most_open = max(self.most_open, len(self.open_logs))
        return descriptor

    def write(self, descriptor: int, data: bytes | bytearray | memoryview) -> None:
        self.unsynced.add(descriptor)
        super().write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        if self.failing is not None and self.failing in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise io_error(OSError(5, os.strerror(5)), descriptor)
        self.unsynced.discard(descriptor)
        super().sync(descriptor)

    def close(self, descriptor: int) -> None:
        self.open_logs.discard(descriptor)
        if descriptor in self.unsynced:
            self.closed_unsynced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
            self.unsynced.discard(descriptor)
        super().close(descriptor)


def budgeted(path: Path, seam: Seam, count_max: int, partitions: int = 20) -> Store:
    store = open_store(path, seam=seam, now_ms=Clock(), config={OPEN_FILES_MAX: count_max})
    store.create_topic("t", partitions)
    return store


def test_a_file_is_synced_before_it_is_closed_for_another(tmp_path: Path) -> None:
    seam = SyncedFirst()
    with budgeted(tmp_path, seam, 4) as store:
        for _ in range(3):
            for number in range(20):
                store.log("t", number).append_records([b"v"])
        assert 4 <= seam.most_open <= 4 + 1  # the metadata log has the budget of the process
        assert not [name for name in seam.closed_unsynced if name.endswith(".log")]
        assert [store.log("t", number).recovery_point for number in range(20)] == [0] * 20
    assert not [name for name in seam.closed_unsynced if name.endswith(".log")]


def test_the_log_that_is_used_stays_open(tmp_path: Path) -> None:
    with budgeted(tmp_path, Seam(), 4, partitions=40) as store:
        used = store.log("t", 0)
        for number in range(1, 40):
            used.append_records([b"v"])
            store.log("t", number).append_records([b"v"])
        assert used.state.active.open_count <= 3  # it would be ten, if the first that was opened were closed first


def test_a_sync_that_fails_ends_the_writing_of_that_log_alone(tmp_path: Path) -> None:
    seam = SyncedFirst()
    store = budgeted(tmp_path, seam, 2, partitions=4)
    store.log("t", 0).append_records([b"lost"])
    seam.failing = "/t-0/"
    for number in (1, 2, 3, 1, 2, 3):
        store.log("t", number).append_records([b"v"])
    with pytest.raises(KafkaStorageError, match=r"already offline.*Input/output error"):
        store.log("t", 0).append_records([b"v"])
    store.close()
    with open_store(tmp_path) as store:
        assert [store.log("t", number).log_end_offset for number in range(4)] == [1, 2, 2, 2]


def test_a_log_that_nobody_wrote_costs_its_close_nothing(tmp_path: Path) -> None:
    with budgeted(tmp_path, Seam(), 0) as store:
        store.log("t", 0).append_records([b"v"])
    before = {path: path.read_bytes() for path in sorted(tmp_path.glob("t-*/*"))}
    seam = ListeningSeam()
    with open_store(tmp_path, seam=seam, now_ms=Clock()) as store:
        for number in range(20):
            assert store.log("t", number).log_end_offset == (number == 0)
        assert len(list(store.log("t", 0).records().chunks())) == 1
        seam.calls.clear()
        store.directory._partitions.close_all()
        assert seam.calls == []
    assert before == {path: path.read_bytes() for path in sorted(tmp_path.glob("t-*/*"))}


@pytest.fixture
def small_limit() -> Iterator[None]:
    """Let this process open some 100 files for the time of a test, beside those that other tests left open."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/dev/fd")))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 100, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@contextmanager
def no_descriptor_left(*, takes_spare: bool = False) -> Iterator[None]:
    """`with` block inside of which the process can open nothing: the program has used up all descriptors."""
    with ExitStack() as taken:
        while True:
            try:
                taken.callback(os.close, os.open(os.devnull, os.O_RDONLY))
            except OSError:
                if not takes_spare or not open_files._SPARE.give():
                    break
        yield


@pytest.mark.usefixtures("small_limit")
def test_running_out_is_told_and_loses_nothing(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.create_topic("t", 3)
    first, second = store.log("t", 0), store.log("t", 1)
    first.append_records([b"1"])
    with no_descriptor_left(takes_spare=True):
        first.append_records([b"2"])  # its file is open
        for _ in range(2):
            # the other logs give theirs up, but those are too few
            with pytest.raises(TooManyOpenFilesError, match=r"too many open files.*ulimit -n"):
                second.append_records([b"3"])
            with pytest.raises(TooManyOpenFilesError):
                second.roll()
        assert [first.is_writable, second.is_writable] == [True, True]
    assert second.append_records([b"4"]).first_offset == 0
    assert first.log_end_offset == 2
    with no_descriptor_left():
        second.append_records([b"5"])
        second.roll()
        store.close()
    assert (tmp_path / ".kafka_cleanshutdown").exists()
    with open_store(tmp_path) as store:
        assert [store.log("t", number).log_end_offset for number in range(3)] == [2, 2, 0]


@pytest.mark.usefixtures("small_limit")
def test_the_budget_is_half_of_the_limit_unless_it_is_set() -> None:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    assert (OpenFiles().count_max, OpenFiles(7).count_max) == (limit // 2, 7)


def test_owners_that_are_gone_do_not_fill_the_row() -> None:
    class Owner:
        is_open = True

        def was_used(self) -> bool:
            return True

        def close_idle(self) -> bool:
            return False

    files, kept = OpenFiles(10_000), [Owner() for _ in range(5)]
    for owner in kept:
        files.add(owner)
    for _ in range(1000):
        files.add(Owner())
    assert len(files._owners) <= 64
    assert [known() for known in list(files._owners)[:5]] == kept


def test_one_is_closed_though_each_was_used() -> None:
    class Owner:
        is_open, has_been_used = True, True

        def was_used(self) -> bool:
            was, self.has_been_used = self.has_been_used, False
            return was

        def close_idle(self) -> bool:
            self.is_open = False
            return True

    files, owners = OpenFiles(3), [Owner() for _ in range(4)]
    for owner in owners:
        files.add(owner)
    assert [owner.is_open for owner in owners] == [False, True, True, True]
