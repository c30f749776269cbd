"""A topic of a broker with tiered storage: its older records are remote, and its start stays what it was."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import logstore
from logstore.disk.side_files import read_offset_checkpoint
from logstore.errors import OffsetMovedToTieredStorageError, OffsetOutOfRangeError
from logstore.layout.checkpoint_writing import offset_checkpoint_bytes
from logstore.topics.cluster_metadata import encode_value
from tests.support.clock import Clock
from tests.support.small_store import START_MS
from tests.support.stores import append_metadata

CHECKPOINT = "log-start-offset-checkpoint"
YEAR_MS = 365 * 86_400_000
KEY = ("t", 0)


def tiered(path: Path) -> None:
    """A topic whose log starts at offset 2 in remote storage, and at 5 on the disk, as its broker leaves it."""
    with logstore.open(path, now_ms=Clock(START_MS)) as store:
        store.create_topic("t", config={"retention.ms": 1000, "segment.ms": 1})
        log = store.log(*KEY)
        log.append_records([b"%d" % number for number in range(5)])
        log.roll()
        log.delete_records(5)
        log.delete_old_segments(START_MS)
        log.append_records([b"5", b"6"])
        log.roll()
        assert log.state.segments.first.base_offset == 5
    config = {"resourceType": 2, "resourceName": "t", "name": "remote.storage.enable", "value": "true"}
    append_metadata(path, encode_value("ConfigRecord", config))
    (path / CHECKPOINT).write_bytes(offset_checkpoint_bytes({KEY: 2}))


@pytest.mark.parametrize("was_clean", [True, False])
def test_records_that_are_remote_are_told_of_and_kept_for_the_broker(
    tmp_path: Path, was_clean: bool, caplog: pytest.LogCaptureFixture
) -> None:
    tiered(tmp_path)
    if not was_clean:
        (tmp_path / ".kafka_cleanshutdown").unlink()
    clock = Clock(START_MS + YEAR_MS)
    for _ in range(2):
        with caplog.at_level(logging.WARNING, "logstore"), logstore.open(tmp_path, now_ms=clock) as store:
            log = store.log(*KEY)
            assert log.delete_old_segments(clock.now_ms) == []
            assert "Records of t-0 from offset 2 to 4 are in remote storage" in caplog.text
            assert (log.log_start_offset, log.log_end_offset) == (5, 7)
            with pytest.raises(OffsetMovedToTieredStorageError, match="below offset 5 are in remote storage"):
                log.read(2, 1000)
            with pytest.raises(OffsetOutOfRangeError):
                log.read(1, 1000)
            consumer = store.consumer(auto_offset_reset="earliest")
            consumer.assign([KEY])
            consumer.seek(KEY, 3)
            with pytest.raises(OffsetMovedToTieredStorageError):  # no reset to an offset behind them
                consumer.poll()
            consumer.seek(KEY, 5)
            assert [one.value for one in consumer.poll()[KEY]] == [b"5", b"6"]
        assert read_offset_checkpoint(str(tmp_path / CHECKPOINT)) == {KEY: 2}
    with logstore.open(tmp_path, now_ms=clock) as store:
        assert store.log(*KEY).delete_records(6) == 6
    assert read_offset_checkpoint(str(tmp_path / CHECKPOINT)) == {KEY: 6}
    with logstore.open(tmp_path, now_ms=clock) as store:
        assert store.log(*KEY).log_start_offset == 6
