"""Running logs to measure on, and the partition directories that they and Kafka's log open."""

from __future__ import annotations

import shutil
from pathlib import Path

from benchmarks.page_cache import read_again
from logstore.clock import now_ms
from logstore.log.config import parse_config
from logstore.log.load import opening
from logstore.log.load.loader import LoadSettings
from logstore.log.partition_log import PartitionLog

NAME = "t-0"
SEGMENT = f"{0:020d}.log"


def settings_of(*, was_clean: bool, config: dict[str, str] | None = None) -> LoadSettings:
    """Of a load from the beginning, now."""
    return LoadSettings(
        was_clean=was_clean, recovery_point=0, log_start_offset=0, now_ms=now_ms(), config=parse_config(config or {})
    )


def opened(directory: Path, *, was_clean: bool = True, config: dict[str, str] | None = None) -> PartitionLog:
    """The log of a partition directory, made if it is not there; transactions need no verification."""
    settings = settings_of(was_clean=was_clean, config=config)
    return opening.open_log(str(directory), settings, requires_verification=False)


def twin(directory: Path) -> Path:
    """A copy for the other side, in a place of its own; the one of before is removed. Both are read from the disk."""
    copy = directory.parent.with_name(f"{directory.parent.name}-twin") / directory.name
    shutil.rmtree(copy.parent, ignore_errors=True)
    shutil.copytree(directory, copy)
    for segment in (*directory.glob("*.log"), *copy.glob("*.log")):
        read_again(segment)
    return copy


def values(count: int, size: int = 100) -> list[bytes]:
    """Values that differ, the same every time."""
    return [bytes(97 + (number * 31 + place * 7) % 26 for place in range(size)) for number in range(count)]
