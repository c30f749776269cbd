"""What opening a log that was closed in order asks of the system: its directory once, and each of its files once."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from logstore.layout.file_names import LOG_SUFFIX
from logstore.log.config import parse_config
from logstore.log.loader import LoadSettings
from logstore.log.partition_log import PartitionLog
from tests.naive.encoder import SOME_TIME
from tests.recovery.comparison import UnsyncedSeam

TOPIC_ID = "Zzsa1rsoQAqDc5QNzy3jmA"


def opened(path: Path) -> PartitionLog:
    settings = LoadSettings(True, 0, 0, SOME_TIME, parse_config({"index.interval.bytes": "100"}))
    return PartitionLog.open(str(path), settings, seam=UnsyncedSeam(), now_ms=lambda: SOME_TIME, topic_id=TOPIC_ID)


def test_nothing_is_listed_or_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t-0"
    log = opened(path)
    for number in range(40):
        log.append_records([b"v" * 100], producer_id=7, producer_epoch=0, base_sequence=number)
        if number in (9, 19, 29):
            log.roll()
    log.close()

    asked: Counter[str] = Counter()
    for name in ("open", "scandir"):
        monkeypatch.setattr(os, name, counting(getattr(os, name), asked, path))
    log = opened(path)
    assert log.log_end_offset == 40

    last = f"{log.segments.base_offsets[-1]:020d}{LOG_SUFFIX}"
    assert asked.pop(last) == 2  # its last headers are read, and it is written on
    assert asked.pop(".") == 1
    assert asked, "the indexes"
    assert set(asked.values()) == {1}
    log.close()


def counting(function: Any, asked: Counter[str], directory: Path) -> Any:
    def counted(path: Any, *arguments: Any, **keywords: Any) -> Any:
        asked[os.path.relpath(path, directory)] += 1
        return function(path, *arguments, **keywords)

    return counted
