"""A producer without transactions: what it writes where, what it waits for, what it refuses, what it tries again."""

from __future__ import annotations

import threading
import time
from itertools import groupby
from typing import Any

import pytest

from logstore.client.producer.batch import RecordMetadata
from logstore.client.producer.queues import partition_for_key
from logstore.client.store import Store
from logstore.columns.decoded_records import Record
from logstore.errors import (
    BufferExhaustedError,
    CoordinatorLoadInProgressError,
    IllegalStateError,
    InvalidRecordError,
    LogstoreError,
    OutOfOrderSequenceError,
    ProducerFailedError,
    RecordTooLargeError,
    RequestTimedOutError,
    SerializationError,
    UnknownTopicOrPartitionError,
)
from logstore.log.partition_log import PartitionLog
from logstore.model import TopicPartition
from tests.support.stores import LONG_MS, patient_producer

TOPICS = {"t": 3, "one": 1}


def records(store: Store, topic: str = "one", partition: int = 0) -> list[Record]:
    return [record for chunk in store.log(topic, partition).records().chunks() for record in chunk.to_records()]


def test_a_record_is_where_its_future_says(store: Store) -> None:
    with patient_producer(store) as sending:
        future = sending.send("one", b"paid", b"42", [("trace", b"7"), ("none", None)], timestamp_ms=1_700_000_000_000)
        assert [future.is_done, future.succeeded(), future.failed(), future.exception] == [False, False, False, None]
        assert sending.flush()
        metadata = future.get()
    assert metadata == ("one", 0, 0, 1_700_000_000_000, 2, 4)
    assert metadata.topic_partition == TopicPartition("one", 0)
    [record] = records(store)
    assert record[:2] == (0, 1_700_000_000_000)
    assert (record.key, record.value, record.headers) == (b"42", b"paid", [("trace", b"7"), ("none", None)])


def test_a_full_batch_is_written_at_once_and_others_when_they_have_waited(store: Store) -> None:
    with patient_producer(store, batch_size=1000) as sending:
        futures = [sending.send("one", bytes(300)) for _ in range(4)]
        assert [future.is_done for future in futures] == [True, True, False, False]
    with patient_producer(store, linger_ms=1) as sending:
        assert sending.send("one", b"x").get(60).offset == 4
    with patient_producer(store, linger_ms=0) as sending:
        assert sending.send("one", b"x").is_done
    assert [record.offset for record in records(store)] == list(range(6))


def test_records_with_a_key_go_where_the_java_client_sends_them(store: Store) -> None:
    with patient_producer(store) as sending:
        placed = [sending.send("t", None, str(number).encode()) for number in range(30)]
        fixed = sending.send("t", b"v", b"0", partition=2)
        assert sending.partitions_for("t") == range(3)
    expected = [partition_for_key(str(number).encode(), 3) for number in range(30)]
    assert [future.get().partition for future in placed] == expected
    assert fixed.get().partition == 2


def test_records_without_a_key_stay_together_for_a_batch(store: Store) -> None:
    with patient_producer(store, batch_size=1000) as sending:
        futures = [sending.send("t", bytes(100)) for _ in range(300)]
    partitions = [future.get().partition for future in futures]
    assert set(partitions) == {0, 1, 2}
    runs = [len(list(run)) for _, run in groupby(partitions)]
    assert all(run % 14 == 0 for run in runs[:-1])  # two batches of 7 records make 1000 bytes


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_written_and_read(store: Store, codec: str) -> None:
    with patient_producer(store, compression_type=codec) as sending:
        for number in range(500):
            sending.send("one", b"value %d" % number, timestamp_ms=number)
    read = records(store)
    assert [(record.value, record.timestamp) for record in read] == [(b"value %d" % n, n) for n in range(500)]
    assert (store.log("one", 0).size < 5000) is (codec != "none")


def test_serializers_make_bytes(store: Store) -> None:
    with patient_producer(
        store, key_serializer=str.encode, value_serializer=lambda value: repr(value).encode()
    ) as sending:
        sending.send("one", {"a": 1}, "key")
        with pytest.raises(SerializationError, match="Can't convert key of class int for topic one"):
            sending.send("one", 1, 2)
    assert [(record.key, record.value) for record in records(store)] == [(b"key", b"{'a': 1}")]
    with patient_producer(store) as sending:
        sending.send("one", bytearray(b"a"), memoryview(b"b"))
        with pytest.raises(SerializationError, match="value_serializer"):
            sending.send("one", "text")
    assert [(record.key, record.value) for record in records(store)][1:] == [(b"b", b"a")]


def test_a_record_that_cannot_be_sent_is_refused_at_once(store: Store) -> None:
    with patient_producer(store, max_request_size=200) as sending:
        text = (
            "The message is 249 bytes when serialized which is larger than 200, which is the value of the "
            "max.request.size configuration."
        )
        with pytest.raises(RecordTooLargeError, match=text):
            sending.send("one", bytes(160), b"key")
        with pytest.raises(UnknownTopicOrPartitionError, match="Topic nowhere not present in metadata"):
            sending.send("nowhere", b"x")
        with pytest.raises(UnknownTopicOrPartitionError, match="Partition 3 of topic t with partition count 3"):
            sending.send("t", b"x", partition=3)
    with pytest.raises(IllegalStateError, match="Cannot perform operation after producer has been closed"):
        sending.send("one", b"x")
    assert records(store) == []


