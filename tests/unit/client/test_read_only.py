"""A store that is opened read_only, beside its writer: whole topics, and consumers that follow."""

from __future__ import annotations

from pathlib import Path
from threading import Timer

import pytest

import logstore
from logstore.client.store import Store
from logstore.coordinator.groups.offsets import OffsetAndMetadata
from logstore.errors import DataDirectoryError, InconsistentTopicIdError, UnknownTopicOrPartitionError, UsageError
from tests.support.stores import contents

TOPICS = {"t": 2}


def fill(store: Store) -> None:
    with store.producer(transactional_id="x") as producer:
        producer.init_transactions()
        with producer.transaction():
            producer.send("t", b"1", b"k", [("h", b"v")], partition=0)
            producer.send("t", b"2", partition=1)
        producer.begin_transaction()
        producer.send("t", b"aborted", partition=1)
        producer.flush()
        producer.abort_transaction()


def test_whole_topics_are_read(store: Store) -> None:
    fill(store)
    with logstore.open(store.path, read_only=True) as looked_at:
        assert [record.value for record in looked_at.read("t")] == [b"1", b"2", b"aborted"]
        committed = list(looked_at.read("t", isolation_level="read_committed", value_deserializer=bytes.decode))
        assert [(record.key, record.value, record.headers) for record in committed] == [
            (b"k", "1", [("h", b"v")]),
            (None, "2", []),
        ]
        with pytest.raises(UnknownTopicOrPartitionError):
            looked_at.read("nowhere")


def test_a_consumer_follows_the_writer(store: Store) -> None:
    fill(store)
    with logstore.open(store.path, read_only=True) as looked_at:
        consumer = looked_at.consumer("t", auto_offset_reset="earliest", isolation_level="read_committed")
        first = [record.value for records in consumer.poll(30_000).values() for record in records]
        assert sorted(first) == [b"1", b"2"]
        assert consumer.poll() == {}
        Timer(0.05, store.log("t", 1).append_records, [[b"later"]]).start()
        [[record]] = consumer.poll(30_000).values()
        assert (record.partition, record.value) == (1, b"later")
        assert consumer.lag(("t", 1)).offsets == 0
        consumer.close()


@pytest.mark.parametrize("place", [3, OffsetAndMetadata(3, "", 0)])
def test_a_consumer_seeks_to_what_was_written_since_it_looked(place: int | OffsetAndMetadata, store: Store) -> None:
    log = store.log("t", 0)
    log.append_records([b"0"])
    with logstore.open(store.path, read_only=True) as looked_at:
        consumer = looked_at.consumer("t", auto_offset_reset="none")
        consumer.seek_to_beginning()
        assert len(consumer.poll()) == 1
        log.append_records([b"%d" % number for number in range(1, 5)])
        consumer.seek(("t", 0), place)
        assert [record.value for record in consumer.poll()["t", 0]] == [b"3", b"4"]
        consumer.close()


def test_nothing_is_committed_or_joined(store: Store) -> None:
    with logstore.open(store.path, read_only=True) as looked_at:
        with pytest.raises(UsageError, match="leave group_id out"):
            looked_at.consumer("t", group_id="g")
        with pytest.raises(UsageError, match="Unknown consumer config name"):
            looked_at.consumer("t", no_such=1)


def test_reading_changes_no_file(store: Store) -> None:
    fill(store)
    before = contents(Path(store.path))
    with logstore.open(store.path, read_only=True) as looked_at:
        assert len(list(looked_at.read("t"))) == 3
        for topic in ("__consumer_offsets", "__transaction_state"):
            if topic in looked_at.topics:
                list(looked_at.read(topic))
    assert contents(Path(store.path)) == before


@pytest.mark.parametrize("is_deletion_seen", [False, True])
def test_a_topic_made_anew_is_read_from_its_beginning(store: Store, is_deletion_seen: bool) -> None:
    store.log("t", 0).append_records([b"old"] * 5)
    with logstore.open(store.path, read_only=True) as looked_at:
        consumer, log = looked_at.consumer(auto_offset_reset="earliest"), looked_at.log("t", 0)
        consumer.assign([("t", 0)])
        assert [len(records) for records in consumer.poll().values()] == [5]
        store.delete_topic("t")
        if is_deletion_seen:
            for error in (DataDirectoryError, UnknownTopicOrPartitionError):
                with pytest.raises(error):
                    consumer.poll()
        store.create_topic("t", 1)
        store.log("t", 0).append_records([b"new"] * 8)
        with pytest.raises(UnknownTopicOrPartitionError if is_deletion_seen else InconsistentTopicIdError):
            consumer.poll()
        [records] = consumer.poll(30_000).values()
        assert [record.value for record in records] == [b"new"] * 8
        with pytest.raises(InconsistentTopicIdError, match="topic id"):
            log.refresh()
        assert log.log_end_offset == 5
        looked_at.refresh()
        assert looked_at.log("t", 0).log_end_offset == 8
