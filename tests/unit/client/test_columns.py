"""Columns of a producer: where the records go, in which order, in which transaction, and what is left of a refusal."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logstore.client.producer.queues import partition_for_key, partitions_for_keys
from logstore.client.store import Store
from logstore.columns.record_columns import BytesColumn
from logstore.errors import (
    AbortRequiredError,
    ConcurrentTransactionsError,
    IllegalStateError,
    InvalidRecordError,
    RecordTooLargeError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
    UsageError,
)
from logstore.model import FetchIsolation, TopicPartition
from tests.support.stores import LONG_MS, begun, patient_producer, values_of

TOPICS = {"t": 3, "one": 1}


@settings(deadline=None)  # the first call may compile
@given(st.lists(st.none() | st.binary(max_size=20), max_size=40), st.integers(1, 7))
def test_many_keys_have_the_partitions_that_each_has(keys: list[bytes | None], partition_count: int) -> None:
    expected = [-1 if key is None else partition_for_key(key, partition_count) for key in keys]
    assert partitions_for_keys(BytesColumn.of_values(keys), partition_count).tolist() == expected


def test_columns_go_behind_what_was_sent_before(store: Store) -> None:
    with patient_producer(store) as sending:
        before = sending.send("one", b"0")
        [written] = sending.send_columns("one", np.array([b"1", b"2"]), timestamps=[5, 6], headers=[[("h", b"x")], []])
        assert before.is_done
        after = sending.send("one", b"3")
    assert written == ("one", 0, 1, 2, 2)
    assert written.topic_partition == TopicPartition("one", 0)
    assert after.get().offset == 3
    [chunk, *_] = [list(store.log("one", 0).records().chunks())]
    records = [record for part in chunk for record in part.to_records()]
    assert [record.value for record in records] == [b"0", b"1", b"2", b"3"]
    assert [record.timestamp for record in records[1:3]] == [5, 6]
    assert records[1].headers == [("h", b"x")]
    [entry] = store.log("one", 0).state.producers.state
    assert entry.batches[-1].last_sequence == 3


def test_keys_choose_partitions(store: Store) -> None:
    keys = [b"%d" % number for number in range(50)]
    with patient_producer(store) as sending:
        written = sending.send_columns("t", keys, keys)
        assert [one.partition for one in written] == [0, 1, 2]
        assert sending.send_columns("t", keys, keys, partition=1)[0].record_count == 50
        [lone] = sending.send_columns("t", keys)
        assert lone.record_count == 50
        assert sending.send_columns("t", [], []) == []
    for partition in range(3):
        mine = [key for key in keys if partition_for_key(key, 3) == partition]
        assert values_of(store, "t", partition)[: len(mine)] == mine
    assert sum(len(values_of(store, "t", partition)) for partition in range(3)) == 150


def test_records_without_a_key_stay_between_those_with_one(store: Store) -> None:
    with patient_producer(store) as sending:
        [written] = sending.send_columns("one", values=[b"1", b"2", b"3"], keys=[b"a", None, b"b"])
    assert written.record_count == 3
    assert values_of(store, "one", 0) == [b"1", b"2", b"3"]


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_many_records_are_many_batches_with_their_sequences(store: Store, codec: str) -> None:
    with patient_producer(store, compression_type=codec) as sending:
        for _ in range(2):
            sending.send_columns("one", np.zeros((30_000, 100), np.uint8))
    assert len(values_of(store, "one")) == 60_000
    [entry] = store.log("one", 0).state.producers.state
    assert entry.batches[-1].last_sequence == 59_999
    assert len(entry.batches) == 5


def test_columns_are_part_of_a_transaction(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    sending = patient_producer(store, transactional_id="x", retry_backoff_ms=1)
    sending.init_transactions()
    with pytest.raises(IllegalStateError, match="while in state  READY"):
        sending.send_columns("t", [b"1"])
    for is_commit in (False, True):
        sending.begin_transaction()
        sending.send_columns("t", [b"%d" % is_commit] * 3, [b"a", b"b", b"c"])
        sending.send("t", b"%d" % is_commit, partition=0)
        if is_commit:
            sending.commit_transaction()
        else:
            sending.abort_transaction()
    assert sorted(value for partition in range(3) for value in values_of(store, "t", partition)) == [b"1"] * 4
    begin, waits = store.transactions.begin_append, [ConcurrentTransactionsError() for _ in range(2)]

    def busy(*arguments: Any, **options: Any) -> Any:
        if waits:
            raise waits.pop()
        return begin(*arguments, **options)

    monkeypatch.setattr(store.transactions, "begin_append", busy)
    sending.begin_transaction()
    sending.send_columns("one", [b"x"])
    sending.commit_transaction()
    assert values_of(store, "one") == [b"x"]


def test_refused_columns_leave_no_gap_in_sequences(store: Store) -> None:
    store.create_topic("keyed", 1, {"cleanup.policy": "compact"})
    store.create_topic("small", 1, {"max.message.bytes": "200"})
    with patient_producer(store) as sending:
        with pytest.raises(InvalidRecordError):
            sending.send_columns("keyed", [b"1", b"2"], [b"k", None])
        with pytest.raises(RecordTooLargeError):
            sending.send_columns("small", [b"1", bytes(1000)])
        with pytest.raises(UsageError, match="not as many as the records"):
            sending.send_columns("keyed", [b"1"], [b"k", b"l"])
        sending.send_columns("keyed", [b"1"], [b"k"])
        [written] = sending.send_columns("small", [bytes(100)] * 5)
    assert (written.first_offset, written.last_offset) == (0, 4)
    for topic in ("keyed", "small"):
        [entry] = store.log(topic, 0).state.producers.state
        assert entry.producer_epoch == 0
    with pytest.raises(IllegalStateError, match="after producer has been closed"):
        sending.send_columns("one", [b"1"])


def test_a_refusal_in_a_transaction_has_to_be_aborted(store: Store) -> None:
    store.create_topic("small", 1, {"max.message.bytes": "200"})
    sending = begun(store, linger_ms=LONG_MS)
    sending.send_columns("one", [b"1"])
    with pytest.raises(RecordTooLargeError):
        sending.send_columns("small", [bytes(1000)])
    sending.abort_transaction()
    assert values_of(store, "one") == []
    assert values_of(store, "one", isolation=FetchIsolation.READ_UNCOMMITTED) == [b"1"]


@pytest.mark.parametrize(("topic", "partition"), [("nope", None), ("one", 9)])
def test_a_transaction_does_not_count_without_columns_for_nowhere(
    store: Store, topic: str, partition: int | None
) -> None:
    sending = begun(store, linger_ms=LONG_MS)
    sending.send_columns("one", [b"1"])
    with pytest.raises(UnknownTopicOrPartitionError):
        sending.send_columns(topic, [b"2"], partition=partition)
    with pytest.raises(AbortRequiredError):
        sending.commit_transaction()
    sending.abort_transaction()
    assert values_of(store, "one") == []


def test_columns_do_not_pass_records_that_wait(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    sending = patient_producer(store, max_block_ms=1)
    log = store.log("one", 0)

    def fail(*_: Any, **__: Any) -> None:
        raise ConcurrentTransactionsError

    monkeypatch.setattr(log, "append_records", fail)
    sending.send("one", b"1")
    with pytest.raises(RequestTimedOutError, match="Records for one-0 wait to be tried again"):
        sending.send_columns("one", [b"2"])
    monkeypatch.undo()
    sending.close()
    assert values_of(store, "one") == [b"1"]
