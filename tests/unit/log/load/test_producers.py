"""Snapshots of producers that a load keeps and removes, and when two states are the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from logstore.columns.batch_table import scan
from logstore.folds import producer_update
from logstore.log.load.producers import PartitionProducers
from logstore.log.segment.writable_folder import WritableFolder
from tests.support.encoder import SOME_TIME, TRANSACTIONAL, Batch, Rec
from tests.support.seams import UnsyncedSeam


def producers_of(directory: Path) -> PartitionProducers:
    folder = WritableFolder(str(directory), UnsyncedSeam())
    return PartitionProducers(folder, "t-0", now_ms=SOME_TIME, expiration_ms=1000)


@pytest.mark.parametrize(
    ("snapshots", "bases", "kept"),
    [
        ([0, 10, 20], [0, 10, 20], [0, 10, 20]),
        ([5, 10, 25], [0, 10, 20], [10, 25]),
        ([5, 15], [0, 10, 20], []),
        ([25, 30], [0, 10, 20], [30]),
        ([5, 15], [], [15]),
    ],
    ids=["at segments", "the newest is behind the last segment", "none is", "two are", "no segment"],
)
def test_a_snapshot_belongs_to_a_segment_or_to_the_log_s_end(
    snapshots: list[int], bases: list[int], kept: list[int], tmp_path: Path
) -> None:
    for offset in snapshots:
        (tmp_path / f"{offset:020}.snapshot").touch()
    producers_of(tmp_path).remove_stray_snapshots(bases)
    assert sorted(int(path.stem) for path in tmp_path.iterdir()) == kept


def test_states_have_the_same_digest_if_they_were_reached_in_the_same_way(tmp_path: Path) -> None:
    def digest(producer_id: int, flags: int) -> bytes:
        producers = producers_of(tmp_path)
        batch = Batch(0, [Rec(b"", b"")], flags=flags, producer_id=producer_id, producer_epoch=0, base_sequence=0)
        data = np.frombuffer(batch.to_bytes(), np.uint8)
        producer_update.step(producers.state, data, scan(data), 0, 1)
        return producers.digest()

    digests = [digest(7, 0), digest(8, 0), digest(7, TRANSACTIONAL)]
    assert len(set(digests)) == 3
    assert digests == [digest(7, 0), digest(8, 0), digest(7, TRANSACTIONAL)]