def test_a_record_that_is_too_large_for_the_memory_is_refused(store: Store) -> None:
    with (
        patient_producer(store, buffer_memory=100) as sending,
        pytest.raises(RecordTooLargeError, match="total memory buffer"),
    ):
        sending.send("one", bytes(100))


def test_batches_that_are_too_large_for_the_topic_are_halved(store: Store) -> None:
    store.alter_config("one", {"max.message.bytes": "400"})
    with patient_producer(store) as sending:
        futures = [sending.send("one", bytes(100)) for _ in range(20)]
        large = sending.send("one", bytes(1000))
        with pytest.raises(RecordTooLargeError):
            sending.flush()
    assert [future.get().offset for future in futures] == list(range(20))
    assert large.failed()
    assert isinstance(large.exception, RecordTooLargeError)


def test_a_refused_batch_leaves_no_gap(store: Store) -> None:
    store.alter_config("one", {"cleanup.policy": "compact"})
    answers: list[object] = []
    with patient_producer(store) as sending:
        bad = [sending.send("one", b"x", key) for key in (b"k", None)]
        bad[0].add_callback(answers.append).add_errback(answers.append)
        sending.flush()
        good = sending.send("one", b"x", b"k")
        good.add_callback(answers.append).add_errback(answers.append)
    with pytest.raises(InvalidRecordError, match="Failed to append record because it was part of a batch"):
        bad[0].get()
    with pytest.raises(InvalidRecordError, match="Compacted topic cannot accept message without key in topic"):
        bad[1].get()
    assert [type(answer) for answer in answers] == [InvalidRecordError, RecordMetadata]
    [entry] = store.log("one", 0).state.producers.state
    assert (entry.producer_epoch, entry.batches[-1].last_sequence) == (0, 0)


