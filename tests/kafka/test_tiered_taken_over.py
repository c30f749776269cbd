"""A broker with remote storage, a store and the broker again: remote records stay readable, at each level of 4.4."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

import logstore
from logstore.audit.directory_audit import audit_directory
from logstore.clock import now_ms
from logstore.config.kafka_version import METADATA_VERSION, NEWEST, V4_3, level_name
from logstore.errors import OffsetMovedToTieredStorageError
from logstore_tools.takeover.inspection import inspect
from tests.support.broker import Broker, remote_storage
from tests.support.sampling import sampled
from tests.support.take_over import ask, judge, run

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

LEVELS = range(V4_3.highest_level + 1, NEWEST.highest_level + 1)
THEIRS = [f"{number}:theirs {number}" for number in range(20)]


@pytest.mark.parametrize("level", sampled(LEVELS, [LEVELS[-1]]))
def test_records_in_remote_storage_stay_behind_what_a_store_writes(level: int, tmp_path: Path) -> None:
    oracle = judge(NEWEST.release)
    root, settings = tmp_path / "data", remote_storage(tmp_path / "remote")
    broker = Broker(oracle, root, settings, [], is_formatted=True)
    broker.format("--release-version", level_name(level), "--standalone")
    with broker.running(signal.SIGTERM) as address:
        (tier,) = ask(oracle, address, tmp_path, "tier")
    run("import", str(root))
    with logstore.open(root) as store:
        log = store.log("tiered", 0)
        local = log.log_start_offset
        assert tier["local"] <= local < log.log_end_offset == len(THEIRS)
        with pytest.raises(OffsetMovedToTieredStorageError, match=f"below offset {local} are in remote storage"):
            log.read(0, 1000)
        with store.producer() as producer:
            producer.send("tiered", b"ours", key=b"k", partition=0)
    run("promote", str(root))
    assert [str(finding) for finding in audit_directory(str(root), now_ms()).findings] == []
    with broker.running(signal.SIGTERM) as address:
        (state,) = ask(oracle, address, tmp_path, "state")
    (read,) = state["topics"]["tiered"]["read"]
    assert (read["start"], read["values"]) == (0, [*THEIRS, f"{len(THEIRS)}:ours"])
    assert inspect(str(root)).features[METADATA_VERSION] == level
