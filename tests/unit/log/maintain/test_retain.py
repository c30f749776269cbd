"""Retention by time tells of a timestamp that keeps a segment, as Kafka does (`deleteRetentionMsBreachedSegments`)."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.support.encoder import SOME_TIME, Batch, Rec
from tests.support.logs import append_batch, open_partition_log

HOUR_MS = 3_600_000


@pytest.mark.parametrize(("ahead_ms", "is_told"), [(-2 * HOUR_MS, False), (0, False), (1, True), (2 * HOUR_MS, True)])
def test_a_timestamp_ahead_of_the_clock_is_told(
    ahead_ms: int, is_told: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    config = {"retention.ms": str(HOUR_MS), "message.timestamp.after.max.ms": str(2**62)}
    log = open_partition_log(tmp_path / "t-0", config)
    time_ms = SOME_TIME + ahead_ms
    append_batch(log, Batch(0, [Rec(value=b"v")], base_timestamp=time_ms, max_timestamp=time_ms))
    with caplog.at_level(logging.WARNING, "logstore"):
        deleted = log.delete_old_segments(SOME_TIME)
    assert bool(deleted) == (ahead_ms < -HOUR_MS)
    assert ("contains future timestamp(s), making it ineligible to be deleted" in caplog.text) == is_told
    log.close()


def test_snapshots_go_with_their_segments(tmp_path: Path) -> None:
    log = open_partition_log(tmp_path / "t-0", {"retention.bytes": "1"})
    for number in range(4):
        append_batch(log, Batch(0, [Rec(value=b"v")], producer_id=7, producer_epoch=0, base_sequence=number))
        log.roll()
    assert sorted(log.state.producers.snapshots) == [1, 2, 3, 4]
    assert len(log.delete_old_segments(SOME_TIME)) == 3
    assert sorted(log.state.producers.snapshots) == [3, 4]
    assert {path.name for path in (tmp_path / "t-0").glob("*.snapshot")} == {f"{3:020}.snapshot", f"{4:020}.snapshot"}
    log.close()
