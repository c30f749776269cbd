"""Logs that append by the fast path where they can, and logs that append by the slow one alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from logstore.disk.seam import Seam
from logstore.errors import KafkaStorageError
from logstore.log.partition_log import PartitionLog
from tests.support.clock import Clock
from tests.support.logs import open_partition_log
from tests.support.seams import FullDisk

START_MS = 1000
#: of which some go the slow path now and then, and some always
CONFIGS = st.sampled_from(
    [
        {},
        {"internal.segment.bytes": "400", "index.interval.bytes": "100"},
        {"segment.index.bytes": "24", "index.interval.bytes": "0"},
        {"message.timestamp.type": "LogAppendTime", "segment.ms": "30"},
        {"cleanup.policy": "compact", "flush.messages": "3"},
        {"compression.type": "zstd"},
        {"message.timestamp.before.max.ms": "20", "segment.ms": "25"},
    ]
)


def open_fast_or_slow(
    path: Path, config: Mapping[str, Any], clock: Clock, *, is_fast: bool, seam: Seam | None = None
) -> PartitionLog:
    """Open a log of all kinds of producers, without the fast path unless `is_fast`."""
    log = open_partition_log(path, config, time_ms=clock(), seam=seam, now_ms=clock, requires_verification=False)
    if not is_fast:
        log.fast.try_append = lambda _: None  # type: ignore[method-assign, assignment]
    return log


def assert_a_failed_write_counts_for_nothing(log: PartitionLog, seam: FullDisk, write: Callable[[], object]) -> None:
    """It also ends the writing, though there is room again."""

    def ends() -> tuple[int, ...]:
        entry_count = len(log.state.active.indexes.offset_entries)
        return log.log_end_offset, log.high_watermark, log.state.active.size, entry_count

    before, seam.is_full = ends(), True
    with pytest.raises(KafkaStorageError, match="Error while appending records to t-0"):
        write()
    assert ends() == before
    seam.is_full = False
    with pytest.raises(KafkaStorageError, match="already offline"):
        write()
