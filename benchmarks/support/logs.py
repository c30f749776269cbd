"""Partitions that are measured: opened as they are or as after a crash, decoded, and what was written to them.

What was written is hashed when all rounds are done: of how many calls, and when, must not show.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.support.page_cache import read_again
from logstore.clock import now_ms
from logstore.columns.batch_table import BatchTable, scan
from logstore.columns.decoded_records import Records
from logstore.config.topic import parse_config
from logstore.disk.mapped import MappedFile
from logstore.kernels.scan import batches as fields
from logstore.log.load.loader import LoadSettings
from logstore.log.load.opening import PlannedLog
from logstore.log.partition_log import PartitionLog
from logstore.log.state import LogHost
from logstore.view.parallel_scan import in_order
from logstore.view.read import Fetched, OffsetMetadata, ReadBounds
from logstore.view.record_reader import WindowDecoder

NAME = "t-0"
WITHOUT_CLOCK = [fields.SIZE, fields.RECORD_COUNT, fields.LAST_OFFSET_DELTA, fields.ATTRIBUTES, fields.MAGIC]
INT64_MAX = 2**63 - 1


def settings_of(*, was_clean: bool, config: dict[str, str] | None = None) -> LoadSettings:
    """Return the settings of a load from the beginning, now."""
    return LoadSettings(
        was_clean=was_clean, recovery_point=0, log_start_offset=0, now_ms=now_ms(), config=parse_config(config or {})
    )


def opened(directory: Path, *, was_clean: bool = True, config: dict[str, str] | None = None) -> PartitionLog:
    """Open the log of a partition directory, made if it is not there; transactions need no verification."""
    settings = settings_of(was_clean=was_clean, config=config)
    return PlannedLog(str(directory), settings).open(LogHost(requires_verification=False))


def twin(directory: Path) -> Path:
    """Copy a partition for the other side, in place of an older copy, and read both from the disk."""
    copy = directory.parent.with_name(f"{directory.parent.name}-twin") / directory.name
    shutil.rmtree(copy.parent, ignore_errors=True)
    shutil.copytree(directory, copy)
    for segment in (*directory.glob("*.log"), *copy.glob("*.log")):
        read_again(segment)
    return copy


def tables(directory: Path) -> list[BatchTable]:
    """Scan the batches of each segment of a partition.

    Raises:
        ValueError: a checksum is wrong, or something else than batches is there.
    """
    found = []
    for path in sorted(directory.glob("*.log")):
        data = MappedFile(str(path)).data
        table = scan(data, check_crc=True)
        if table.next_position != data.size or not (table.is_valid == 1).all():
            raise ValueError(f"{path} holds something else than whole batches")
        found.append(table)
    return found


def kinds_of_batches(directory: Path) -> Any:
    """Return the kinds of batches of a partition, each once: sizes and counts. All checksums are right."""
    rows = [table.matrix[WITHOUT_CLOCK, : len(table)] for table in tables(directory)]
    return np.unique(np.concatenate(rows, axis=1), axis=1)


def last_values(log: PartitionLog, count: int) -> list[Any]:
    """Return the values of the records at the last `count` offsets; markers have none."""
    start = max(log.log_start_offset, log.log_end_offset - count)
    return [value for chunk in log.records(start).chunks() for value in chunk.to_lists()[4]]


def written(log: PartitionLog, count: int) -> tuple[Any, list[Any]]:
    """Return the kinds of all batches, and the values at the last `count` offsets, of an open log."""
    return kinds_of_batches(Path(log.state.directory.path)), last_values(log, count)


def sizes_of_one(directory: Path, call: Callable[[], object]) -> Sequence[int]:
    """Return the bytes of each batch that a call adds to a data directory: it takes so many writes at least."""
    before = {path: path.stat().st_size for path in directory.rglob("*.log")}
    call()
    sizes: list[int] = []
    for path in sorted(directory.rglob("*.log")):
        table = scan(MappedFile(str(path)).data)
        sizes += table.size[table.position >= before.get(path, 0)].tolist()
    return sizes


def chunks_of(path: Path, *, is_ahead: bool) -> Iterator[Records]:
    """Decode the records of a segment that is opened anew, as `FileRecords` is: every checksum, every record.

    A helper decodes beside the reader, or all is done in turn.
    """
    data = MappedFile(str(path)).data
    bounds = ReadBounds("t-0", 0, INT64_MAX, INT64_MAX, INT64_MAX)
    fetched = Fetched(data, OffsetMetadata(0, 0, 0), str(path), False, None, bounds)
    decoder = WindowDecoder(fetched, 0, None, is_committed=False, check_crc=True)
    windows = in_order(decoder.next_window, decoder.decode) if is_ahead else decoder.decoded()
    return (records for window in windows for records in window.records if records.error is None)


def decode_all(path: Path, *, is_ahead: bool = False) -> int:
    """Decode a segment and return the number of its records."""
    return sum(len(chunk) for chunk in chunks_of(path, is_ahead=is_ahead))


def sums_of(path: Path, *, is_ahead: bool) -> tuple[int, int]:
    """Return (records, bytes of values plus the number of odd offsets), as `LogBench.java` counts them."""
    count = size = 0
    for chunk in chunks_of(path, is_ahead=is_ahead):
        count += len(chunk)
        size += int((chunk.value_size + chunk.offset % 2).sum())
    return count, size
