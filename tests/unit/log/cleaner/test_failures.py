"""A disk that fails a cleaning: before a segment is replaced the log goes on as it was, in between its writing ends."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from logstore.disk.seam import Writable
from logstore.errors import DataDirectoryError, KafkaStorageError
from logstore.log.partition_log import PartitionLog
from tests.kafka.cleaning_cases import NOW, example_case, lay_out, opened
from tests.support.seams import UnsyncedSeam
from tests.unit.log.cleaner.short_logs import described

BEFORE_THE_SWAP = {"create": 6, "write": 6, "sync": 6, "set_modified_ms": 6}  # calls of the example's two groups


class FailingSeam(UnsyncedSeam):
    """One call fails: the one of this name that comes after `passing` others."""

    def __init__(self) -> None:
        self.failing, self.passing = "", 0

    def _pass(self, name: str) -> None:
        if name == self.failing:
            self.passing -= 1
            if self.passing < 0:
                self.failing = ""
                raise DataDirectoryError("Input/output error", java_class="java.io.IOException")

    def create(self, path: str) -> int:
        self._pass("create")
        return super().create(path)

    def write(self, descriptor: int, data: Writable) -> None:
        self._pass("write")
        super().write(descriptor, data)

    def sync(self, descriptor: int) -> None:
        self._pass("sync")
        super().sync(descriptor)

    def set_modified_ms(self, path: str, modified_ms: int) -> None:
        self._pass("set_modified_ms")
        super().set_modified_ms(path, modified_ms)

    def rename(self, path: str, new_path: str) -> None:
        self._pass("rename")
        super().rename(path, new_path)

    def sync_directory(self, path: str) -> None:
        self._pass("sync_directory")
        super().sync_directory(path)


def laid_out(place: Path) -> tuple[PartitionLog, FailingSeam]:
    directory, seam = place / "t-0", FailingSeam()
    config = lay_out(example_case(), directory)
    return opened(directory, config, NOW, was_clean=True, seam=seam), seam


def cleaned_batches(place: Path) -> list[tuple[int, int, int, int | None]]:
    log, _ = laid_out(place)
    log.clean(log.cleanable(None, NOW), NOW)
    batches = described(log)
    log.close()
    return batches


@pytest.mark.parametrize(
    ("call", "number"), [(call, number) for call, count in BEFORE_THE_SWAP.items() for number in range(count)]
)
def test_failure_before_a_segment_is_replaced_leaves_the_log_writable(call: str, number: int, tmp_path: Path) -> None:
    """Only files failed that are removed again; the next round makes others."""
    expected = cleaned_batches(tmp_path / "expected")
    log, seam = laid_out(tmp_path / "log")
    seam.failing, seam.passing = call, number
    with pytest.raises(DataDirectoryError, match="Input/output error") as caught:
        log.clean(log.cleanable(None, NOW), NOW)
    assert not isinstance(caught.value, KafkaStorageError)
    assert log.state.failure.error is None
    assert not [name for name in os.listdir(log.state.directory.path) if ".cleaned" in name or ".swap" in name]
    log.clean(log.cleanable(None, NOW), NOW)
    assert described(log) == expected
    assert log.append_records([b"v"], [b"k"]).first_offset == 13
    log.close()


@pytest.mark.parametrize("number", range(12))
def test_a_swap_that_was_cut_off_is_left_to_the_next_load(number: int, tmp_path: Path) -> None:
    """Another round would remove, or make, the `.cleaned` files by which a load tells whether the swap had begun."""
    expected = cleaned_batches(tmp_path / "expected")
    log, seam = laid_out(tmp_path / "failing")
    chosen = log.cleanable(None, NOW)
    seam.failing, seam.passing = "rename", number
    with pytest.raises(KafkaStorageError):
        log.clean(chosen, NOW)
    files = sorted(os.listdir(log.state.directory.path))
    with pytest.raises(KafkaStorageError, match="already offline"):
        log.clean(chosen, NOW)
    assert sorted(os.listdir(log.state.directory.path)) == files
    log.close()
    again = opened(tmp_path / "failing" / "t-0", log.config, NOW, was_clean=False)
    again.clean(again.cleanable(None, NOW), NOW)
    assert described(again) == expected
    again.close()


@pytest.mark.parametrize(("call", "number"), [("rename", 0), ("rename", 5), ("sync_directory", 0)])
def test_failure_while_a_segment_is_replaced_ends_the_writing(call: str, number: int, tmp_path: Path) -> None:
    """Which files are there is not known then; opening the log finds out."""
    log, seam = laid_out(tmp_path)
    seam.failing, seam.passing = call, number
    with pytest.raises(KafkaStorageError, match="Error while replacing segments of t-0"):
        log.clean(log.cleanable(None, NOW), NOW)
    with pytest.raises(KafkaStorageError, match="already offline"):
        log.append_records([b"v"], [b"k"])
    log.close()
    again = opened(tmp_path / "t-0", log.config, NOW, was_clean=False)
    assert again.append_records([b"v"], [b"k"]).first_offset == 13
    again.close()
