"""Calls of a consumer as the Java client has them: who is woken up, what ends a subscription, what is no argument."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from logstore import clock
from logstore.client.arguments import OffsetAndTimestamp
from logstore.client.consumer import Consumer
from logstore.client.store import Store
from logstore.coordinator.groups.offsets import OffsetAndMetadata
from logstore.errors import CorruptRecordError, IllegalStateError, InvalidGroupIdError, UsageError, WakeupError
from logstore.model import TopicPartition
from tests.support.stores import begun

TOPICS = {"t": 2}

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def assigned(store: Store, **config: object) -> Consumer:
    consumer = store.consumer(**{"group_id": "g", "auto_offset_reset": "earliest", **config})
    consumer.assign([T0])
    return consumer


@pytest.mark.parametrize(
    "call",
    [
        lambda consumer: consumer.position(T0),
        lambda consumer: consumer.committed(T0),
        lambda consumer: consumer.commit({T0: 1}),
    ],
)
def test_a_call_that_asks_the_group_is_woken_up_once(store: Store, call: Callable[[Consumer], object]) -> None:
    consumer = assigned(store)
    consumer.wakeup()
    with pytest.raises(WakeupError):
        call(consumer)
    assert consumer.committed(T0) == {T0: None}
    call(consumer)


def test_calls_that_ask_nobody_leave_the_wakeup_to_the_next_poll(store: Store) -> None:
    consumer = assigned(store)
    consumer.seek(T0, 0)
    consumer.wakeup()
    assert consumer.position(T0) == 0
    assert consumer.end_offsets([T0]) == {T0: 0}
    with pytest.raises(WakeupError):
        consumer.poll()


def test_closing_commits_whatever_woke_the_consumer(store: Store) -> None:
    store.log("t", 0).append_records([b"x"])
    consumer = assigned(store)
    consumer.poll()
    consumer.wakeup()
    consumer.close()
    assert store.consumer(group_id="g").committed(T0) == {T0: OffsetAndMetadata(1, leader_epoch=0)}


def test_nothing_to_read_is_as_unsubscribe(store: Store) -> None:
    consumer = store.consumer("t", group_id="g")
    consumer.poll()
    consumer.assign([])
    assert (consumer.subscription(), consumer.assignment()) == (set(), set())
    assert not store.groups.describe("g").members
    consumer.assign([T0])
    consumer.subscribe([])
    assert consumer.assignment() == set()
    consumer.subscribe(pattern="t")
    consumer.subscribe([])
    consumer.assign([T0])
    assert consumer.assignment() == {T0}


@pytest.mark.parametrize("group_id", ["", " "])
def test_an_empty_group_id_is_none(store: Store, group_id: str) -> None:
    with pytest.raises(InvalidGroupIdError, match=re.escape("The configured group.id should not be an empty string")):
        store.consumer(group_id=group_id)


@pytest.mark.parametrize(
    "call",
    [
        lambda consumer: consumer.assign(["t-0"]),
        lambda consumer: consumer.assign("t"),
        lambda consumer: consumer.assign(None),
        lambda consumer: consumer.assign([("t", "0")]),
        lambda consumer: consumer.seek("t-0", 1),
        lambda consumer: consumer.seek(T0, None),
        lambda consumer: consumer.seek(T0, "1"),
        lambda consumer: consumer.seek(T0, -1),
        lambda consumer: consumer.pause("t"),
        lambda consumer: consumer.position("t"),
        lambda consumer: consumer.position(None),
        lambda consumer: consumer.committed("t"),
        lambda consumer: consumer.commit({T0: None}),
        lambda consumer: consumer.commit({T0: "1"}),
        lambda consumer: consumer.commit({T0: -1}),
        lambda consumer: consumer.commit({"t": 1}),
        lambda consumer: consumer.commit([(T0, 1)]),
        lambda consumer: consumer.commit({T0: OffsetAndMetadata(1, 5)}),
        lambda consumer: consumer.end_offsets(["t"]),
        lambda consumer: consumer.beginning_offsets(5),
        lambda consumer: consumer.offsets_for_times({T0: None}),
        lambda consumer: consumer.commit({T0: 1 << 63}),
        lambda consumer: consumer.commit({T0: OffsetAndMetadata(1, "\ud800")}),
        lambda consumer: consumer.commit({T0: OffsetAndMetadata(1, "", 1 << 31)}),
        lambda consumer: consumer.commit_async({T0: 1}, 5),
        lambda consumer: consumer.offsets_for_times({T0: -1}),
        lambda consumer: consumer.offsets_for_times([T0]),
        lambda consumer: consumer.poll(None),
        lambda consumer: consumer.poll("5"),
        lambda consumer: consumer.poll(-1),
        lambda consumer: consumer.poll(float("nan")),
        lambda consumer: consumer.poll(0, 0),
        lambda consumer: consumer.poll(0, 1.5),
        lambda consumer: consumer.to_arrow("5"),
        lambda consumer: (consumer.unsubscribe(), consumer.subscribe(5)),
        lambda consumer: (consumer.unsubscribe(), consumer.subscribe([5])),
        lambda consumer: (consumer.unsubscribe(), consumer.subscribe(pattern="(")),
        lambda consumer: (consumer.unsubscribe(), consumer.subscribe([["t"]])),
        lambda consumer: (consumer.unsubscribe(), consumer.subscribe(pattern=5)),
        lambda consumer: (consumer.unsubscribe(), consumer.subscribe(pattern=re.compile(b"t"))),
        lambda consumer: (consumer.unsubscribe(), consumer.subscribe(["t"], listener=5)),
    ],
)
def test_consumer_calls_refuse_arguments_of_wrong_kinds(store: Store, call: Callable[[Any], object]) -> None:
    with pytest.raises(UsageError):
        call(assigned(store))


def test_topics_and_a_pattern_are_not_subscribed_to_together(store: Store) -> None:
    consumer = store.consumer(group_id="g")
    with pytest.raises(IllegalStateError, match="mutually exclusive"):
        consumer.subscribe(["t"], pattern="t.*")
    assert consumer.subscription() == set()


def test_lag_is_none_behind_the_last_stable_offset(store: Store) -> None:
    producer = begun(store)
    producer.send("t", b"open", partition=0).get()
    consumer = assigned(store, isolation_level="read_committed")
    consumer.seek(T0, 1)
    assert consumer.lag(T0) == (0, 0)
    producer.commit_transaction()
    assert consumer.lag(T0) == (1, 0)


def test_a_consumer_behind_the_last_stable_offset_is_woken_by_the_marker(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("client.consumer.polling", "client.consumer.fetcher", "store.fetch"):
        monkeypatch.setattr(f"logstore.{module}.LOOK_AGAIN_S", 1000.0)
    producer = begun(store)
    producer.send("t", b"open", partition=0).get()
    store.log("t", 0).append_records([b"behind"])
    consumer = assigned(store, isolation_level="read_committed", group_id=None)
    consumer.seek(T0, 1)
    assert consumer.poll() == {}
    later = Timer(0.1, producer.commit_transaction)
    later.start()
    end_s = clock.monotonic_s() + 30
    assert [record.value for record in consumer.poll(timeout_ms=60_000)[T0]] == [b"behind"]
    assert clock.monotonic_s() < end_s  # not found by the last look, at the timeout
    later.join()


def test_a_table_waits_for_records_that_count(store: Store) -> None:
    pytest.importorskip("pyarrow")
    producer = begun(store)
    producer.send("t", b"aborted", partition=0).get()
    producer.abort_transaction()
    consumer = assigned(store, isolation_level="read_committed")
    later = Timer(0.05, lambda: store.log("t", 0).append_records([b"x"]))
    later.start()
    assert consumer.to_arrow(timeout_ms=60_000).column("value").to_pylist() == [b"x"]
    later.join()
    patient = assigned(store, fetch_min_bytes=10_000, fetch_max_wait_ms=100_000)
    assert patient.to_arrow(timeout_ms=10).num_rows == 0


@pytest.mark.parametrize("given", [OffsetAndMetadata(2, "m", -1), (2, "m", -1), (2, "m")])
def test_offsets_of_other_clients_of_python_are_taken(store: Store, given: Any) -> None:
    """With their -1 for no leader epoch, with which a seek began at 0, as if a crash had cut the log."""
    store.log("t", 0).append_records([b"0", b"1", b"2"])
    consumer = assigned(store, group_id="g", enable_auto_commit=False)
    consumer.seek(T0, given)
    assert consumer.position(T0) == 2
    consumer.commit({T0: given})
    assert consumer.committed(T0) == {T0: OffsetAndMetadata(2, "m")}


def test_offsets_by_time_are_those_of_committed_records(store: Store) -> None:
    producer = begun(store)
    producer.send("t", b"open", partition=0, timestamp_ms=5).get()
    committed, all_of_it = assigned(store, isolation_level="read_committed"), assigned(store)
    assert committed.offsets_for_times({T0: 1}) == {T0: None}
    assert all_of_it.offsets_for_times({T0: 1}) == {T0: OffsetAndTimestamp(0, 5, 0)}
    producer.commit_transaction()
    assert committed.offsets_for_times({T0: 1}) == {T0: OffsetAndTimestamp(0, 5, 0)}


def test_checksums_are_compared_unless_that_is_off(store: Store) -> None:
    log = store.log("t", 0)
    log.append_records([b"value"])
    path = next(Path(log.state.directory.path).glob("*.log"))
    data = bytearray(path.read_bytes())
    data[data.index(b"value")] ^= 1
    path.write_bytes(data)
    with pytest.raises(CorruptRecordError):
        assigned(store).poll()
    with pytest.raises(CorruptRecordError):
        assigned(store).to_arrow()
    with pytest.raises(CorruptRecordError):
        list(store.read("t"))
    [record] = assigned(store, check_crcs=False).poll()[T0]
    assert record.value == b"walue"


def test_enough_is_waited_for_no_longer_than_said(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [0.0]
    monkeypatch.setattr("logstore.clock.monotonic_s", lambda: now_s[0])
    store.log("t", 0).append_records([b"x"])
    consumer = assigned(store, fetch_min_bytes=10_000, fetch_max_wait_ms=200)
    assert consumer.poll() == {}
    now_s[0] = 0.19
    assert consumer.poll() == {}
    now_s[0] = 0.2
    assert len(consumer.poll()[T0]) == 1


def test_bytes_of_paused_partitions_do_not_fill_a_fetch(store: Store) -> None:
    for partition, count in ((0, 200), (1, 1)):
        store.log("t", partition).append_records([b"x"] * count)
    consumer = store.consumer(auto_offset_reset="earliest", fetch_min_bytes=500, fetch_max_wait_ms=100_000)
    consumer.assign([T0, T1])
    consumer.pause(T0)
    assert consumer.poll() == {}
    consumer.resume(T0)
    assert len(consumer.poll()[T0]) == 200
