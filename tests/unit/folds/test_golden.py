"""What the folds make of logs that real brokers wrote is what the brokers wrote beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from logstore.columns.batch_table import BatchTable, scan_chunk
from logstore.columns.batch_table import scan as scan_all
from logstore.folds import aborted_transactions, leader_epochs, producer_update
from logstore.folds.aborted_transactions import AbortedTransactions
from logstore.folds.leader_epochs import LeaderEpochs
from logstore.folds.producer_state import ProducerState
from logstore.folds.producer_update import AppendOrigin, ProducerUpdate
from logstore.kernels.scan import batches as fields
from logstore.layout.leader_epoch_checkpoint import parse_leader_epoch_checkpoint
from tests.support.snapshots import comparable

WRITTEN = [
    "demo",
    "records",
    "transactions",
    "transactions-v1",
    "transactions-v0",
    "killed",
    "groups",
    "cluster",
    "newest",
]

Bytes = np.ndarray
Step = Callable[[ProducerState, Bytes, BatchTable], bytes]


def recovered(state: ProducerState, data: Bytes, table: BatchTable) -> bytes:
    """Each batch at once, as a segment is recovered; the `.txnindex`."""
    aborted = AbortedTransactions()
    aborted_transactions.step(aborted, producer_update.step(state, data, table, 0, len(table)))
    return aborted.to_bytes()


def appended(state: ProducerState, data: Bytes, table: BatchTable) -> bytes:
    """Each batch an append of its own by a leader that believes what it is told; the `.txnindex`."""
    aborted = AbortedTransactions()
    for row in range(len(table)):
        update = ProducerUpdate(state, AppendOrigin.REPLICATION)
        assert update.step(data, table, row, row + 1) is None
        aborted_transactions.step(aborted, update.commit(int(table.last_offset[row]) + 1))
    return aborted.to_bytes()


def partitions(directory: Path) -> list[Path]:
    return sorted({log.parent for log in directory.glob("*/*.log")})


@pytest.mark.parametrize("step", [recovered, appended])
@pytest.mark.parametrize("name", WRITTEN)
def test_snapshots_and_transaction_indexes_come_out_as_the_broker_wrote_them(
    golden: Callable[[str], Path], name: str, step: Step
) -> None:
    snapshot_count = 0
    for partition in partitions(golden(name)):
        state = ProducerState(partition.name)
        for log in sorted(partition.glob("*.log")):
            snapshot_count += matches_snapshot(partition, state, int(log.stem))
            data = np.fromfile(log, np.uint8)
            written = log.with_suffix(".txnindex")
            assert step(state, data, scan_all(data)) == (written.read_bytes() if written.exists() else b""), log
        snapshot_count += matches_snapshot(partition, state, state.map_end_offset)
    assert snapshot_count > 0


def matches_snapshot(partition: Path, state: ProducerState, offset: int) -> bool:
    """Whether there is a snapshot of `offset`, which must hold the state."""
    path = partition / f"{offset:020d}.snapshot"
    if not path.exists():
        return False
    assert state.to_snapshot_bytes() == comparable(path), path
    return True


@pytest.mark.parametrize("name", WRITTEN)
def test_leader_epochs_that_have_batches_come_out_as_the_broker_wrote_them(
    golden: Callable[[str], Path], name: str
) -> None:
    compared_count = 0
    for partition in partitions(golden(name)):
        path = partition / "leader-epoch-checkpoint"
        if not path.exists():
            continue
        state, recovered_state, offset = LeaderEpochs(), LeaderEpochs(), 0
        for log in sorted(partition.glob("*.log")):
            table = scan_all(np.fromfile(log, np.uint8))
            leader_epochs.step(state, table, 0, len(table))
            leader_epochs.step_recovered(recovered_state, table, 0, len(table))
            offset = int(table.last_offset[-1]) + 1 if len(table) else offset
        written = LeaderEpochs(parse_leader_epoch_checkpoint(path.read_bytes(), path=str(path)))
        written.truncate_from_end(offset)
        if written.entries and written.entries[0][1] == state.entries[0][1]:
            assert state.entries == written.entries
            assert recovered_state.entries == written.entries
            compared_count += 1
    assert compared_count > 0


def test_windows_of_a_log_fold_to_the_same_state(golden: Callable[[str], Path]) -> None:
    log = golden("transactions") / "rolled-0" / "00000000000000000000.log"
    data = np.fromfile(log, np.uint8)
    whole, pieces = ProducerState("rolled-0"), ProducerState("rolled-0")
    expected = producer_update.step(whole, data, scan_all(data), 0, len(scan_all(data)))
    found, position = [], 0
    while True:
        table = scan_chunk(data, position, data.size, capacity=2)
        found.append(producer_update.step(pieces, data, table, 0, len(table)))
        if table.status != fields.MORE:
            break
        position = table.next_position
    assert len(expected) > 1
    assert np.concatenate(found).tolist() == expected.tolist()
    assert list(pieces) == list(whole)
    assert pieces.map_end_offset == whole.map_end_offset
