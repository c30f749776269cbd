"""A consumer by itself: where it begins, what it gets, how it goes on, what it says when it cannot."""

from __future__ import annotations

import sys
import threading
from functools import partial
from pathlib import Path
from threading import Event, Semaphore

import pytest

from logstore import topics
from logstore.client.consumer import Consumer
from logstore.client.consumer.fetcher import Fetcher
from logstore.client.store import Store
from logstore.coordinator.groups.offsets import OffsetAndMetadata
from logstore.errors import (
    CorruptRecordError,
    IllegalStateError,
    InvalidGroupIdError,
    InvalidTopicError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    SerializationError,
    UnknownTopicOrPartitionError,
    UsageError,
    WakeupError,
)
from logstore.model import TimestampType, TopicPartition

TOPICS = {"t": 2}

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def fill(store: Store, count: int, partition: int = 0, first: int = 0) -> None:
    numbers = range(first, first + count)
    store.log("t", partition).append_records([b"%d" % number for number in numbers], timestamps=list(numbers))


def values(consumer: Consumer, **how: int) -> list[bytes]:
    return [record.value for records in consumer.poll(**how).values() for record in records]


def earliest(store: Store, *partitions: TopicPartition, **config: object) -> Consumer:
    consumer = store.consumer(auto_offset_reset="earliest", **config)
    consumer.assign(partitions or [T0])
    return consumer


def test_records_come_as_they_were_written(store: Store) -> None:
    with store.producer() as producer:
        producer.send("t", b"value", b"key", [("h", b"1")], partition=1, timestamp_ms=5)
    [record] = earliest(store, T1).poll()[T1]
    assert record == ("t", 1, 0, 5, TimestampType.CREATE_TIME, b"key", b"value", [("h", b"1")], 0)


def test_a_poll_gives_so_many_and_the_next_goes_on(store: Store) -> None:
    fill(store, 10)
    fill(store, 10, partition=1, first=100)
    consumer = earliest(store, T0, T1, max_poll_records=6)
    assert values(consumer) == [b"%d" % number for number in range(6)]
    assert (consumer.position(T0), consumer.position(T1)) == (6, 0)
    assert values(consumer) == [b"6", b"7", b"8", b"9", b"100", b"101"]
    assert len(values(consumer, max_records=100)) == 8
    assert consumer.poll() == {}


