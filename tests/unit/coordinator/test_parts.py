"""Small parts of the coordinators: offsets of deleted topics, expiry, marker answers."""

from __future__ import annotations

import pytest

from logstore.coordinator.groups.offsets import GroupOffsets, OffsetAndMetadata, commit_records
from logstore.coordinator.transactions.ending import AbortTimedOut
from logstore.coordinator.transactions.outcomes import (
    Allocate,
    Answer,
    Append,
    Context,
    Outcome,
    ProducerIdentity,
    TransactionRules,
    is_taken_over,
    marker_of,
)
from logstore.coordinator.transactions.requests import AddPartitions, InitProducerId, Request
from logstore.coordinator.transactions.table import TransactionTable
from logstore.coordinator.transactions.transaction import LAST_CLIENT_EPOCH, NO_PRODUCER_EPOCH, Transaction
from logstore.coordinator.transactions.transitions import prepare_complete
from logstore.errors import (
    CoordinatorLoadInProgressError,
    CorruptRecordError,
    DataDirectoryError,
    IllegalTransitionError,
    InvalidProducerEpochError,
    OffsetMetadataTooLargeError,
    TransactionCoordinatorFencedError,
)
from logstore.model import TopicPartition
from logstore.topics.consumer_offsets import OffsetKey
from logstore.topics.partition_for import partition_for
from logstore.topics.transaction_state import TransactionState

DAY_MS = 86_400_000
T0 = TopicPartition("t", 0)


def asked(table: TransactionTable, request: Request, *, now_ms: int, allocate: Allocate = lambda: 7) -> Outcome:
    return request.decide(table.get(request.transactional_id), Context(table.rules, allocate, now_ms))


def initialized(table: TransactionTable, name: str, now_ms: int = 0) -> ProducerIdentity:
    append = asked(table, InitProducerId(name, 1000), now_ms=now_ms)
    assert isinstance(append, Append)
    table.put(append.following)
    assert isinstance(append.answer, Answer)
    assert append.answer.identity is not None
    return append.answer.identity


def test_a_transaction_without_producer_id_is_tried_again() -> None:
    table = TransactionTable(TransactionRules(), coordinator_epoch=0)

    def allocate() -> int:
        raise CoordinatorLoadInProgressError

    with pytest.raises(CoordinatorLoadInProgressError):
        asked(table, InitProducerId("x", 1000), allocate=allocate, now_ms=0)
    assert list(table) == []


def test_an_open_transaction_times_out_but_does_not_expire() -> None:
    table = TransactionTable(TransactionRules(), coordinator_epoch=0)
    identity = initialized(table, "x")
    append = asked(table, AddPartitions("x", identity, [T0], 2), now_ms=5)
    assert isinstance(append, Append)
    table.put(append.following)
    assert table.timed_out(now_ms=1005) == []
    assert table.timed_out(now_ms=1006) == ["x"]
    assert table.expired(now_ms=8 * DAY_MS) == []
    abort = asked(table, AbortTimedOut("x"), now_ms=1006)
    assert isinstance(abort, Append)
    table.put(abort.following)
    assert table.timed_out(now_ms=1006) == []
    assert asked(table, AbortTimedOut("x"), now_ms=1006) == Answer()
    marker = marker_of(abort.following, coordinator_epoch=0)
    assert (marker.is_commit, marker.producer_epoch) == (False, 1)
    table.marker_written("x", ("t", 0))
    completed = prepare_complete(abort.following, now_ms=1006)
    with pytest.raises(IllegalTransitionError):
        prepare_complete(completed, now_ms=1006)


def test_the_error_of_a_marker_decides_whether_it_is_tried_again() -> None:
    assert not is_taken_over(None)
    assert not is_taken_over(DataDirectoryError("gone"))
    assert is_taken_over(InvalidProducerEpochError("old"))
    assert is_taken_over(TransactionCoordinatorFencedError("old"))
    assert not is_taken_over(CorruptRecordError("bad"))


def test_offsets_of_a_deleted_topic_go_but_not_those_of_its_successor() -> None:
    offsets = GroupOffsets()
    for group, topic_id in (("g", None), ("h", "A" * 21 + "Q"), ("i", "B" * 22)):
        for record in commit_records(group, {T0: OffsetAndMetadata(1)}, topic_ids={T0: topic_id}, now_ms=0):
            offsets.replay(*record, record_offset=0)
    [record] = commit_records("j", {("t", 1): OffsetAndMetadata(1)}, now_ms=0)
    offsets.replay(*record, record_offset=1, producer_id=5)
    keys = offsets.tombstones_of_topic("t", "A" * 21 + "Q")
    assert sorted((key.group_id, key.partition) for key in keys) == [("g", 0), ("h", 0), ("j", 1)]
    assert list(offsets.partitions("i")) == [("t", 0)]
    assert not offsets.has_undecided("i")
    assert offsets.has_undecided("j")


def test_metadata_beside_an_offset_has_a_limit_in_java_characters() -> None:
    [(key, value)] = commit_records("g", {("t", 0): OffsetAndMetadata(1, metadata="😀" * 2048)}, now_ms=0)
    assert (key, len(value.metadata)) == (OffsetKey("g", "t", 0), 2048)
    with pytest.raises(OffsetMetadataTooLargeError, match="shorten the metadata of t-0"):
        commit_records("g", {("t", 0): OffsetAndMetadata(1, metadata="😀" * 2048 + "x")}, now_ms=0)


def test_the_hash_without_a_positive_is_partition_zero() -> None:
    assert partition_for("polygenelubricants", 50) == 0
    assert partition_for("my-tx", 50) == 11


@pytest.mark.parametrize("expects_itself", [False, True])
def test_a_producer_whose_epochs_are_used_up_gets_another_id_and_its_retry_the_same(expects_itself: bool) -> None:
    exhausted = Transaction("t", 7, LAST_CLIENT_EPOCH, TransactionState.EMPTY, 1000)
    expected = ProducerIdentity(7, LAST_CLIENT_EPOCH) if expects_itself else None
    ids = iter(range(8, 100))
    context = Context(TransactionRules(), lambda: next(ids), 5)
    outcome = InitProducerId("t", 1000, expected).decide(exhausted, context)
    assert isinstance(outcome, Append)
    assert outcome.answer == Answer(ProducerIdentity(8, 0))
    following = outcome.following
    assert following.last_producer_epoch == (LAST_CLIENT_EPOCH if expects_itself else NO_PRODUCER_EPOCH)
    again = InitProducerId("t", 1000, expected).decide(following, context)
    assert isinstance(again, Append)
    # a retry of the producer itself gets what it got; a new producer the next epoch
    assert again.answer == Answer(ProducerIdentity(8, 0 if expects_itself else 1))
