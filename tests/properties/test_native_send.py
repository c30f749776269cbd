"""`Producer.send` in machine code and in Python, side by side: the same records, futures and errors for any calls.

`LOGSTORE_SEND_CASES` (default 40) is the number of runs.
"""

from __future__ import annotations

import gc
import inspect
import itertools
import os
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import logstore
from logstore import clock
from logstore.client import native_send, producer_batch
from logstore.client.embedded_store import EmbeddedStore
from logstore.client.producer import Producer
from logstore.client.producer_config import parse_producer_config
from logstore.client.producer_states import ProducerState
from logstore.client.record_future import RecordFuture
from logstore.errors import LogstoreError
from tests.naive.dice import Dice
from tests.seeds import seed_of

CASE_COUNT = int(os.environ.get("LOGSTORE_SEND_CASES", "40"))
SEED = seed_of("SEND")
LONG_MS = 600_000
NAMES = ("topic", "value", "key", "headers", "partition", "timestamp_ms")
needs_native = pytest.mark.skipif(not native_send.is_usable(), reason="this Python has no `send` in machine code")


class Text(str):
    """No plain `str`."""


class Data(bytes):
    """No plain `bytes`."""


class Pair:
    """Two stores; what is done with a producer of the one is done with one of the other, which has only Python."""

    def __init__(self, directory: Path) -> None:
        self.stores = [logstore.open(directory / name) for name in ("native", "python")]
        for store in self.stores:
            store.create_topic("one", 1)
            store.create_topic("three", 3)

    def producers(self, **config: Any) -> list[Producer]:
        parsed = [parse_producer_config({"linger_ms": LONG_MS, "client_id": "c", **config}) for _ in self.stores]
        made = [Producer(self.stores[0], parsed[0])]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(native_send, "is_usable", lambda: False)
            made.append(Producer(self.stores[1], parsed[1]))
        assert ["send" in vars(producer) for producer in made] == [native_send.is_usable(), False]
        return made

    def records(self) -> list[list[Any]]:
        return [
            [
                (partition, record.offset, record.key, record.value, record.headers)
                for topic, count in (("one", 1), ("three", 3))
                for partition in range(count)
                for chunk in store.log(topic, partition).records().chunks()
                for record in chunk.to_records()
            ]
            for store in self.stores
        ]


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = Pair(tmp_path_factory.mktemp("stores"))
    yield made
    for store in made.stores:
        store.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EmbeddedStore]:
    with logstore.open(tmp_path / "data") as opened:
        opened.create_topic("t", 1)
        yield opened


def any_value(dice: Dice) -> Any:
    sizes = (0, 1, 79, 80, 179, 180, 218, 219, 255, 256, 257, 278, 279, 280, 400)
    if dice.chance(85):
        return bytes(dice.choose(sizes))
    odd: tuple[Any, ...] = (None, "text", 7, bytearray(b"array"), memoryview(b"view"), Data(b"data"))
    return dice.choose(odd)


