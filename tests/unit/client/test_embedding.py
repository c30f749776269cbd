"""Clients and the store they are embedded in: what is closed with it, and that forgetting to close loses nothing."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

import logstore
from logstore.client.store import Store
from logstore.errors import IllegalStateError, WakeupError
from logstore.model import FetchIsolation
from tests.house.sources import ROOT
from tests.support.stores import FEW_PARTITIONS

TOPICS = {"t": 2}
FORGETFUL = """
import sys, logstore
store = logstore.open(sys.argv[1], config={"offsets.topic.num.partitions": 2})
store.create_topic("t", 1)
producer = store.producer(linger_ms=600_000)
producer.send("t", b"1")
consumer = store.consumer("t", group_id="g", auto_offset_reset="earliest")
producer.flush()
assert len(consumer.poll()) == 1
producer.send("t", b"2")
if sys.argv[2:]:
    raise SystemError("on purpose")
"""


def values(store: Store, topic: str = "t", isolation: FetchIsolation = FetchIsolation.READ_COMMITTED) -> list[object]:
    logs = [store.log(topic, number) for number in range(store.topics[topic].partition_count)]
    chunks = [chunk for log in logs for chunk in log.records(isolation=isolation).chunks()]
    return [record.value for chunk in chunks for record in chunk.to_records()]


@pytest.mark.parametrize("how", [[], ["fail"]])
def test_a_program_that_forgets_to_close_loses_nothing(tmp_path: Path, how: list[str]) -> None:
    directory = tmp_path / "data"
    ended = subprocess.run(
        [sys.executable, "-c", FORGETFUL, str(directory), *how], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == len(how)
    assert ("on purpose" in ended.stderr) is bool(how)
    assert (directory / ".kafka_cleanshutdown").exists()
    with logstore.open(directory) as store:
        assert values(store) == [b"1", b"2"]
        # the consumer was not closed: what it had polled may not be processed
        assert store.consumer(group_id="g").committed(("t", 0)) == {("t", 0): None}


def test_a_program_that_forgets_to_close_in_a_temporary_directory_ends_quietly(tmp_path: Path) -> None:
    code = FORGETFUL.replace("import sys,", "import shutil, sys,") + "shutil.rmtree(sys.argv[1])"
    command = [sys.executable, "-c", code, str(tmp_path / "data")]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert ended.stderr == ""
    assert not (tmp_path / "data").exists()


def test_a_store_closes_its_clients(tmp_path: Path) -> None:
    store = logstore.open(tmp_path / "data", config=FEW_PARTITIONS)
    store.create_topic("t", 1)
    plain, open_one = store.producer(linger_ms=600_000), store.producer(transactional_id="x")
    future = plain.send("t", b"1")
    open_one.init_transactions()
    open_one.begin_transaction()
    open_one.send("t", b"never")
    open_one.flush()
    consumer = store.consumer("t", group_id="g", auto_offset_reset="earliest")
    consumer.poll()
    store.close()
    store.close()
    assert future.succeeded()
    for call in (consumer.poll, open_one.begin_transaction, lambda: plain.send("t", b"2")):
        with pytest.raises(IllegalStateError):
            call()
    with logstore.open(tmp_path / "data", config=FEW_PARTITIONS) as again:
        assert values(again) == [b"1"]
        assert values(again, isolation=FetchIsolation.READ_UNCOMMITTED) == [b"never", b"1"]


def test_a_consumer_that_waits_is_told_that_the_store_closes(tmp_path: Path) -> None:
    store = logstore.open(tmp_path / "data", config=FEW_PARTITIONS)
    store.create_topic("t", 1)
    consumer = store.consumer("t")
    seen: list[BaseException] = []

    def wait() -> None:
        try:
            consumer.poll(600_000)
        except WakeupError as error:
            seen.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    while consumer._use.owner != thread.ident:  # a call of this thread might be in its way
        thread.join(0.001)
    store.close()
    thread.join()
    assert len(seen) == 1


def test_a_producer_that_nobody_has_any_more_writes_what_it_was_given(store: Store) -> None:
    store.producer(linger_ms=20).send("t", b"1", partition=0)
    gc.collect()
    with store.consumer("t", auto_offset_reset="earliest") as consumer:
        assert len(consumer.poll(60_000)) == 1


def test_clients_are_numbered(store: Store) -> None:
    assert [store.producer().config["client.id"] for _ in range(2)] == ["producer-1", "producer-2"]
    assert store.consumer(group_id="g").config["client.id"] == "consumer-g-3"
    assert store.producer(**{"linger.ms": 7}).config["linger.ms"] == 7


def test_producers_and_consumers_in_many_threads(store: Store) -> None:
    count, seen, lock = 300, Counter[object](), threading.Lock()
    plain = store.producer(batch_size=500, linger_ms=1)

    def produce(name: int) -> None:
        transactional = store.producer(transactional_id=f"p{name}", batch_size=500)
        transactional.init_transactions()
        for number in range(count):
            plain.send("t", b"plain %d %d" % (name, number))
            if number % 10 == 0:
                transactional.begin_transaction()
            transactional.send("t", b"transaction %d %d" % (name, number))
            if number % 10 == 9:
                transactional.commit_transaction()
        plain.flush()

    def consume() -> None:
        config = {"group_id": "g", "auto_offset_reset": "earliest", "isolation_level": "read_committed"}
        with store.consumer("t", enable_auto_commit=False, **config) as consumer:
            while sum(seen.values()) < 4 * count:
                records = consumer.poll(10)
                with lock:
                    seen.update(record.value for batch in records.values() for record in batch)

    threads = [threading.Thread(target=produce, args=(name,)) for name in range(2)]
    threads.append(threading.Thread(target=consume))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 4 * count
    assert set(seen.values()) == {1}


def test_what_is_open_is_neither_pickled_nor_copied(store: Store) -> None:
    log, producer = store.log("t", 0), store.producer()
    directory = logstore.open(store.path, read_only=True)
    future = producer.send("t", b"v", partition=0)
    producer.flush()
    clients = producer, store.consumer("t"), directory.consumer("t"), store.groups, store.transactions, future
    # a copy of mapped memory would read what is behind the end of the file, and end the process
    for opened in (store, directory, *clients, log, log.view(), log.records(), directory.log("t", 0)):
        for copied in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match=f"A {type(opened).__name__} is of one process"):
                copied(opened)
    with pytest.raises(TypeError, match="another process opens the directory by its path"):
        pickle.dumps(store.read)
    assert pickle.loads(pickle.dumps(future.get())) == future.get()
    (chunk,) = log.records().chunks()
    with pytest.raises(TypeError, match="give what `to_arrow` or `to_records` returns"):
        pickle.dumps(chunk)
    assert pickle.loads(pickle.dumps(chunk.to_records())) == chunk.to_records()


def test_waits_end_where_a_test_has_frozen_the_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    frozen = {time.time: 0.0, time.time_ns: 0, time.monotonic: 0.0, time.monotonic_ns: 0}
    for name in [name for name in sys.modules if name == "time" or name.startswith("logstore")]:
        for attribute, value in list(vars(sys.modules[name]).items()):  # as freezegun does
            if real := next((real for real in frozen if real is value), None):
                monkeypatch.setattr(sys.modules[name], attribute, lambda now=frozen[real]: now)
    store.producer(linger_ms=1).send("t", b"v")
    ended = threading.Event()

    def use() -> None:
        records = list(store.consumer("t", auto_offset_reset="earliest", consumer_timeout_ms=100))
        assert [(record.value, record.timestamp) for record in records] == [(b"v", 0)]
        store.producer().close(timeout=0.1)
        ended.set()

    threading.Thread(target=use, daemon=True).start()
    assert ended.wait(30)
