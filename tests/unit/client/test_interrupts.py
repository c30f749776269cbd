"""Interrupts, callbacks and calls from inside: an answer may be lost, never a record, and no later call hangs."""

from __future__ import annotations

import logging
import sys
import threading
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from logstore.client.producer import Producer
from logstore.client.store import Store
from logstore.errors import (
    ConcurrentTransactionsError,
    IllegalStateError,
    InvalidRecordError,
    LogstoreError,
    ReentrantCallError,
    RequestTimedOutError,
)
from tests.support.interrupts import is_left_out
from tests.support.stores import LONG_MS, begun, values_of

TOPICS = {"t": 1}


def within(call: Callable[[], object], seconds: float = 20) -> None:
    """Call it; fail if that takes longer."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive()


class Interrupter:
    """Raises KeyboardInterrupt before the k-th line that a call runs in the client."""

    def __init__(self, line_number: int) -> None:
        self.has_raised = False
        self._left_count = line_number

    def run(self, call: Callable[[], object]) -> None:
        """Run the call up to that line."""
        before = sys.gettrace()
        sys.settrace(self._called)
        try:
            call()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)

    def _called(self, frame: FrameType, _: str, __: Any) -> Any:
        name = frame.f_code.co_filename
        return self._ran if "/logstore/client/" in name and not frame.f_code.co_flags & 0x20 else None

    def _ran(self, frame: FrameType, event: str, _: Any) -> Any:
        if event != "line" or self.has_raised:
            return self._ran
        if not is_left_out(frame):
            self._left_count -= 1
            if not self._left_count:
                self.has_raised = True
                raise KeyboardInterrupt
        return self._ran


def test_records_are_appended_whole_or_not_wherever_send_is_interrupted(store: Store) -> None:
    producer = store.producer(linger_ms=LONG_MS)
    sent = 0
    for arguments in ((b"v",), (b"v", b"k"), (b"v", b"k", [("h", b"1")])):
        for line_number in range(1, 500):
            interrupter = Interrupter(line_number)
            interrupter.run(lambda arguments=arguments: producer.send("t", *arguments))  # type: ignore[misc]
            sent += 1
            if not interrupter.has_raised:
                break
        assert not interrupter.has_raised
    last = producer.send("t", b"last")
    assert producer.flush()
    assert last.succeeded()
    found = values_of(store, "t")
    assert found[-1] == b"last"
    assert set(found[:-1]) == {b"v"}
    assert 3 <= len(found) - 1 <= sent


def test_an_interrupted_write_is_finished_once_at_the_offsets_that_are_told(store: Store) -> None:
    producer = store.producer(linger_ms=LONG_MS)
    futures = []
    line_number = 0
    while True:
        line_number += 1
        futures += [producer.send("t", b"%d %d" % (line_number, number)) for number in range(3)]
        interrupter = Interrupter(line_number)
        interrupter.run(producer.flush)
        within(producer.flush)
        if not interrupter.has_raised:
            break
    assert [future.get(0).offset for future in futures] == list(range(len(futures)))
    expected = [b"%d %d" % (line, number) for line in range(1, line_number + 1) for number in range(3)]
    assert values_of(store, "t") == expected


@pytest.mark.parametrize("method", ["commit_transaction", "abort_transaction", "close"])
def test_a_transaction_can_be_ended_wherever_that_is_interrupted(store: Store, method: str) -> None:
    line_number = 0
    while True:
        line_number += 1
        producer = begun(store, linger_ms=LONG_MS)
        producer.send("t", b"v")
        interrupter = Interrupter(line_number)
        interrupter.run(getattr(producer, method))
        within(producer.close)
        log = store.log("t", 0)
        assert log.last_stable_offset == log.log_end_offset, line_number
        if not interrupter.has_raised:
            break
    assert line_number > 20


def test_callbacks_run_in_another_thread_and_before_flush_returns(store: Store) -> None:
    threads: list[threading.Thread] = []
    lock = threading.Lock()

    def callback(_: object) -> None:
        with lock:
            threads.append(threading.current_thread())

    def send_all(producer: Producer) -> None:
        for number in range(20):
            with lock:  # which is no deadlock, also where this thread writes the batch
                producer.send("t", b"%d" % number).add_callback(callback)

    for linger_ms in (0, LONG_MS):
        producer = store.producer(linger_ms=linger_ms, batch_size=200)
        within(lambda producer=producer: send_all(producer))  # type: ignore[misc]
        within(producer.flush)
        assert len(threads) == 20
        assert {thread.name for thread in threads} == {f"logstore-{producer.config['client.id']}"}
        threads.clear()


def test_a_callback_does_not_wait_for_a_record_of_its_own_producer(store: Store) -> None:
    producer = store.producer(linger_ms=LONG_MS)
    raised: list[Exception] = []

    def callback(_: object) -> None:
        try:
            producer.send("t", b"of a callback").get(30)
        except Exception as error:
            raised.append(error)

    producer.send("t", b"1").add_callback(callback)
    producer.flush()
    assert [type(error) for error in raised] == [ReentrantCallError]
    producer.flush()
    assert values_of(store, "t") == [b"1", b"of a callback"]


def test_a_callback_may_flush_and_send(store: Store) -> None:
    producer = store.producer(linger_ms=LONG_MS)
    flushed: list[bool] = []

    def callback(_: object) -> None:
        producer.send("t", b"of a callback")
        flushed.append(producer.flush())

    producer.send("t", b"1").add_callback(callback)
    within(producer.flush)
    assert flushed == [True]
    assert values_of(store, "t") == [b"1", b"of a callback"]


def test_columns_that_are_tried_again_let_others_write(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.create_topic("other", 1)
    producer = store.producer(linger_ms=LONG_MS, max_block_ms=3000, retry_backoff_ms=2000, retry_backoff_max_ms=2000)
    refused = threading.Event()

    def refuse(*_: Any, **__: Any) -> None:
        refused.set()
        raise ConcurrentTransactionsError

    monkeypatch.setattr(store.log("t", 0), "append_columns", refuse)
    raised: list[LogstoreError] = []

    def send() -> None:
        try:
            producer.send_columns("t", [b"1"])
        except LogstoreError as error:
            raised.append(error)

    thread = threading.Thread(target=send)
    thread.start()
    assert refused.wait(60)
    future = producer.send("other", b"meanwhile")
    assert producer.flush(1)
    assert future.succeeded()
    assert not raised
    thread.join()
    assert isinstance(raised[0], ConcurrentTransactionsError | RequestTimedOutError)


def test_a_refusal_that_nobody_asks_for_is_logged(
    store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    producer = store.producer(linger_ms=LONG_MS)

    def refuse(*_: Any, **__: Any) -> None:
        raise InvalidRecordError("no good")

    monkeypatch.setattr(store.log("t", 0), "append_records", refuse)
    producer.send("t", b"1")
    with caplog.at_level(logging.WARNING, "logstore"), pytest.raises(InvalidRecordError, match="no good"):
        producer.flush()
    assert "1 record(s) for t-0 were not written: no good" in caplog.text


@pytest.mark.parametrize("call", ["send", "flush", "close", "send_columns"])
def test_a_clock_that_calls_the_producer_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    producer = store.producer(linger_ms=LONG_MS)
    append = store.log("t", 0).append_records
    calls = {
        "send": lambda: producer.send("t", b"inner"),
        "flush": producer.flush,
        "close": producer.close,
        "send_columns": lambda: producer.send_columns("t", [b"inner"]),
    }
    refused: list[LogstoreError] = []

    def appending(*arguments: Any, **options: Any) -> Any:
        try:
            calls[call]()
        except IllegalStateError as error:
            refused.append(error)
        return append(*arguments, **options)

    monkeypatch.setattr(store.log("t", 0), "append_records", appending)
    producer.send("t", b"outer")
    within(producer.flush)
    assert len(refused) == 1
    assert values_of(store, "t") == [b"outer"]


def test_arguments_that_call_the_producer_are_harmless(store: Store) -> None:
    producer = store.producer(linger_ms=LONG_MS, value_serializer=lambda value: value)

    class Number:
        def __index__(self) -> int:
            producer.send("t", b"of a time")
            producer.flush()
            return 7

    class Name(str):
        def __hash__(self) -> int:
            producer.flush()
            return super().__hash__()

    class Text(bytes):
        def __bytes__(self) -> bytes:
            raise AssertionError("the bytes are there")

    within(
        lambda: producer.send(Name("t"), Text(b"x"), timestamp_ms=Number())  # type: ignore[arg-type]
    )
    producer.flush()
    assert values_of(store, "t") == [b"of a time", b"x"]


def test_poll_hands_out_each_record_once_wherever_it_is_interrupted(store: Store) -> None:
    store.producer().send_columns("t", [b"%d" % number for number in range(400)])
    consumer = store.consumer("t", group_id="g", auto_offset_reset="earliest", enable_auto_commit=False)
    found: list[Any] = []
    line_number = 0
    interrupter = Interrupter(1)
    while line_number == 0 or interrupter.has_raised:
        line_number += 1
        interrupter = Interrupter(line_number)
        interrupter.run(lambda: found.extend(consumer.poll(60_000, max_records=1).values()))
    assert line_number > 30
    assert [record.offset for records in found for record in records] == [0]
    assert consumer.position(("t", 0)) == 1


def test_a_poll_that_joins_is_finished_by_the_next_wherever_it_is_interrupted(store: Store) -> None:
    store.producer().send_columns("t", [b"x"])
    line_number = 0
    has_raised = True
    kept = []  # or one that is dropped is finalized where the next is interrupted
    while has_raised:
        line_number += 1
        consumer = store.consumer("t", group_id=f"g{line_number}", auto_offset_reset="earliest")
        kept.append(consumer)
        interrupter = Interrupter(line_number)
        interrupter.run(consumer.poll)
        has_raised = interrupter.has_raised
        if has_raised:
            assert len(consumer.poll(60_000)) == 1, line_number
        consumer.close()
    assert line_number > 100


def test_iteration_hands_out_each_record_once_wherever_it_is_interrupted(store: Store) -> None:
    store.producer().send_columns("t", [b"%d" % number for number in range(400)])
    found: list[int] = []
    line_number = 0
    has_raised = True
    consumer = store.consumer("t", group_id="g", auto_offset_reset="earliest")
    next(consumer)
    while has_raised:
        line_number += 1
        consumer._polling._next_poll_s = 0.0  # so that the next one polls
        interrupter = Interrupter(line_number)
        interrupter.run(lambda: found.append(next(consumer).offset))
        has_raised = interrupter.has_raised
    found.append(next(consumer).offset)
    assert found == list(range(1, len(found) + 1))
    consumer.close()
    again = store.consumer("t", group_id="g", auto_offset_reset="earliest")
    again.poll(60_000)
    assert consumer is not again
    assert store.groups.fetch("g", [("t", 0)], require_stable=False)[("t", 0)].offset == len(found) + 1  # type: ignore[union-attr, index]


def test_a_consumer_that_is_dropped_goes_at_once(store: Store) -> None:
    dropped = weakref.ref(store.consumer("t", group_id="g"))
    assert dropped() is None
