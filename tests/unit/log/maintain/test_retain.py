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