def any_call(dice: Dice) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments of a `send`, the most plain ones, in their places or with their names."""
    unique_topic = "".join(("o", "ne"))
    topics: tuple[Any, ...] = ("one", "one", "one", unique_topic, Text("one"), "gone", b"one", ["one"], None)
    topic = dice.choose(topics) if dice.chance(30) else "one"
    times: tuple[Any, ...] = (0, 5, -1, True, 1 << 40, 1 << 63, 1.5, "now")
    choices = {
        "key": (None, None, b"", b"k", "k", Data(b"k")),
        "headers": (None, None, [], (), [("h", b"x")], [("h", None)], 5),
        "partition": (None, None, 0, 1, -1, True),
        "timestamp_ms": (None, *times) if dice.chance(20) else (None, 7, 1 << 40),
    }
    given = {"topic": topic, "value": any_value(dice)}
    if dice.chance(40):
        given |= {name: dice.choose(choices[name]) for name in choices if dice.chance(30)}
    if dice.chance(5):
        del given[dice.choose(list(given))]
    in_place = list(itertools.takewhile(given.__contains__, NAMES[: dice.below(len(NAMES) + 1)]))
    arguments = tuple(given.pop(name) for name in in_place)
    if dice.chance(3):
        given[dice.choose(("topic", "value", "valeu"))] = b"again"
    if dice.chance(2):
        arguments += (None,) * dice.below(7)
    return arguments, dict(sorted(given.items(), key=lambda _: dice.below(100)))


def step(dice: Dice, has_transactions: bool) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    """A method of the producer, and its arguments."""
    if dice.chance(90):
        return "send", *any_call(dice)
    if dice.chance(40):
        return "flush", (), {}
    if dice.chance(20):
        return "send_columns", ("one", [b"column"] * 3), {}
    if has_transactions:
        return (
            dice.choose(("begin_transaction", "begin_transaction", "commit_transaction", "abort_transaction")),
            (),
            {},
        )
    return "close" if dice.chance(20) else "flush", (), {}


def done(producer: Producer, name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
    try:
        return getattr(producer, name)(*arguments, **named)
    except Exception as error:
        return type(error), str(error)


def outcome(future: Any, begun_ms: int) -> Any:
    """What a future says, without the time where that is the one of the test."""
    if not isinstance(future, RecordFuture):
        return future
    if not future.is_done:
        return "open"
    try:
        found = future.get(0)
    except LogstoreError as error:
        return type(error), str(error)
    is_now = begun_ms <= found.timestamp <= clock.now_ms()
    return found._replace(timestamp=-2) if is_now else found


@pytest.mark.parametrize("case", range(CASE_COUNT))
def test_all_calls_come_to_the_same(pair: Pair, case: int) -> None:
    dice = Dice(f"{SEED}/{case}")
    has_transactions = dice.chance(40)
    config: dict[str, Any] = {"transactional_id": f"x{case}"} if has_transactions else {}
    producers = pair.producers(batch_size=dice.choose((1, 300, 300, 1000, 16384)), **config)
    begun_ms = clock.now_ms()
    answers: list[list[Any]] = [[], []]
    for method in ["init_transactions"] * has_transactions:
        answers = [[done(producer, method, (), {})] for producer in producers]
    for _ in range(dice.between(20, 120)):
        name, arguments, named = step(dice, has_transactions)
        for producer, found in zip(producers, answers, strict=True):
            found.append(done(producer, name, arguments, named))
        assert outcome(answers[0][-1], begun_ms) == outcome(answers[1][-1], begun_ms), (name, arguments, named)
    is_done = [[getattr(each, "is_done", None) for each in found] for found in answers]
    assert is_done[0] == is_done[1]
    for producer in producers:
        producer.close()
    assert [outcome(each, begun_ms) for each in answers[0]] == [outcome(each, begun_ms) for each in answers[1]]
    records = pair.records()
    assert records[0] == records[1]


@pytest.mark.parametrize("linger_ms", [0, 1, 5])
def test_threads_that_send_at_once_lose_nothing_and_keep_their_order(store: EmbeddedStore, linger_ms: int) -> None:
    producer = store.producer(linger_ms=linger_ms, batch_size=2000)
    per_thread = 3000
    futures: list[list[Any]] = [[] for _ in range(4)]

    def send_all(thread: int) -> None:
        for number in range(per_thread):
            key = b"k" if thread == 3 and number % 7 == 0 else None
            futures[thread].append(producer.send("t", b"%d-%d" % (thread, number), key))
            if thread == 2 and number % 500 == 0:
                producer.flush()

    before_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=send_all, args=(thread,)) for thread in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        sys.setswitchinterval(before_s)
    producer.flush()
    chunks = store.log("t", 0).records().chunks()
    found = {record.offset: record.value for chunk in chunks for record in chunk.to_records()}
    assert len(found) == 4 * per_thread
    for thread, sent in enumerate(futures):
        offsets = [future.get(0).offset for future in sent]
        assert offsets == sorted(offsets)
        assert [found[offset] for offset in offsets] == [b"%d-%d" % (thread, n) for n in range(per_thread)]
    producer.close()


def test_what_is_sent_while_a_future_is_made_has_a_place_of_its_own(store: EmbeddedStore) -> None:
    """A collection begins where memory is asked for, and calls what it likes."""
    producer = store.producer(linger_ms=LONG_MS, batch_size=5000)
    sent: list[tuple[bytes, Any]] = []
    is_within = False

    def send_too(phase: str, info: dict[str, int]) -> None:
        nonlocal is_within
        if not (is_within or producer._mutex.locked() or producer_batch._DONE_LOCK.locked()):
            is_within = True
            value = b"within %d" % len(sent)
            sent.append((value, producer.send("t", value)))
            if len(sent) % 5 == 0:
                producer.flush()
            is_within = False

    before = gc.get_threshold()
    gc.callbacks.append(send_too)
    gc.set_threshold(2)
    try:
        for number in range(1000):
            sent.append((b"%d" % number, producer.send("t", b"%d" % number)))
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(send_too)
    producer.flush()
    chunks = store.log("t", 0).records().chunks()
    found = {record.offset: record.value for chunk in chunks for record in chunk.to_records()}
    assert len(found) == len(sent) > 1100
    assert all(found[future.get(0).offset] == value for value, future in sent)


@needs_native
def test_nothing_is_kept_of_what_was_sent(store: EmbeddedStore) -> None:
    """References, as Python counts them, are as many as before."""
    producer = store.producer(linger_ms=LONG_MS, batch_size=1 << 20, transactional_id="x")
    producer.init_transactions()
    producer.begin_transaction()
    topic, value, time_ms = "".join(("", "t")), bytes(300), clock.now_ms()
    producer.send("t", None)
    batch = producer._accumulator.lanes_of("t").of_partition(0).open
    assert batch is not None
    shared = (RecordFuture, ProducerState.IN_TRANSACTION, -1, None, bytes, "value")
    gc.collect()  # garbage of other tests has some of them too, until it is collected
    shared_before = [sys.getrefcount(thing) for thing in shared]
    things: list[Any] = [topic, value, time_ms, batch]
    before = [sys.getrefcount(thing) for thing in things]
    futures = [producer.send(topic, value, timestamp_ms=time_ms) for _ in range(500)]
    futures += [producer.send(topic=topic, value=value) for _ in range(500)]
    assert [sys.getrefcount(thing) for thing in things] == [
        *(before[0], before[1] + 1000, before[2] + 500, before[3] + 1000),
    ]
    wrongs: tuple[dict[str, Any], ...] = ({"valeu": value}, {"value": 5}, {"value": value, "key": 5}, {})
    for wrong in wrongs * 50:
        if wrong:
            with pytest.raises((TypeError, LogstoreError)):
                producer.send(topic, **wrong)
        else:
            futures.append(producer.send(Text("t"), value))
    del futures, wrong, wrongs
    producer.flush()
    del things[3], before[3], batch
    gc.collect()
    assert [sys.getrefcount(thing) for thing in things] == before
    shared_now = [sys.getrefcount(thing) for thing in shared]
    assert all(
        abs(now - then) < 100 for now, then in zip(shared_now, shared_before, strict=True)
    )  # others have them too


@needs_native
def test_a_producer_that_nobody_has_is_let_go(store: EmbeddedStore) -> None:
    """Its function has it, and it has its function: that is found when garbage is collected."""
    producer = store.producer(linger_ms=LONG_MS)
    send = producer.send
    seen = weakref.ref(producer)
    del producer
    gc.collect()
    assert seen() is not None
    del send
    gc.collect()
    assert seen() is None


@needs_native
def test_the_function_says_what_it_is(store: EmbeddedStore) -> None:
    producer = store.producer()
    assert list(inspect.signature(producer.send).parameters) == list(NAMES)
    assert inspect.signature(producer.send).parameters["value"].default is None
    assert inspect.getdoc(producer.send) == inspect.getdoc(Producer.send)


def test_a_subclass_has_its_own(store: EmbeddedStore) -> None:
    class Counting(Producer):
        count = 0

        def send(self, *arguments: Any, **named: Any) -> Any:
            self.count += 1
            return super().send(*arguments, **named)

    producer = Counting(store, parse_producer_config({"linger_ms": LONG_MS}))
    futures = [producer.send("t", b"v") for _ in range(5)]
    producer.flush()
    assert producer.count == 5
    assert [future.get(0).offset for future in futures] == list(range(5))
