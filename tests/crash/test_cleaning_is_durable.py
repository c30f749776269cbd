"""What cleaning and retention have put on the disk before a segment is in its place, and before they return or fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.config.topic import LogConfig
from logstore.errors import DataDirectoryError
from logstore.log.load.loader import LoadSettings
from logstore.log.partition_log import PartitionLog
from tests.crash.lossy_disk import LossyDisk, write_survivor
from tests.kafka.cleaning_cases import NOW, example_case, lay_out, opened
from tests.support.logs import batches_of, open_log
from tests.support.seams import FullDisk, UnsyncedSeam

SIDE_KINDS = (".index", ".timeindex", ".txnindex")


def laid_out(place: Path, policy: str) -> tuple[PartitionLog, LossyDisk]:
    """The example, whose indexes have entries, on a disk that may lose what was not synced."""
    case = example_case(10)
    case.config |= {"cleanup.policy": policy, "index.interval.bytes": "0", "file.delete.delay.ms": "60000"}
    directory = place / "watched" / "t-0"
    config = lay_out(case, directory)
    disk = LossyDisk(directory, "durable cleaning")
    return opened(directory, config, NOW, was_clean=True, seam=disk), disk


def reopened(directory: Path, config: LogConfig, recovery_point: int) -> PartitionLog:
    """As after a crash, with the checkpoint of a log that was flushed: what lies below is taken as it is."""
    settings = LoadSettings(
        was_clean=False, recovery_point=recovery_point, log_start_offset=0, now_ms=NOW, config=config
    )
    return open_log(directory, settings, now_ms=lambda: NOW, seam=UnsyncedSeam())


def side_files(directory: Path, base_offset: int) -> dict[str, bytes]:
    paths = [directory / f"{base_offset:020d}{kind}" for kind in SIDE_KINDS]
    return {path.suffix: path.read_bytes() for path in paths if path.exists()}


def test_the_indexes_of_a_cleaned_segment_are_on_the_disk_before_it_is_in_its_place(tmp_path: Path) -> None:
    """Below the recovery point nothing would make them anew."""
    log, disk = laid_out(tmp_path, "compact")
    log.clean(log.cleanable(None, NOW), NOW)
    log_path, end_offset, cleaned = Path(log.state.directory.path), log.log_end_offset, {}
    for base_offset in log.state.segments.base_offsets[:-1]:
        content = (log_path / f"{base_offset:020d}.log").read_bytes()
        cleaned[base_offset] = (content, side_files(log_path, base_offset))
    assert all(cleaned[0][1].values()), "the index, the time index and the transaction index have entries"
    log.close()
    found = dict.fromkeys(cleaned, 0)
    for number, left in enumerate(disk.left):
        directory = write_survivor(left.survivor, tmp_path / str(number) / "t-0")
        reopened(directory, log.config, end_offset).close()
        for base_offset, (content, expected) in cleaned.items():
            path = directory / f"{base_offset:020d}.log"
            if path.exists() and path.read_bytes() == content:
                found[base_offset] += 1
                assert side_files(directory, base_offset) == expected, left.when
    assert all(found.values())


def test_cleaned_segments_are_on_the_disk_when_the_cleaning_returns(tmp_path: Path) -> None:
    """Behind the cleaner's checkpoint, which is written next, no record is compared with those before it any more."""
    log, disk = laid_out(tmp_path, "compact")
    log.clean(log.cleanable(None, NOW), NOW)
    expected, end_offset = batches_of(log), log.log_end_offset
    directory = write_survivor(disk.survivor("lost"), tmp_path / "lost" / "t-0")
    log.close()
    again = reopened(directory, log.config, end_offset)
    assert batches_of(again) == expected
    again.close()


@pytest.mark.parametrize("base_offset", [5, 12])
def test_deleted_segments_stay_away_when_retention_has_returned(base_offset: int, tmp_path: Path) -> None:
    """Else the log would start again where it did, until its log start offset is written somewhere."""
    log, disk = laid_out(tmp_path, "delete")
    log.increment_log_start_offset(base_offset)
    assert log.delete_old_segments(NOW)
    directory = write_survivor(disk.survivor("lost"), tmp_path / "lost" / "t-0")
    end_offset = log.log_end_offset
    log.close()
    again = reopened(directory, log.config, end_offset)
    assert (again.log_start_offset, again.state.segments.base_offsets[0]) == (base_offset, base_offset)
    again.close()


@pytest.mark.parametrize("writes_left", [0, 1, 4])
def test_a_disk_that_is_full_ends_a_cleaning_and_changes_nothing(writes_left: int, tmp_path: Path) -> None:
    case, directory, disk = example_case(10), tmp_path / "t-0", FullDisk()
    case.config |= {"min.compaction.lag.ms": "0"}
    log = opened(directory, lay_out(case, directory), NOW, was_clean=True, seam=disk)
    before, names = batches_of(log), sorted(path.name for path in directory.iterdir())
    disk.writes_left = writes_left
    with pytest.raises(DataDirectoryError, match="No space left"):
        log.clean(log.cleanable(None, NOW), NOW)
    assert batches_of(log) == before
    assert sorted(path.name for path in directory.iterdir()) == names
    log.close()
