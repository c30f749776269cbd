"""A system call that fails ends the writing of a partition, whichever it is, and nothing acknowledged is lost."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from logstore.disk import seam
from logstore.disk.seam import SEAM
from logstore.errors import KafkaStorageError
from logstore.log.partition_log import PartitionLog
from logstore.log.segment.log_segment import LogSegment
from logstore.log.segment.writable_folder import WritableFolder
from logstore.view.segments import Segments
from tests.support.encoder import Batch, Rec
from tests.support.interrupts import interrupted_at
from tests.support.logs import append_batch, open_partition_log, records_of
from tests.support.seams import UnsyncedSeam

CONFIG = {"internal.segment.bytes": "1000", "index.interval.bytes": "100", "preallocate": "true"}
BATCH_COUNT = 20
Do = Callable[[PartitionLog], object]


class System:
    """The `os` that the seam calls, one call of which may fail."""

    def __init__(self) -> None:
        self.failing = ""
        self.error_number = 0
        self.failed_count = 0

    def __getattr__(self, name: str) -> Any:
        return self._fail if name == self.failing else getattr(os, name)

    def fsync(self, descriptor: int) -> None:
        """Of a file or of a directory."""
        kind = "directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        if self.failing == f"fsync {kind}":
            self._fail()

    def _fail(self, *_: object) -> None:
        self.failed_count += 1
        raise OSError(self.error_number, os.strerror(self.error_number))


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> System:
    system = System()
    monkeypatch.setattr(seam, "os", system)
    return system


def opened(place: Path, *, was_clean: bool) -> PartitionLog:
    return open_partition_log(place / "t-0", CONFIG, was_clean=was_clean, seam=SEAM)


def append(log: PartitionLog, *, leader_epoch: int = 0) -> int:
    return append_batch(log, Batch(0, [Rec(b"key", b"value" * 4)]), leader_epoch=leader_epoch).first_offset


def offsets(log: PartitionLog) -> list[int]:
    return [record.offset for record in records_of(log)]


CALLS: dict[str, Do] = {
    "write": append,
    "fsync file": PartitionLog.flush,
    "fsync directory": PartitionLog.roll,
    "ftruncate": PartitionLog.roll,
    "open": PartitionLog.roll,
    "replace": lambda log: append(log, leader_epoch=1),
}


@pytest.mark.parametrize("error_number", [errno.ENOSPC, errno.EIO], ids=errno.errorcode.get)
@pytest.mark.parametrize("call", CALLS)
def test_the_partition_is_written_no_more_and_read_on(
    call: str, error_number: int, system: System, tmp_path: Path
) -> None:
    log = opened(tmp_path, was_clean=True)
    acknowledged = [append(log) for _ in range(BATCH_COUNT)]
    system.failing, system.error_number = call, error_number
    with pytest.raises(KafkaStorageError, match=r"Error while .* t-0") as failed:
        CALLS[call](log)
    assert os.strerror(error_number) in str(failed.value)
    system.failing = ""
    for change in (append, PartitionLog.flush, PartitionLog.roll, lambda log: log.truncate_fully_and_start_at(0)):
        with pytest.raises(KafkaStorageError, match="already offline"):
            change(log)
    assert system.failed_count == 1, "a call that failed is not made again"
    assert offsets(log) == acknowledged
    log.close()
    again = opened(tmp_path, was_clean=False)
    assert offsets(again) == acknowledged
    assert append(again) == BATCH_COUNT
    again.close()


@pytest.mark.parametrize("call", ["unlink", "replace", "fsync file", "fsync directory", "open", "write"])
def test_a_restart_that_fails_ends_the_writing_too(call: str, system: System, tmp_path: Path) -> None:
    log = opened(tmp_path, was_clean=True)
    for _ in range(BATCH_COUNT):
        append(log)
    system.failing, system.error_number = call, errno.EIO
    with pytest.raises(KafkaStorageError, match="Error while truncating log for t-0"):
        log.truncate_fully_and_start_at(BATCH_COUNT)
    system.failing = ""
    with pytest.raises(KafkaStorageError, match="already offline"):
        append(log)
    log.close()
    again = opened(tmp_path, was_clean=False)
    assert set(offsets(again)) <= set(range(BATCH_COUNT))
    assert again.log_end_offset == BATCH_COUNT
    again.close()


@pytest.mark.long
def test_a_close_that_was_interrupted_at_any_line_writes_no_index_twice(tmp_path: Path) -> None:
    config, contents = {"index.interval.bytes": "0"}, set[bytes]()
    line_count, was_interrupted = 0, True
    while was_interrupted:
        path = tmp_path / f"{line_count}" / "t-0"
        path.parent.mkdir()
        log = open_partition_log(path, config)
        for number in range(3):
            log.append_records([b"a%d" % number])
        was_interrupted = interrupted_at(line_count, log.close)
        log.close()
        if log.state.failure.error is None:
            contents.add((path / f"{0:020}.index").read_bytes())
        again = open_partition_log(path, config, was_clean=log.state.failure.error is None)
        assert [record.value for record in records_of(again)] == [b"a0", b"a1", b"a2"], line_count
        again.close()
        line_count += 1
    assert (len(contents), line_count > 50) == (1, True)


@pytest.mark.parametrize("kind", ["add", "remove", "clear"])
def test_segments_can_be_gone_over_after_an_interrupt_at_any_line(kind: str, tmp_path: Path) -> None:
    """The log is let go of then, and each of its segments with it."""
    directory = WritableFolder(str(tmp_path), UnsyncedSeam())
    made = [LogSegment(directory, base_offset, "", 0) for base_offset in (0, 5, 9)]
    line_count, was_interrupted = 0, True
    while was_interrupted:
        segments = Segments()
        for segment in made[:2]:
            segments.add(segment)
        change = {"add": partial(segments.add, made[2]), "remove": partial(segments.remove, 5), "clear": segments.clear}
        was_interrupted = interrupted_at(line_count, change[kind])
        assert [segment.base_offset for segment in segments] == segments.base_offsets
        line_count += 1
    assert line_count > 3


def test_who_must_open_the_log_anew_sees_to_the_disk_before(tmp_path: Path) -> None:
    failure = opened(tmp_path, was_clean=True).state.failure
    error = failure.poison("Error while opening again the log of", KafkaStorageError("The disk is full"))
    assert error.advice == "free space or see to the disk, then open the log anew: it recovers what was written"
