"""DeleteRecords: which logs allow it, as `Partition.deleteRecordsOnLeader` does."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.errors import PolicyViolationError
from logstore.log.config import parse_config
from logstore.log.load import opening
from logstore.log.load.loader import LoadSettings
from logstore.log.partition_log import PartitionLog
from tests.support.encoder import SOME_TIME
from tests.support.seams import UnsyncedSeam


def opened(directory: Path, policy: str) -> PartitionLog:
    settings = LoadSettings(True, 0, 0, SOME_TIME, parse_config({"cleanup.policy": policy}))
    log = opening.open_log(str(directory / "t-0"), settings, seam=UnsyncedSeam(), now_ms=lambda: SOME_TIME)
    log.append_records([b"v", b"w"], [b"k", b"l"])
    return log


@pytest.mark.parametrize("policy", ["delete", "compact,delete", ""])
def test_a_log_that_is_not_only_compacted_lets_records_be_deleted(policy: str, tmp_path: Path) -> None:
    log = opened(tmp_path, policy)
    assert (log.delete_records(1), log.delete_records(-1), log.log_start_offset) == (1, 2, 2)
    log.close()


def test_a_log_that_is_only_compacted_does_not(tmp_path: Path) -> None:
    log = opened(tmp_path, "compact")
    with pytest.raises(PolicyViolationError, match="Records of partition t-0 can not be deleted due to the configured"):
        log.delete_records(-1)
    assert log.log_start_offset == 0
    log.close()
