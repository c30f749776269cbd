"""What a fold refuses, in Kafka's words; odd control records, which only Python reads; and guards of transactions."""

from __future__ import annotations

import struct
from dataclasses import replace

import numpy as np
import pytest

from logstore.columns.batch_table import BatchTable, Int64Array, scan
from logstore.errors import (
    CorruptIndexError,
    InvalidProducerEpochError,
    InvalidRecordError,
    InvalidTxnStateError,
    UsageError,
)
from logstore.folds import aborted_transactions, producer_update
from logstore.folds.aborted_transactions import AbortedTransactions
from logstore.folds.producer_state import ProducerState
from logstore.folds.producer_update import AppendOrigin, ProducerUpdate
from logstore.folds.verification import VerificationStates
from logstore.layout.batch import CONTROL_FLAG, TRANSACTIONAL_FLAG
from logstore.layout.producer_snapshot import ProducerSnapshot
from logstore.layout.transaction_index import parse_transaction_index
from tests.properties.fold_stories import marker, scanned
from tests.support.encoder import CONTROL, TRANSACTIONAL, Batch, Rec

OPEN = Batch(0, [Rec()], flags=TRANSACTIONAL, producer_id=7, producer_epoch=3, base_sequence=0)
COMMIT = marker(1, is_abort=False, coordinator_epoch=4, producer_id=7, producer_epoch=3)
KEY, VALUE = struct.pack(">hh", 0, 0), struct.pack(">hi", 0, 4)


def after(*batches: Batch) -> ProducerState:
    state = ProducerState("t-0", requires_verification=False)
    data, table = scanned(list(batches))
    producer_update.step(state, data, table, 0, len(table))
    return state


def with_record(**fields: bytes | None) -> Batch:
    return replace(COMMIT, records=[replace(Rec(key=KEY, value=VALUE), **fields)])


@pytest.mark.parametrize(
    ("batch", "message", "java_class"),
    [
        (with_record(key=None), None, "java.lang.NullPointerException"),
        (with_record(value=None), None, "java.lang.NullPointerException"),
        (
            with_record(key=b"\0\0\0"),
            "Invalid value size found for control record key. Must have at least 4 bytes, but found only 3",
            "org.apache.kafka.common.InvalidRecordException",
        ),
        (
            with_record(key=struct.pack(">hh", -1, 0)),
            "Invalid version found for control record: -1. May indicate data corruption",
            "org.apache.kafka.common.InvalidRecordException",
        ),
        (
            with_record(key=struct.pack(">hh", 0, 2)),
            "Invalid control record type for end transaction marker LEADER_CHANGE",
            "java.lang.IllegalArgumentException",
        ),
        (
            with_record(key=struct.pack(">hh", 0, 77)),
            "Invalid control record type for end transaction marker UNKNOWN",
            "java.lang.IllegalArgumentException",
        ),
        (
            with_record(value=struct.pack(">hi", -3, 4)),
            "Invalid version found for end transaction marker: -3. May indicate data corruption",
            "org.apache.kafka.common.InvalidRecordException",
        ),
        (with_record(value=b"\0"), None, "java.nio.BufferUnderflowException"),
        (
            replace(COMMIT, codec=0, records=[Rec()], stream=b"\x0c\0\0\0\1"),
            "Invalid record size: expected 6 bytes in record payload, but instead the buffer has only 4 remaining "
            "bytes.",
            "org.apache.kafka.common.InvalidRecordException",
        ),
        (with_record(value=b"\0\0\0\0"), None, "java.nio.BufferUnderflowException"),
    ],
)
def test_a_control_record_that_is_no_marker_is_refused(batch: Batch, message: str | None, java_class: str) -> None:
    data, table = scanned([OPEN, batch])
    state = ProducerState("t-0")
    with pytest.raises(InvalidRecordError) as caught:
        producer_update.step(state, data, table, 0, 2)
    assert (caught.value.message, caught.value.java_class) == (message, java_class)
    assert (caught.value.position, caught.value.offset) == (int(table.position[1]), 1)
    assert state.map_end_offset == 1
    assert state.transactions.first_unstable_offset == 0


