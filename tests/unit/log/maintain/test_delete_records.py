"""DeleteRecords: which logs allow it, as `Partition.deleteRecordsOnLeader` does."""

from __future__ import annotations

from pathlib import Path

import pytest

from logstore.errors import PolicyViolationError
from logstore.log.partition_log import PartitionLog
from tests.support.logs import open_partition_log


def opened(directory: Path, policy: str) -> PartitionLog:
    log = open_partition_log(directory / "t-0", {"cleanup.policy": policy})
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


def test_epochs_below_the_new_start_go_from_the_disk_too(tmp_path: Path) -> None:
    log = opened(tmp_path, "delete")
    log.append_records([b"x"], leader_epoch=4)
    checkpoint = Path(log.path) / "leader-epoch-checkpoint"
    assert checkpoint.read_text() == "0\n2\n0 0\n4 2\n"
    log.delete_records(1)
    assert checkpoint.read_text() == "0\n2\n0 1\n4 2\n"
    log.delete_records(3)
    assert checkpoint.read_text() == "0\n1\n4 3\n"
    log.close()
