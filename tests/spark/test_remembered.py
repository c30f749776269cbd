"""What a stream remembers between triggers: nothing is listed again that nobody wrote to, and no change is missed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from logstore.errors import DataDirectoryError
from spark_dumps import directories, remembered
from spark_dumps.options import parse_options
from spark_dumps.remembered import RememberedPartitions
from tests.spark.segment_files import batch, write_partition, write_segment

PARTITION_COUNT = 5


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Paths of the directories of partitions that are listed."""
    found: list[str] = []

    def count(path: str, **more: object) -> object:
        found.append(os.path.basename(path))
        return listing(path, **more)  # type: ignore[arg-type]

    listing = directories.list_partition_directory
    monkeypatch.setattr(directories, "list_partition_directory", count)
    monkeypatch.setattr(remembered, "list_partition_directory", count)
    monkeypatch.setattr("logstore.disk.directory.list_partition_directory", count)
    monkeypatch.setattr(remembered, "REST_NS", 0)
    return found


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for number in range(PARTITION_COUNT):
        write_partition(tmp_path, f"orders-{number}", [2])
    return tmp_path


class Stream:
    """The ends of all partitions, as a trigger finds them."""

    def __init__(self, data: Path, listings: list[str]) -> None:
        self._partitions = RememberedPartitions(parse_options({"path": str(data)}, is_stream=True))
        self._listings = listings
        for _ in range(2):
            self.ends()

    def ends(self) -> tuple[dict[int, tuple[int, int]], list[str]]:
        """Start and end of each partition, and what was listed to find them."""
        self._listings.clear()
        bounds = self._partitions.bounds(may_lack=True)
        return {key[1]: (one.start_offset, one.end_offset) for key, one in bounds.items()}, list(self._listings)


EXPECTED = dict.fromkeys(range(PARTITION_COUNT), (0, 20))


def test_an_idle_trigger_lists_no_partition(data: Path, listings: list[str]) -> None:
    stream = Stream(data, listings)
    assert stream.ends() == (EXPECTED, [])


def test_records_are_found_without_listing(data: Path, listings: list[str]) -> None:
    stream = Stream(data, listings)
    with (data / "orders-3" / f"{0:020d}.log").open("ab") as log:
        log.write(batch(2))
    assert stream.ends() == ({**EXPECTED, 3: (0, 30)}, [])


def test_a_partition_with_a_new_segment_is_listed_alone(data: Path, listings: list[str]) -> None:
    stream = Stream(data, listings)
    write_segment(data / "orders-2", 20, batch(2))
    assert stream.ends() == ({**EXPECTED, 2: (0, 30)}, ["orders-2"])
    assert stream.ends() == ({**EXPECTED, 2: (0, 30)}, [])


def test_partitions_that_come_go_and_are_made_anew_are_found(data: Path, listings: list[str]) -> None:
    stream = Stream(data, listings)
    write_partition(data, "orders-7", [1])
    shutil.rmtree(data / "orders-0")
    ends = {**EXPECTED, 7: (0, 10)}
    del ends[0]
    assert stream.ends()[0] == ends
    stream.ends()
    shutil.rmtree(data / "orders-1")
    write_partition(data, "orders-1", [1])
    assert stream.ends() == ({**ends, 1: (0, 10)}, ["orders-1"])


def test_after_an_error_all_is_listed_again(data: Path, listings: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise DataDirectoryError("gone", path="0.log")

    stream = Stream(data, listings)
    with (data / "orders-0" / f"{0:020d}.log").open("ab") as log:
        log.write(batch(2))
    with monkeypatch.context() as patched:
        patched.setattr(remembered, "find_bounds", fail)
        with pytest.raises(DataDirectoryError):
            stream.ends()
    write_segment(data / "orders-4", 20, batch(2))
    assert stream.ends()[0] == {**EXPECTED, 0: (0, 30), 4: (0, 30)}


def test_a_raised_log_start_is_found(data: Path, listings: list[str]) -> None:
    checkpoint = data / "log-start-offset-checkpoint"
    checkpoint.write_text("0\n0\n")
    stream = Stream(data, listings)
    checkpoint.write_text("0\n1\norders 4 7\n")
    assert stream.ends() == ({**EXPECTED, 4: (7, 20)}, [])


def test_a_time_of_a_moment_ago_proves_nothing(
    data: Path, listings: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remembered, "REST_NS", 10**15)
    stream = Stream(data, listings)
    assert len(stream.ends()[1]) == PARTITION_COUNT