@pytest.mark.parametrize(
    "batch",
    [
        with_record(key=struct.pack(">hh", 1, 0) + b"more", value=struct.pack(">hi", 1, 4) + b"more"),
        replace(COMMIT, codec=1, records=[Rec(key=KEY, value=VALUE)]),
        replace(COMMIT, records=[Rec(key=KEY, value=VALUE), Rec(key=b"not looked at")]),
    ],
    ids=["newer versions", "compressed", "two records"],
)
def test_an_odd_marker_ends_its_transaction_all_the_same(batch: Batch) -> None:
    state = after(OPEN, batch)
    (entry,) = state
    assert (entry.coordinator_epoch, entry.current_txn_first_offset) == (4, None)
    assert state.transactions.ongoing_count == 0


def test_an_empty_control_batch_makes_a_producer_known_and_no_more() -> None:
    (entry,) = after(Batch(0, [], flags=TRANSACTIONAL | CONTROL, producer_id=7, producer_epoch=3))
    assert (entry.producer_epoch, entry.last_timestamp, entry.batches) == (-1, -1, ())


def test_batches_without_a_producer_leave_nothing_but_the_end_offset() -> None:
    state = after(Batch(0, [Rec()]), Batch(1, [Rec()], producer_id=-7, producer_epoch=0, base_sequence=0))
    assert (len(state), state.map_end_offset) == (0, 2)


def test_a_refused_append_leaves_the_state_as_it_was() -> None:
    state = after(OPEN)
    data, table = scanned([replace(OPEN, base_offset=1, flags=0, base_sequence=1)])
    before = state.to_snapshot_bytes()
    update = ProducerUpdate(state, AppendOrigin.CLIENT)
    with pytest.raises(
        InvalidTxnStateError, match=r"Expected transactional write from producer 7 at offset \(offset=1"
    ):
        update.step(data, table, 0, 1)
    assert len(update.commit()) == 0
    assert state.to_snapshot_bytes() == before


def test_a_group_that_is_not_committed_does_not_count() -> None:
    state = after(OPEN)
    before = state.to_snapshot_bytes()
    data, table = scanned([COMMIT])
    assert ProducerUpdate(state, AppendOrigin.REPLICATION).step(data, table, 0, 1) is None
    assert len(ProducerUpdate(state, AppendOrigin.REPLICATION).commit()) == 0
    assert state.to_snapshot_bytes() == before


def test_a_leader_must_know_the_transaction_version_of_a_marker() -> None:
    data, table = scanned([COMMIT])
    with pytest.raises(UsageError, match="TV_UNKNOWN for origin COORDINATOR"):
        ProducerUpdate(after(OPEN), AppendOrigin.COORDINATOR).step(data, table, 0, 1)


def test_a_verification_is_refused_to_an_old_epoch_and_not_needed_in_a_transaction() -> None:
    state = after(OPEN)
    with pytest.raises(InvalidProducerEpochError, match="Epoch of producer 7 is 2, which is smaller"):
        state.begin_verification(7, sequence=0, producer_epoch=2, supports_epoch_bump=True, now_ms=0)
    assert state.begin_verification(7, sequence=0, producer_epoch=3, supports_epoch_bump=True, now_ms=0) is None
    assert state.begin_verification(7, sequence=0, producer_epoch=4, supports_epoch_bump=True, now_ms=0) is not None


def test_a_verification_expires_by_the_time_of_its_making() -> None:
    state = ProducerState("t-0", expiration_ms=100)
    state.begin_verification(7, sequence=0, producer_epoch=0, supports_epoch_bump=False, now_ms=1000)
    state.drop_expired(1099)
    assert state.verification.get(7) is not None
    state.drop_expired(1100)
    assert state.verification.get(7) is None


def test_two_producers_of_a_snapshot_with_one_first_offset_end_in_an_error() -> None:
    columns = [np.array(values) for values in ([7, 8], [0, 0], [0, 0], [5, 5], [0, 0], [1, 1], [0, 0], [5, 5])]
    state = ProducerState("t-0")
    state.load(ProducerSnapshot(0, *columns), 6, now_ms=1)
    assert state.transactions.ongoing_entries().tolist() == [[5, 8]]
    markers = [marker(6 + i, is_abort=True, coordinator_epoch=0, producer_id=7 + i, producer_epoch=0) for i in (0, 1)]
    data, table = scanned(markers)
    with pytest.raises(InvalidTxnStateError) as caught:
        producer_update.step(state, data, table, 0, 2)
    assert caught.value.message == (
        "Attempted to complete transaction CompletedTxn[producerId=8, firstOffset=5, lastOffset=7, isAborted=true] on "
        "partition t-0 which was not started"
    )
    assert state.buffers.take_completed().tolist() == [[7, 5, 6, 1, 5]]