def test_a_poll_that_waits_is_idle_until_something_is_appended(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """It looked up to a hundred times a second, and found a record up to 50 ms late."""
    consumer, looks, collect = earliest(store, T0, T1), Semaphore(0), Fetcher.collect

    def counted(fetcher: Fetcher, count_max: int) -> object:
        looks.release()
        return collect(fetcher, count_max)

    monkeypatch.setattr(Fetcher, "collect", counted)
    assert values(consumer, timeout_ms=700) == []
    look_count = sum(looks.acquire(blocking=False) for _ in range(100))
    assert look_count <= 3
    thread = threading.Timer(0.2, fill, args=(store, 1, 1, 7))
    thread.start()
    assert values(consumer, timeout_ms=60_000) == [b"7"]
    assert sum(looks.acquire(blocking=False) for _ in range(100)) <= 3
    thread.join()


def test_a_partition_does_not_keep_the_others_waiting(store: Store) -> None:
    for number in range(20):
        fill(store, 5, first=number * 5)
        fill(store, 5, partition=1, first=number * 5)
    consumer = earliest(store, T0, T1, max_partition_fetch_bytes=250, max_poll_records=11)
    polls = [{partition: len(records) for partition, records in consumer.poll().items()} for _ in range(3)]
    assert polls == [{T0: 10, T1: 1}, {T1: 9, T0: 2}, {T0: 8, T1: 3}]  # batches of 106 bytes, two by two
    assert len(consumer.poll(max_records=1000)[T0]) == 80
    assert len(earliest(store, fetch_max_bytes=1, max_partition_fetch_bytes=1).poll()[T0]) == 5  # a batch is whole


def test_isolation_decides_what_is_seen(store: Store) -> None:
    writing = store.producer(transactional_id="w")
    writing.init_transactions()
    for is_commit in (True, False):
        writing.begin_transaction()
        writing.send("t", b"%d" % is_commit, partition=0)
        writing.flush()
        if is_commit:
            writing.commit_transaction()
        else:
            writing.abort_transaction()
    writing.begin_transaction()
    writing.send("t", b"open", partition=0)
    writing.flush()
    fill(store, 1)
    committed, everything = earliest(store, isolation_level="read_committed"), earliest(store)
    assert values(committed) == [b"1"]
    assert values(everything) == [b"1", b"0", b"open", b"0"]
    assert committed.position(T0) == 4  # behind what is for nobody
    assert committed.end_offsets([T0]) == {T0: 4}
    assert everything.end_offsets([T0]) == {T0: 6}
    writing.abort_transaction()
    assert committed.lag(T0) == (3, 1)
    assert values(committed) == [b"0"]
    assert committed.lag(T0) == (0, 0)


def test_where_a_consumer_begins(store: Store) -> None:
    fill(store, 3)
    latest = store.consumer()
    latest.assign([T0])
    assert latest.position(T0) == 3
    nowhere = store.consumer(auto_offset_reset="none")
    nowhere.assign([T0, T1])
    text = r"Undefined offset with no reset policy for partitions: \[t-0"
    with pytest.raises(NoOffsetForPartitionError, match=text) as caught:
        nowhere.poll()
    assert caught.value.partitions == (T0, T1)
    nowhere.seek(T0, 99)
    nowhere.seek(T1, 0)
    with pytest.raises(OffsetOutOfRangeError, match="Fetch position 99 is out of range for partition t-0"):
        nowhere.poll()
    nowhere.seek(T0, OffsetAndMetadata(1))
    assert values(nowhere) == [b"1", b"2"]
    store.log("t", 0).increment_log_start_offset(2)
    consumer = earliest(store)
    consumer.seek(T0, 0)
    assert values(consumer) == [b"2"]
    assert consumer.beginning_offsets([T0, T1]) == {T0: 2, T1: 0}


def test_going_back_and_forth(store: Store) -> None:
    fill(store, 5)
    consumer = earliest(store, T0, T1)
    assert len(values(consumer, max_records=2)) == 2
    consumer.seek_to_end()
    assert values(consumer) == []
    consumer.seek_to_beginning(T0)
    assert values(consumer, max_records=1) == [b"0"]
    consumer.seek(T0, 4)
    assert values(consumer) == [b"4"]
    with pytest.raises(UsageError, match="seek offset must not be a negative number"):
        consumer.seek(T0, -1)
    with pytest.raises(IllegalStateError, match="No current assignment for partition t-7"):
        consumer.seek(("t", 7), 0)
    with pytest.raises(IllegalStateError, match="You can only check the position for partitions assigned to this"):
        consumer.position(("t", 7))


def test_paused_partitions_are_passed_over(store: Store) -> None:
    fill(store, 4)
    fill(store, 1, partition=1)
    consumer = earliest(store, T0, T1)
    assert len(values(consumer, max_records=1)) == 1
    consumer.pause(T0)
    assert consumer.paused() == {T0}
    assert list(consumer.poll()) == [T1]
    consumer.resume(T0)
    assert values(consumer) == [b"1", b"2", b"3"]
    with pytest.raises(IllegalStateError):
        consumer.pause(("t", 7))


def test_offsets_by_time(store: Store) -> None:
    fill(store, 10)
    consumer = store.consumer()
    assert consumer.offsets_for_times({T0: 7, T1: 7}) == {T0: (7, 7, 0), T1: None}
    assert consumer.offsets_for_times({T0: 10}) == {T0: None}
    with pytest.raises(UsageError, match="The target time for partition t-0 is -1"):
        consumer.offsets_for_times({T0: -1})
    with pytest.raises(UnknownTopicOrPartitionError):
        consumer.end_offsets([("nowhere", 0)])


def test_a_record_that_cannot_be_deserialized_waits_for_a_seek(store: Store) -> None:
    store.log("t", 0).append_records([b"1", b"2", b"x", None, b"5"], keys=[b"k"] * 5)
    consumer = earliest(store, key_deserializer=bytes.decode, value_deserializer=int)
    first = consumer.poll()[T0]
    assert [(record.key, record.value) for record in first] == [("k", 1), ("k", 2)]
    text = "Error deserializing VALUE for partition t-0 at offset 2. If needed, please seek past the record"
    for _ in range(2):
        with pytest.raises(SerializationError, match=text) as caught:
            consumer.poll()
    assert (caught.value.partitions, caught.value.offset) == ((T0,), 2)
    consumer.seek(T0, 3)
    assert [record.value for record in consumer.poll()[T0]] == [None, 5]


@pytest.mark.parametrize("way", ["poll", "to_arrow"])
def test_a_batch_that_cannot_be_read_is_left_by_seeks_past_the_offsets_told(store: Store, way: str) -> None:
    """Each error named the first record of the batch, and no partition: a program sought there for ever."""
    fill(store, 1)
    for first in (0, 3, 6):
        fill(store, 3, partition=1, first=first)
    path = next(Path(store.log("t", 1).state.directory.path).glob("*.log"))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    consumer, count, told = earliest(store, T1, T0), 0, list[int]()
    for _ in range(9):
        try:
            count += sum(map(len, consumer.poll().values())) if way == "poll" else consumer.to_arrow().num_rows
        except CorruptRecordError as error:
            [partition] = error.partitions
            consumer.seek(partition, error.offset + 1)
            told.append(error.offset)
    assert (count, told) == (1 + 3 + 3, [3, 4, 5])


@pytest.mark.parametrize("way", ["poll", "to_arrow"])
@pytest.mark.parametrize("partitions", [[T0, T1], [T1, T0]])
def test_a_partition_that_fails_keeps_no_other_waiting_and_is_told(
    store: Store, partitions: list[TopicPartition], way: str
) -> None:
    consumer = store.consumer(auto_offset_reset="none")
    consumer.assign(partitions)
    consumer.seek(T0, 99)
    consumer.seek(T1, 0)
    answers = []
    for number in range(4):  # the other partition is never at its end
        fill(store, 1, partition=1, first=number)
        try:
            answers.append(len(consumer.poll()[T1] if way == "poll" else consumer.to_arrow()))
        except OffsetOutOfRangeError as error:
            answers.append(-1 if error.partitions == (T0,) else -2)
    assert answers in ([-1, 2, -1, 2], [1, -1, 2, -1])


@pytest.mark.parametrize("way", ["poll", "iteration"])
def test_a_seek_in_a_deserializer_holds(store: Store, way: str) -> None:
    fill(store, 4)
    fill(store, 4, partition=1)
    jumps = [(T0, 3)]

    def decode(value: bytes) -> str:
        if value == b"1" and jumps:
            consumer.seek(*jumps.pop())
        return value.decode()

    consumer = earliest(store, T0, T1, value_deserializer=decode, consumer_timeout_ms=1)
    if way == "poll":
        assert [len(records) for records in consumer.poll().values()] == [4, 4]
    else:
        assert len([next(consumer) for _ in range(8)]) == 8
    assert not jumps
    assert (consumer.position(T0), consumer.position(T1)) == (3, 4)
    assert [record.offset for record in consumer.poll()[T0]] == [3]


def test_a_partition_that_a_deserializer_gives_up_stays_given_up(store: Store) -> None:
    fill(store, 2)
    fill(store, 2, partition=1)

    def decode(value: bytes) -> bytes:
        consumer.assign([T1])
        return value

    consumer = earliest(store, T0, T1, value_deserializer=decode, max_poll_records=2)
    assert len(values(consumer)) == 2
    assert consumer.assignment() == {T1}
    assert set(consumer.poll()) == {T1}


class Asked:
    """Which partitions' logs a store was asked for."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self._partitions: list[tuple[str, int]] = []
        directory, log = store.directory, store.directory.log
        monkeypatch.setattr(
            directory, "log", lambda *partition: (self._partitions.append(partition), log(*partition))[1]
        )

    def taken(self) -> list[int]:
        """Numbers of the partitions that were asked for since the last call."""
        taken, self._partitions = [number for _, number in self._partitions], []
        return taken


@pytest.fixture
def wide(store: Store) -> Consumer:
    """Reads 50 partitions with two records each."""
    store.create_topic("wide", 50)
    for number in range(50):
        store.log("wide", number).append_records([b"x"] * 2)
    return earliest(store, *(TopicPartition("wide", number) for number in range(50)))


def test_a_poll_looks_at_partitions_that_may_have_something(
    store: Store, wide: Consumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide.poll(max_records=1)
    asked = Asked(store, monkeypatch)
    [records] = (wide.poll(max_records=1), wide.poll(max_records=1))[1].values()
    assert (records[0].partition, records[0].offset) == (1, 0)
    assert len(asked.taken()) <= 2
    while wide.poll():
        pass
    asked.taken()
    assert wide.poll() == {}
    assert asked.taken() == []
    store.log("wide", 7).append_records([b"y"])
    asked.taken()
    assert list(wide.poll()) == [("wide", 7)]
    assert set(asked.taken()) == {7}


@pytest.mark.parametrize("how", ["append", "marker"])
def test_a_poll_is_woken_by_what_comes(store: Store, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("logstore.store.fetch.LOOK_AGAIN_S", "logstore.client.consumer.polling.LOOK_AGAIN_S"):
        monkeypatch.setattr(name, 3600.0)
    monkeypatch.setattr("logstore.client.consumer.polling._PAUSE_S", 3600.0)
    producer = store.producer(transactional_id="x")
    producer.init_transactions()
    consumer = earliest(store, isolation_level="read_committed" if how == "marker" else "read_uncommitted")
    producer.begin_transaction()
    if how == "marker":
        producer.send("t", b"0", partition=0)
        producer.flush()
    assert consumer.poll() == {}

    def write() -> None:
        producer.send("t", b"0", partition=0)
        producer.commit_transaction()

    later = threading.Timer(0.05, write)
    later.start()
    assert consumer.poll(30_000)[T0][0].value == b"0"
    later.join()


def test_records_that_were_not_handed_out_are_fetched_again(store: Store) -> None:
    fill(store, 3)
    consumer = earliest(store, consumer_timeout_ms=1)
    assert next(consumer).offset == 0  # the partition has nothing behind what is iterated over
    assert [record.offset for record in consumer.poll()[T0]] == [1, 2]
    assert consumer.poll() == {}
    consumer.seek(T0, 1)
    consumer.pause(T0)
    assert consumer.poll() == {}
    consumer.resume(T0)
    assert [record.offset for record in consumer.poll()[T0]] == [1, 2]
    consumer.seek_to_beginning()
    assert consumer.to_arrow().num_rows == 3
    assert consumer.to_arrow().num_rows == 0
    fill(store, 1)
    assert consumer.to_arrow().num_rows == 1
    fill(store, 1)
    assert [record.offset for record in consumer] == [4]


def test_iteration_ends_when_nothing_comes(store: Store) -> None:
    fill(store, 3)
    consumer = store.consumer("t", auto_offset_reset="earliest", consumer_timeout_ms=1)
    for record in consumer:
        if record.offset == 1:
            break
    assert consumer.position(T0) == 2
    assert [record.value for record in consumer] == [b"2"]


def test_a_loop_that_is_left_goes_on_behind_the_record_it_had(store: Store) -> None:
    fill(store, 5)
    fill(store, 5, partition=1)
    consumer = earliest(store, T0, T1, consumer_timeout_ms=1)
    seen = []
    for record in consumer:
        seen.append((record.partition, record.offset))
        if record.offset == 1:
            break
    assert (consumer.position(T0), consumer.position(T1)) == (2, 0)
    assert [*seen, *((record.partition, record.offset) for record in consumer)] == [
        (partition, offset) for partition in range(2) for offset in range(5)
    ]


def test_a_poll_that_waits_is_woken_up(store: Store) -> None:
    consumer = earliest(store)
    stopping = threading.Timer(0.05, consumer.wakeup)
    stopping.start()
    with pytest.raises(WakeupError):
        consumer.poll(60_000)
    stopping.join()
    assert consumer.poll() == {}


def test_a_poll_waits_for_enough(store: Store) -> None:
    fill(store, 1)
    patient = earliest(store, fetch_min_bytes=500, fetch_max_wait_ms=100_000)
    assert patient.poll(20) == {}
    fill(store, 200)
    assert len(values(patient, timeout_ms=60_000)) == 201
    fill(store, 1)
    hasty = earliest(store, fetch_min_bytes=100_000, fetch_max_wait_ms=20)
    assert hasty.poll() == {}
    assert len(values(hasty, timeout_ms=60_000)) == 202


def test_two_threads_may_not_share_a_consumer(store: Store) -> None:
    consumer, is_inside, may_go = earliest(store, value_deserializer=lambda value: work()), Event(), Event()

    def work() -> None:
        is_inside.set()
        may_go.wait(60)

    fill(store, 1)
    polling = threading.Thread(target=consumer.poll)
    polling.start()
    is_inside.wait(60)
    with pytest.raises(IllegalStateError, match="KafkaConsumer is not safe for multi-threaded access") as raised:
        consumer.poll()
    assert raised.value.java_class == "java.util.ConcurrentModificationException"
    may_go.set()
    polling.join()
    assert consumer.poll() == {}


def test_calls_of_a_consumer_in_the_wrong_state_are_refused(store: Store) -> None:
    consumer = store.consumer()
    with pytest.raises(IllegalStateError, match="Consumer is not subscribed to any topics or assigned any partitions"):
        consumer.poll()
    with pytest.raises(InvalidGroupIdError, match=r"you must provide a valid group\.id"):
        consumer.subscribe(["t"])
    for call in (consumer.commit, consumer.committed, consumer.group_metadata):
        with pytest.raises(InvalidGroupIdError):
            call()
    with pytest.raises(UnknownTopicOrPartitionError):
        consumer.assign([("nowhere", 0)])
    with pytest.raises(UnknownTopicOrPartitionError):
        store.consumer("nowhere")
    with pytest.raises(InvalidTopicError, match="Topic name is invalid: 'a b' contains"):
        store.consumer("a b", group_id="g")  # Kafka's raises it from `poll`
    member = store.consumer("t", group_id="g")
    with pytest.raises(
        IllegalStateError, match="Subscription to topics, partitions and pattern are mutually exclusive"
    ):
        member.assign([T0])
    with pytest.raises(IllegalStateError, match="mutually exclusive"):
        member.subscribe(pattern="t.*")
    with pytest.raises(UsageError, match="cannot contain null or empty topic"):
        member.subscribe([" "])
    member.unsubscribe()
    member.assign([T0])
    with pytest.raises(IllegalStateError, match="mutually exclusive"):
        member.subscribe(["t"])
    member.close()
    member.close()
    with pytest.raises(IllegalStateError, match=r"This consumer has already been closed\."):
        member.poll()


def test_a_topic_that_is_deleted_is_missed(store: Store) -> None:
    fill(store, 1)
    alone, shared = earliest(store), store.consumer("t", group_id="g")
    assert values(alone) == [b"0"]
    shared.poll()
    store.delete_topic("t")
    with pytest.raises(UnknownTopicOrPartitionError):
        alone.poll()
    assert shared.poll() == {}


def test_every_way_to_arrow_says_that_pyarrow_is_missing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(store, 3)
    consumer = earliest(store)
    [chunk] = store.log("t", 0).records().chunks()
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "logstore.rows.arrow", raising=False)  # which another test has imported
    for convert in (
        consumer.to_arrow,
        chunk.to_arrow,
        partial(chunk.to_arrow, is_view=True),
        topics(store.path).to_arrow,
    ):
        with pytest.raises(UsageError, match="Arrow needs pyarrow") as missing:
            convert()
        assert missing.value.advice == "pip install 'logstore-kafka[arrow]'"
    assert values(consumer) == [b"0", b"1", b"2"]


def test_everything_as_one_table(store: Store) -> None:
    pytest.importorskip("pyarrow")
    fill(store, 3)
    fill(store, 2, partition=1, first=10)
    consumer = earliest(store, T0, T1)
    assert values(consumer, max_records=1) == [b"0"]
    table = consumer.to_arrow()
    assert table.column("topic").to_pylist() == ["t"] * 4
    assert table.column("partition").to_pylist() == [1, 1, 0, 0]  # partitions take turns, as with `poll`
    assert table.column("offset").to_pylist() == [0, 1, 1, 2]
    assert table.column("value").to_pylist() == [b"10", b"11", b"1", b"2"]
    assert (consumer.position(T0), consumer.position(T1)) == (3, 2)
    empty = consumer.to_arrow()
    assert (empty.num_rows, empty.schema) == (0, table.schema)
    store.log("t", 0).increment_log_start_offset(2)
    consumer.seek(T0, 0)
    assert consumer.to_arrow().num_rows == 0  # out of range: it begins anew
    assert consumer.to_arrow().column("offset").to_pylist() == [2]
    small = earliest(store, T0, T1, fetch_max_bytes=1)
    assert [small.to_arrow().num_rows for _ in range(3)] == [1, 2, 0]


@pytest.mark.parametrize("way", ["poll", "iteration", "to_arrow"])
def test_a_deserializer_may_not_read_from_its_own_consumer(store: Store, way: str) -> None:
    inner: list[object] = []

    def deserializer(value: bytes) -> bytes:
        if value == b"4" and not inner:
            inner.append(None)
            {"poll": consumer.poll, "iteration": lambda: next(consumer), "to_arrow": consumer.to_arrow}[way]()
        return value

    consumer = earliest(store, value_deserializer=deserializer, max_poll_records=3)
    fill(store, 8)
    assert values(consumer) == [b"0", b"1", b"2"]
    assert [value for _ in range(4) for value in values(consumer)] == [b"%d" % number for number in range(3, 8)]
    assert inner == [None]  # it was refused, and the record was read again
