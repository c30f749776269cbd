"""The fast path of `send`: taken for plain records, left where anything is to be seen to, and the thread beside it."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

import logstore
from logstore import clock
from logstore.client.producer import Producer, background
from logstore.client.producer.queues import partition_for_key
from logstore.client.store import Store
from logstore.errors import IllegalStateError, UsageError
from tests.support.stores import LONG_MS, begun

TOPICS = {"t": 3, "one": 1}


def read(store: Store, topic: str = "one", partition: int = 0) -> list[tuple[Any, ...]]:
    log = store.log(topic, partition)
    records = [record for chunk in log.records().chunks() for record in chunk.to_records()]
    return [(record.key, record.value, record.headers) for record in records]


def slow_calls(producer: Producer) -> list[Any]:
    """The calls of the slow path from now on; no public call tells the two paths apart."""
    calls: list[Any] = []
    append = producer._buffer.append

    def counted(*arguments: Any) -> Any:
        calls.append(arguments)
        return append(*arguments)

    producer._buffer.append = counted  # type: ignore[method-assign]
    return calls


def test_plain_records_take_the_fast_path_from_the_second_of_a_batch_on(store: Store) -> None:
    producer = store.producer(linger_ms=LONG_MS, batch_size=1000)
    calls = slow_calls(producer)
    futures = [producer.send("one", b"v" * 79, timestamp_ms=number) for number in range(18)]
    assert len(calls) == 2  # a batch has room for 9 of 100 bytes
    assert [future.is_done for future in futures] == [True] * 9 + [False] * 9
    producer.flush()
    assert [future.get() for future in futures] == [("one", 0, number, number, -1, 79) for number in range(18)]
    before = clock.now_ms()
    producer.send("one", b"1")
    assert before <= producer.send("one", b"2").get(0 if producer.flush() else None).timestamp <= clock.now_ms()


def test_records_of_all_kinds_keep_their_order_and_what_they_have(store: Store) -> None:
    producer = store.producer(linger_ms=LONG_MS)
    producer.send("one", b"0")
    producer.send("one", b"1")
    producer.send("one", b"2", b"k")
    producer.send("one", b"3")
    producer.send("one", None)
    producer.send("one", b"5", headers=[("h", b"x")])
    producer.send("one", b"6")
    producer.send("one", b"7", partition=0)
    producer.flush()
    producer.send("one", b"8")
    producer.send("one", b"9", headers=[("h", b"y")])
    producer.send("one", b"10")
    producer.flush()
    values = [b"0", b"1", b"2", b"3", None, b"5", b"6", b"7", b"8", b"9", b"10"]
    keys, headers = {2: b"k"}, {5: [("h", b"x")], 9: [("h", b"y")]}
    assert read(store) == [(keys.get(row), value, headers.get(row, [])) for row, value in enumerate(values)]


def test_a_record_for_another_partition_does_not_change_where_plain_ones_go(store: Store) -> None:
    producer = store.producer(linger_ms=LONG_MS)
    first = producer.send("t", b"0")
    others = [producer.send("t", b"x", partition=partition) for partition in range(3)]
    second = producer.send("t", b"1")
    producer.flush()
    assert [other.get().partition for other in others] == [0, 1, 2]
    assert first.get().partition == second.get().partition


def test_serializers_see_every_record(store: Store) -> None:
    seen: list[Any] = []

    def serialize(value: Any) -> bytes:
        seen.append(value)
        return bytes(value)

    for option in ("value_serializer", "key_serializer"):
        producer = store.producer(linger_ms=LONG_MS, **{option: serialize})  # type: ignore[arg-type]
        for _ in range(3):
            producer.send("one", b"v")
        producer.flush()
        producer.send("one", b"v", b"k")
        producer.flush()
    assert seen == [b"v"] * 4 + [b"k"]  # null stays null and is not shown to them


def test_a_batch_larger_than_a_request_may_be_is_not_filled_unseen(store: Store) -> None:
    producer = store.producer(linger_ms=LONG_MS, max_request_size=200, batch_size=1000)
    calls = slow_calls(producer)
    for _ in range(3):
        producer.send("one", b"v")
    assert len(calls) == 3


def test_a_store_with_a_clock_of_its_own_says_the_time(tmp_path: Path) -> None:
    from logstore.client.producer.config import parse_producer_config

    with logstore.open(tmp_path / "data") as store:
        store.create_topic("one", 1)
        times = iter(range(5000, 6000))
        store.directory.now_ms = lambda: next(times)
        producer = Producer(store.directory, parse_producer_config({"linger_ms": LONG_MS}))
        futures = [producer.send("one", b"v") for _ in range(3)]
        producer.flush()
        timestamps = [future.get().timestamp for future in futures]
        assert timestamps == sorted(set(timestamps))
        assert max(timestamps) < 6000
        store.directory.now_ms = clock.now_ms


def test_records_with_keys_and_headers_take_the_fast_path_once_their_queue_is_known(store: Store) -> None:
    producer = store.producer(linger_ms=LONG_MS)
    calls = slow_calls(producer)
    keys = [b"a", b"b", b"c", b"d"]
    futures = [
        producer.send("t", b"%d" % number, keys[number % 4], [("h", b"%d" % number), ("n", None)])
        for number in range(40)
    ]
    assert len(calls) == 4
    producer.flush()
    for number, future in enumerate(futures):
        metadata = future.get()
        assert metadata.partition == partition_for_key(keys[number % 4], 3)
        assert metadata[4:] == (1, len(b"%d" % number))
    found = [record for partition in range(3) for record in read(store, "t", partition)]
    assert sorted(found) == sorted(
        (keys[number % 4], b"%d" % number, [("h", b"%d" % number), ("n", None)]) for number in range(40)
    )


def test_headers_are_taken_when_they_are_given(store: Store) -> None:
    producer = store.producer(linger_ms=LONG_MS)
    headers: list[tuple[str, bytes | None]] = [("h", b"1")]
    for _ in range(2):
        producer.send("one", b"v", headers=headers)
        headers.append(("late", b"2"))
    with pytest.raises(UsageError, match="Headers are pairs"):
        producer.send("one", b"v", headers=b"\x02")  # type: ignore[arg-type]
    producer.flush()
    assert [found for _, _, found in read(store)] == [[("h", b"1")], [("h", b"1"), ("late", b"2")]]


def test_outside_of_a_transaction_nothing_is_taken(store: Store) -> None:
    producer = begun(store, linger_ms=LONG_MS)
    calls = slow_calls(producer)
    for number in range(3):
        producer.send("one", b"%d" % number)
    assert len(calls) == 1
    producer.commit_transaction()
    with pytest.raises(IllegalStateError, match="while in state"):
        producer.send("one", b"after")
    assert [value for _, value, _ in read(store)][:3] == [b"0", b"1", b"2"]


def test_a_batch_that_is_written_takes_no_more_records(store: Store) -> None:
    producer = store.producer(linger_ms=LONG_MS)
    producer.send("one", b"0")
    producer.send_columns("one", [b"1", b"2"])
    calls = slow_calls(producer)
    producer.send("one", b"3")
    assert len(calls) == 1
    producer.flush()
    assert [value for _, value, _ in read(store)] == [b"0", b"1", b"2", b"3"]


def test_the_thread_naps_between_batches_and_is_not_woken(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "NAP_COUNT", 1 << 30)
    producer = store.producer(linger_ms=1)
    thread = producer._buffer.background  # no public call tells whether it is idle
    for number in range(20):
        assert producer.send("one", b"%d" % number).get(60).offset == number
        assert not thread.is_idle
        assert thread.is_running
    producer.close()


def test_after_naps_the_thread_is_idle_until_it_is_woken(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "NAP_COUNT", 1)
    monkeypatch.setattr(background, "IDLE_S_MAX", 60)
    producer = store.producer(linger_ms=1)
    assert producer.send("one", b"0").get(60).offset == 0
    waiting = threading.Event()
    while not producer._buffer.background.is_idle:
        waiting.wait(0.001)
    assert producer.send("one", b"1").get(60).offset == 1
    producer.close()


def test_a_thread_that_nobody_wakes_ends_and_another_one_follows(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "NAP_COUNT", 1)
    monkeypatch.setattr(background, "IDLE_S_MAX", 0.01)
    producer = store.producer(linger_ms=1)
    for number in range(2):
        assert producer.send("one", b"%d" % number).get(60).offset == number
        end_s = time.monotonic() + 60
        while producer._buffer.background.is_running:
            assert time.monotonic() < end_s, "the thread does not end"
            time.sleep(0.001)
    producer.close()


def test_a_thread_that_could_not_start_is_started_by_the_next_record(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = store.producer(linger_ms=1)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="can't start"):
            producer.send("one", b"refused")
    producer.send("t", b"first", partition=0)
    assert producer.send("one", b"kept").get(60).offset == 0
    producer.close()


def test_a_closed_store_makes_no_clients(tmp_path: Path) -> None:
    store = logstore.open(tmp_path / "data")
    store.create_topic("t")
    store.close()
    with pytest.raises(UsageError, match="closed"):
        store.producer()
    with pytest.raises(UsageError, match="closed"):
        store.consumer("t")


def test_an_error_in_a_consumers_with_block_is_not_hidden_by_one_of_closing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    consumer = store.consumer("one")

    def fail(*, autocommit: bool) -> None:
        raise IllegalStateError(f"closing failed, autocommit={autocommit}")

    monkeypatch.setattr(consumer, "close", fail)
    with pytest.raises(ValueError, match="of the body") as raised, consumer:
        raise ValueError("of the body")
    assert raised.value.__notes__ == ["Then closing failed: IllegalStateError('closing failed, autocommit=False')"]
