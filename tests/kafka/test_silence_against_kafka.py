"""Audits find nothing in what the real Kafka writes: a few directories, and some more of brokers; see `prove`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import pytest

from tests.silence import log_world
from tests.silence.broker_session import Session
from tests.silence.snapshots import Snapshot, Tally
from tests.support.oracle import Oracle
from tests.support.sampling import IS_LONG, seed_of

pytestmark = pytest.mark.kafka

LOG_DIRECTORIES = 300 if IS_LONG else 5
SEED = seed_of("SILENCE")


def audited(snapshots: Iterable[Snapshot]) -> Tally:
    tally = Tally()
    for snapshot in snapshots:
        tally.audit(snapshot)
    return tally


@pytest.mark.by_release
@pytest.mark.slow
def test_nothing_is_found_in_logs_of_kafka(oracle: Oracle, tmp_path: Path) -> None:
    snapshots = log_world.snapshots(oracle, tmp_path, SEED)
    tally = audited(islice(snapshots, LOG_DIRECTORIES))
    snapshots.close()
    assert tally.error_count == 0, tally.text()
    assert sum(tally.kinds.values()) == LOG_DIRECTORIES


@pytest.mark.long
def test_nothing_is_found_in_directories_of_brokers(oracle: Oracle, tmp_path: Path) -> None:
    tally = audited(Session(oracle, tmp_path, SEED).snapshots())
    assert tally.error_count == 0, tally.text()
    assert sum(tally.kinds.values()) > 50
