"""Logs that append by the fast path where they can, and logs that append by the slow one alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from logstore.disk.seam import Seam
from logstore.log.partition_log import PartitionLog
from tests.support.clock import Clock
from tests.support.logs import open_partition_log

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
