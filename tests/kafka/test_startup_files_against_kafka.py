"""A real broker does not start on the files that the audit's rule `startup-file` tells of."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from logstore.audit.directory_verify import verify_directory
from tests.planted.directories import metadata_log_that_begins_behind_its_snapshots
from tests.planted.planter import Planter
from tests.support.broker import Broker
from tests.support.dice import Dice
from tests.support.oracle import Oracle

pytestmark = [pytest.mark.kafka, pytest.mark.long]


@pytest.mark.parametrize("name", ["bootstrap.checkpoint", "__cluster_metadata-0/quorum-state"])
def test_a_broker_does_not_start_on_what_is_found(oracle: Oracle, tmp_path: Path, name: str) -> None:
    broker = Broker(oracle, tmp_path / "data", {}, [])
    with broker.running(signal.SIGTERM):
        pass
    path = tmp_path / "data" / name
    if not path.exists():
        pytest.skip(f"this broker writes no {name}")
    whole = path.read_bytes()
    for content in (b"", b"\x01noise\xff", whole[: len(whole) // 2]):
        path.write_bytes(content)
        assert [one.rule for one in verify_directory(str(tmp_path / "data")).findings] == ["startup-file"]
        with pytest.raises(RuntimeError, match="the broker did not start"), broker.running(signal.SIGTERM):
            pass
    path.write_bytes(whole)
    assert verify_directory(str(tmp_path / "data")).findings == ()
    with broker.running(signal.SIGTERM):
        pass


def test_a_broker_does_not_start_behind_its_snapshots(oracle: Oracle, tmp_path: Path) -> None:
    broker = Broker(oracle, tmp_path / "data", {}, [])
    with broker.running(signal.SIGTERM):
        pass
    metadata_log_that_begins_behind_its_snapshots(Planter(tmp_path / "data", Dice("")))
    assert [one.rule for one in verify_directory(str(tmp_path / "data")).findings] == ["startup-file"]
    with pytest.raises(RuntimeError, match="the broker did not start"), broker.running(signal.SIGTERM):
        pass


def test_a_broker_makes_a_lost_quorum_state_anew(oracle: Oracle, tmp_path: Path) -> None:
    broker = Broker(oracle, tmp_path / "data", {}, [])
    with broker.running(signal.SIGTERM):
        pass
    (tmp_path / "data" / "__cluster_metadata-0" / "quorum-state").unlink()
    assert [one.rule for one in verify_directory(str(tmp_path / "data")).findings] == ["quorum-state"]
    with broker.running(signal.SIGTERM):
        pass
    assert verify_directory(str(tmp_path / "data")).findings == ()
