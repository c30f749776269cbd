"""Running logs, opened as a store would, and what is in them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from logstore.columns.batch_table import scan
from logstore.columns.decoded_records import Record
from logstore.config.topic import parse_config
from logstore.disk.seam import SEAM, Seam
from logstore.log.append.request import AppendInfo
from logstore.log.load.loader import LoadSettings
from logstore.log.load.opening import PlannedLog
from logstore.log.partition_log import PartitionLog
from logstore.log.state import LogHost
from logstore.view.log_view import ReadableLog
from tests.support.encoder import SOME_TIME, Batch
from tests.support.seams import UnsyncedSeam

Batches = list[tuple[int, bytes]]  # by base offset


def open_partition_log(
    path: Path | str,
    config: Mapping[str, Any] | None = None,
    *,
    was_clean: bool = True,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    time_ms: int = SOME_TIME,
    seam: Seam | None = None,
    now_ms: Callable[[], int] | None = None,
    **options: Any,
) -> PartitionLog:
    """Open the partition directory at `path`, which is made if it is not there, after the state `LoadSettings` tells.

    Args:
        time_ms: of the load, and of the log's clock, which stands still.
        seam: None waits for no disk.
        now_ms: another clock for the log.
        options: of `open_log`.
    """
    settings = LoadSettings(was_clean, recovery_point, log_start_offset, time_ms, parse_config(config or {}))
    return open_log(path, settings, seam=seam or UnsyncedSeam(), now_ms=now_ms or (lambda: time_ms), **options)


def open_log(
    path: Path | str, settings: LoadSettings, *, seam: Seam = SEAM, topic_id: str | None = None, **host: Any
) -> PartitionLog:
    """Recover the partition directory at `path`, or create it, and open it; `host` are fields of `LogHost`."""
    return PlannedLog(str(path), settings, seam=seam, topic_id=topic_id).open(LogHost(**host))


def append_batch(log: PartitionLog, batch: Batch, **options: Any) -> AppendInfo:
    """Append a batch; `options` are those of `PartitionLog.append_as_leader`."""
    return log.append_as_leader(np.frombuffer(batch.to_bytes(), np.uint8), **options)


def records_of(log: ReadableLog, start_offset: int | None = None, **options: Any) -> list[Record]:
    """What a reader gets, all of it; `options` are those of `PartitionLog.records`."""
    return [record for chunk in log.records(start_offset, **options).chunks() for record in chunk.to_records()]


def numbered_values(log: ReadableLog) -> list[tuple[int, bytes | None]]:
    """Offset and value of each record."""
    return [(record.offset, record.value) for record in records_of(log)]


def batches_of(log: PartitionLog) -> Batches:
    """All batches of the log's files, as they stand there."""
    found = []
    for segment in log.state.segments:
        table = scan(segment.data)
        for row in map(table.row, range(len(table))):
            data = segment.data[row["position"] : row["position"] + row["size"]]
            found.append((row["base_offset"], data.tobytes()))
    return found


def read_so_far() -> int:
    """The bytes that system calls of this process have read."""
    return int(Path("/proc/self/io").read_text().split("rchar:")[1].split()[0])