def test_a_callback_that_fails_is_told_and_nothing_else_fails(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    with patient_producer(store, linger_ms=0) as sending:
        future = sending.send("one", b"x")
        future.add_callback(lambda metadata: 1 / 0)
    assert "A callback of a record failed" in caplog.text
    assert future.get().offset == 0


def test_a_flush_that_may_not_wait_returns_while_a_callback_runs(store: Store) -> None:
    begun, released = threading.Event(), threading.Event()

    def wait(_: RecordMetadata) -> None:
        begun.set()
        released.wait(60)

    with patient_producer(store, linger_ms=0) as sending:
        sending.send("one", b"x").add_callback(wait)
        assert begun.wait(60)
        assert [sending.flush(0), sending.flush(0.001)] == [False, False]
        released.set()
        assert sending.flush()


class Failing:
    """Stands before a log's `append_records`: raises one error after the other, then lets the appends through."""

    def __init__(self, log: PartitionLog, monkeypatch: pytest.MonkeyPatch, *errors: LogstoreError) -> None:
        self.errors = list(errors)
        self.identities: list[tuple[int, int]] = []
        self._append = log.append_records
        monkeypatch.setattr(log, "append_records", self)

    def __call__(self, *columns: Any, **fields: Any) -> Any:
        self.identities.append((fields["producer_epoch"], fields["base_sequence"]))
        if self.errors:
            raise self.errors.pop(0)
        return self._append(*columns, **fields)


def test_a_batch_is_tried_again_after_a_passing_error(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = Failing(store.log("one", 0), monkeypatch, *[CoordinatorLoadInProgressError() for _ in range(4)])
    with patient_producer(store, retry_backoff_ms=1, linger_ms=0) as sending:
        first, second = sending.send("one", b"1"), sending.send("one", b"2")
        assert (first.get(60).offset, second.get(60).offset) == (0, 1)
    assert failing.identities == [(0, 0)] * 5 + [(0, 1)]


def test_a_full_batch_is_tried_again_before_the_open_one_behind_it_is_due(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    Failing(store.log("one", 0), monkeypatch, *[CoordinatorLoadInProgressError() for _ in range(4)])
    with patient_producer(store, retry_backoff_ms=1, linger_ms=LONG_MS, batch_size=1000) as sending:
        full, lingering = sending.send("one", bytes(900)), sending.send("one", bytes(900))
        assert full.get(60).offset == 0
        assert not lingering.is_done


def test_a_batch_does_not_wait_for_the_retry_of_another(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while the thread sleeps until that retry."""
    failing = Failing(store.log("one", 0), monkeypatch, *[CoordinatorLoadInProgressError() for _ in range(100)])
    config = {"retry_backoff_ms": LONG_MS, "retry_backoff_max_ms": LONG_MS, "delivery_timeout_ms": 2 * LONG_MS}
    sending = store.producer(linger_ms=1, **config)
    waiting = sending.send("one", b"1")
    while len(failing.identities) < 2 or sending._buffer.background.until_s == 0.0:
        time.sleep(0.001)
    assert sending.send("t", b"2").get(60).topic == "t"
    assert not waiting.is_done
    with pytest.raises(ProducerFailedError):
        sending.close(0)


def test_records_of_a_topic_that_is_made_again_do_not_wait_for_a_retry(store: Store) -> None:
    config = {"retry_backoff_ms": LONG_MS, "retry_backoff_max_ms": LONG_MS}
    with patient_producer(store, linger_ms=LONG_MS, batch_size=1000, **config) as sending:
        first = sending.send("one", bytes(900))
        store.delete_topic("one")
        store.create_topic("one")
        second = sending.send("one", bytes(900))
        assert first.get(60).offset == 0
        assert not second.is_done


def test_after_its_retries_a_batch_fails(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    Failing(store.log("one", 0), monkeypatch, *[CoordinatorLoadInProgressError() for _ in range(3)])
    with patient_producer(store, retry_backoff_ms=1, linger_ms=0, retries=2) as sending:
        with pytest.raises(CoordinatorLoadInProgressError):
            sending.send("one", b"1").get(60)
        assert sending.send("one", b"2").get(60).offset == 0


def test_a_gap_in_sequences_begins_a_new_epoch(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with patient_producer(store, linger_ms=0) as sending:
        sending.send("one", b"1")
        sending.send("t", b"1", partition=0)
        failing = Failing(store.log("one", 0), monkeypatch, OutOfOrderSequenceError("lost"))
        assert sending.send("one", b"2").get(60).offset == 1
        assert sending.send("t", b"2", partition=0).get().offset == 1
    assert failing.identities == [(0, 1), (1, 0)]
    [entry] = store.log("t", 0).state.producers.state
    assert (entry.producer_epoch, entry.batches[-1].last_sequence) == (1, 0)


def test_memory_is_bounded(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with patient_producer(store, batch_size=1000, buffer_memory=2000, max_block_ms=LONG_MS) as sending:
        for partition in range(3):  # the third finds no room, and the first is written for it
            sending.send("t", b"x", partition=partition)
        assert store.log("t", 0).log_end_offset == 1
    with patient_producer(store, batch_size=1000, buffer_memory=2000, max_block_ms=20) as sending:
        Failing(store.log("one", 0), monkeypatch, *[CoordinatorLoadInProgressError() for _ in range(1000)])
        sending.send("one", bytes(900))
        sending.send("one", bytes(900))
        with pytest.raises(BufferExhaustedError, match="Failed to allocate 1000 bytes within the configured max bl"):
            sending.send("one", bytes(900))
        with pytest.raises(ProducerFailedError, match=r"Producer is closed forcefully\."):
            sending.close(0)


def test_a_closed_producer_gives_up_batches_that_are_not_written(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    Failing(store.log("one", 0), monkeypatch, *[CoordinatorLoadInProgressError() for _ in range(1000)])
    sending = patient_producer(store, linger_ms=0)
    future = sending.send("one", b"1")
    with pytest.raises(RequestTimedOutError):
        future.get(0.001)
    assert not sending.flush(0.001)
    for end in (lambda: sending.close(0.001), future.get):
        with pytest.raises(ProducerFailedError, match=r"Producer is closed forcefully\."):
            end()


def test_a_topic_that_is_deleted_and_made_anew(store: Store) -> None:
    with patient_producer(store) as sending:
        lost = [sending.send("one", b"1")]
        sending.flush()
        lost += [sending.send("one", b"2")]
        store.delete_topic("one")
        with pytest.raises(UnknownTopicOrPartitionError):
            sending.flush()
        assert isinstance(lost[1].exception, UnknownTopicOrPartitionError)
        store.create_topic("one", 1)
        again = sending.send("one", b"3")
    assert lost[0].get().offset == 0
    assert again.get().offset == 0
    assert [record.value for record in records(store)] == [b"3"]


def test_without_idempotence_there_is_no_producer_id(store: Store) -> None:
    with patient_producer(store, enable_idempotence=False) as sending:
        sending.send("one", b"1")
    assert len(records(store)) == 1
    assert len(store.log("one", 0).state.producers.state) == 0


def test_many_threads_share_a_producer(store: Store) -> None:
    with patient_producer(store, linger_ms=1, batch_size=500) as sending:

        def work(name: int) -> None:
            for number in range(500):
                sending.send("one", b"%d %d" % (name, number))

        threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    values = [tuple(map(int, (record.value or b"").split())) for record in records(store)]
    assert len(values) == 2000
    for name in range(4):
        assert [number for one, number in values if one == name] == list(range(500))


def test_the_thread_ends_with_its_work(store: Store) -> None:
    before = threading.active_count()
    sending = patient_producer(store, linger_ms=1, client_id="ends")
    sending.send("one", b"1").get(60)
    thread = next(one for one in threading.enumerate() if one.name == f"logstore-{sending.config['client.id']}")
    sending.close()
    thread.join(60)
    assert threading.active_count() == before
    assert not thread.is_alive()