def test_a_load_forgets_what_was_there_and_what_has_expired() -> None:
    columns = [np.array(values) for values in ([7, 8], [0, 0], [0, 0], [5, 5], [0, 0], [50, 60], [0, 0], [-1, -1])]
    state = after(replace(OPEN, producer_id=9))
    state.expiration_ms = 100
    state.load(ProducerSnapshot(0, *columns), 6, now_ms=150)
    assert [entry.producer_id for entry in state] == [8]
    assert (state.map_end_offset, state.transactions.ongoing_count) == (6, 0)
    assert state.get(7) is None
    assert state.get(8) is not None


def completed(*last_offsets: int) -> Int64Array:
    return np.array([[7, last - 1, last, 1, last + 1] for last in last_offsets])


def test_aborted_transactions_must_come_in_the_order_of_their_markers() -> None:
    state = AbortedTransactions()
    aborted_transactions.step(state, completed(5, 9))
    with pytest.raises(CorruptIndexError, match="but 9 is not greater than current last offset 11 of index") as caught:
        aborted_transactions.step(state, completed(11, 9))
    assert caught.value.java_class == "java.lang.IllegalArgumentException"
    assert state.entries[:, 2].tolist() == [5, 9, 11]


def test_aborted_transactions_come_back_from_their_file_and_are_truncated() -> None:
    state = AbortedTransactions()
    assert (state.entry_count, state.last_offset, state.to_bytes()) == (0, None, b"")
    aborted_transactions.step(state, completed(5, 9))
    aborted_transactions.step(state, np.array([[8, 10, 11, 0, 12]]))
    resumed = AbortedTransactions.resume(parse_transaction_index(state.to_bytes(), path="x"))
    assert resumed.entries.tolist() == state.entries.tolist() == [[7, 4, 5, 6], [7, 8, 9, 10]]
    resumed.truncate_to(9)
    assert (resumed.entry_count, resumed.last_offset) == (1, 5)
    assert state.to_bytes(1) == state.to_bytes()[34:]


def test_a_marker_of_magic_1_is_passed_over() -> None:
    data, table = scanned([OPEN])
    legacy = BatchTable(table.matrix.copy(), 1, table.status, table.next_position)
    legacy.magic[0] = 1
    state = ProducerState("t-0")
    assert len(producer_update.step(state, data, legacy, 0, 1)) == 0
    assert (len(state), state.map_end_offset) == (0, 0)
    assert len(scan(data)) == 1


MARKER = TRANSACTIONAL_FLAG | CONTROL_FLAG


@pytest.mark.parametrize(
    ("supports_epoch_bump", "attributes", "epoch", "is_kept"),
    [
        (True, MARKER, 5, True),  # of the transaction before, which gave the producer this epoch
        (True, MARKER, 6, False),
        (True, MARKER, 4, False),
        (False, MARKER, 5, False),
        (True, TRANSACTIONAL_FLAG, 5, False),
        (True, 0, 5, True),
        (True, 4, 5, True),  # compressed
    ],
)
def test_a_batch_of_the_transaction_uses_up_its_guard(
    supports_epoch_bump: bool, attributes: int, epoch: int, is_kept: bool
) -> None:
    states = VerificationStates()
    for producer_id in (7, 8):
        states.begin(producer_id, sequence=0, epoch=5, supports_epoch_bump=supports_epoch_bump, now_ms=0, end_offset=0)
    states.accepted(7, epoch, attributes)
    states.accepted(9, epoch, attributes)
    assert (states.get(7) is not None, states.get(8) is not None) == (is_kept, True)


def test_the_lowest_sequence_is_of_the_highest_epoch() -> None:
    """A batch of an epoch that is over says nothing of where its producer goes on."""
    states = VerificationStates()
    tried = [(3, 5), (1, 4), (9, 6), (2, 6), (8, 6)]  # sequence and epoch
    found = []
    for sequence, epoch in tried:
        states.begin(7, sequence=sequence, epoch=epoch, supports_epoch_bump=True, now_ms=0, end_offset=0)
        state = states.get(7)
        found.append((state.lowest_sequence, state.epoch))
    assert found == [(3, 5), (3, 5), (9, 6), (2, 6), (2, 6)]
