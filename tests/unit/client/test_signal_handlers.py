"""Signal handlers that call what they interrupt, by signals that come at any moment, and at chosen moments."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import logstore
from logstore.client.consumer import polling
from logstore.errors import IllegalStateError, LogstoreError, ReentrantCallError
from tests.support.sampling import IS_LONG, sampled
from tests.support.stores import FEW_PARTITIONS

CALL_COUNT = 20_000 if IS_LONG else 500
HANGS_S = 120  # only a call that waits for itself takes so long
HEAD = """
    import itertools, os, signal, sys, threading, time
    import logstore
    from logstore.errors import LogstoreError, ReentrantCallError

    store = logstore.open(sys.argv[1], config={"offsets.topic.num.partitions": 1})
    store.create_topic("t")
    acknowledged, numbers = [], itertools.count()

    def attempt(call):
        try:
            call()
        except LogstoreError:
            pass

    def signalled(handler, main, count):
        signal.signal(signal.SIGALRM, lambda *_: attempt(handler))
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.0007)
        for _ in range(count):
            attempt(main)
        signal.setitimer(signal.ITIMER_REAL, 0)
"""


def run(program: str, path: Path) -> str:
    code = textwrap.dedent(HEAD) + textwrap.dedent(program)
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, timeout=HANGS_S, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def found(path: Path) -> list[str]:
    """Offset and value of each record, as lines, once the directory is opened again."""
    with logstore.open(path) as store:
        assert store.log("t", 0).is_writable
        return [f"{record.offset} {(record.value or b'').decode()}" for record in store.read("t")]


@pytest.mark.parametrize("others", ["pass", "log.roll()", "log.flush()", "log.delete_old_segments(0)"])
def test_an_append_in_an_append_gets_no_offset_of_it(tmp_path: Path, others: str) -> None:
    out = run(
        f"""
        log = store.log("t", 0)

        def append():
            value = b"%d" % next(numbers)
            offset = log.append_records([value]).first_offset
            acknowledged.append(f"{{offset}} {{value.decode()}}")

        def handler():
            append()
            {others}

        signalled(handler, append, {CALL_COUNT})
        store.close()
        print(*acknowledged, sep="\\n")
        """,
        tmp_path / "data",
    )
    acknowledged = out.splitlines()
    assert len(acknowledged) > CALL_COUNT // 2
    assert set(acknowledged) <= set(found(tmp_path / "data"))
    assert len({line.split()[0] for line in acknowledged}) == len(acknowledged)


@pytest.mark.parametrize("linger_ms", sampled([0, 5], [0], pytest.mark.slow))
@pytest.mark.parametrize("call", ["send()", "send(); producer.flush()", "log.append_records([b'h']); send(b'key')"])
def test_a_send_in_a_send_loses_no_record(tmp_path: Path, linger_ms: int, call: str) -> None:
    out = run(
        f"""
        producer, log = store.producer(linger_ms={linger_ms}), store.log("t", 0)
        sent = []

        def send(key=None):
            value = b"%d" % next(numbers)
            sent.append((value, producer.send("t", value, key)))

        def handler():
            {call}

        signalled(handler, send, {CALL_COUNT})
        producer.flush()
        acknowledged = [f"{{future.get().offset}} {{value.decode()}}" for value, future in sent]
        store.close()
        print(*acknowledged, sep="\\n")
        """,
        tmp_path / "data",
    )
    acknowledged = out.splitlines()
    assert len(acknowledged) > CALL_COUNT // 2
    assert set(acknowledged) <= set(found(tmp_path / "data"))


@pytest.mark.parametrize("call", ["producer.close()", "store.close()"])
def test_a_handler_closes_in_the_middle_of_a_send(tmp_path: Path, call: str) -> None:
    out = run(
        f"""
        producer, sent, closed = store.producer(linger_ms=0), [], []

        def close():
            {call}
            closed.append(True)

        signal.signal(signal.SIGALRM, lambda *_: attempt(close))
        signal.setitimer(signal.ITIMER_REAL, 0.01, 0.0007)
        while not closed:
            value = b"%d" % next(numbers)
            attempt(lambda: sent.append((value, producer.send("t", value))))
        signal.setitimer(signal.ITIMER_REAL, 0)
        print(*(f"{{future.get().offset}} {{value.decode()}}" for value, future in sent), sep="\\n")
        """,
        tmp_path / "data",
    )
    assert set(out.split("\n")[:-1]) - {""} <= set(found(tmp_path / "data"))


@pytest.mark.parametrize("group", ["", "group_id='g'"])
@pytest.mark.parametrize("busy", [False, True])
def test_a_handler_closes_the_consumer_of_a_loop(tmp_path: Path, group: str, busy: bool) -> None:
    out = run(
        f"""
        log, closed, late = store.log("t", 0), [], []
        consumer = store.consumer("t", auto_offset_reset="earliest", max_poll_records=1, {group})
        log.append_records([b"v"])

        def close(*_):
            consumer.close()
            closed.append(True)

        signal.signal(signal.SIGTERM, close)
        for record in consumer:
            late += closed
            if record.offset == 0:
                threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
            if {busy}:
                log.append_records([b"v"])
        attempt(lambda: consumer.poll(1000))
        assert not late and "closed" in repr(consumer)
        if {bool(group)}:
            assert not store.groups.describe("g").members
        print("ended")
        """,
        tmp_path / "data",
    )
    assert out == "ended\n"


# -- at chosen moments ------------------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with logstore.open(tmp_path / "data", config=FEW_PARTITIONS) as store:
        store.create_topic("t")
        yield store


def interrupted(store: logstore.Store, handler: Callable[[], object]) -> list[LogstoreError]:
    """Append with a signal while the log is asked for the time; what the handler's call raised."""
    errors: list[LogstoreError] = []

    def on_signal(*_: object) -> None:
        try:
            handler()
        except LogstoreError as error:
            errors.append(error)

    log = store.log("t", 0)
    clock, before = log.state.host.now_ms, signal.signal(signal.SIGUSR1, on_signal)

    def now_ms() -> int:
        log.state.host = log.state.host._replace(now_ms=clock)
        signal.raise_signal(signal.SIGUSR1)
        return clock()

    log.state.host = log.state.host._replace(now_ms=now_ms)
    try:
        log.append_records([b"outer"])
    finally:
        log.state.host = log.state.host._replace(now_ms=clock)
        signal.signal(signal.SIGUSR1, before)
    return errors


@pytest.mark.parametrize(
    "call",
    [
        lambda store, producer, consumer: store.log("t", 0).append_records([b"inner"]),
        lambda store, producer, consumer: store.log("t", 0).view(),
        lambda store, producer, consumer: producer.send("t", b"v"),
        lambda store, producer, consumer: producer.flush(),
        lambda store, producer, consumer: producer.close(),
        lambda store, producer, consumer: consumer.commit({("t", 0): 0}),
        lambda store, producer, consumer: store.create_topic("u"),
        lambda store, producer, consumer: store.run_due(),
        lambda store, producer, consumer: store.close(),
    ],
)
def test_a_call_in_the_middle_of_an_append_is_refused_and_succeeds_behind_it(store: Any, call: Any) -> None:
    producer, consumer = store.producer(linger_ms=0), store.consumer("t", group_id="g")
    consumer.poll()
    (error,) = interrupted(store, lambda: call(store, producer, consumer))
    assert isinstance(error, ReentrantCallError)
    assert [record.value for record in store.read("t")] == [b"outer"]
    call(store, producer, consumer)


def test_a_consumer_closed_in_the_middle_of_an_append_is_closed_by_its_next_call(store: Any) -> None:
    store.log("t", 0).append_records([b"1", b"2"])
    consumer = store.consumer("t", group_id="g", auto_offset_reset="earliest")
    assert next(consumer).value == b"1"
    assert interrupted(store, consumer.close) == []
    assert list(consumer) == []
    assert "closed" in repr(consumer)
    assert not store.groups.describe("g").members


def test_an_iteration_goes_on_behind_what_a_handler_read(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The handler runs where the iteration is about to take a record that is at hand."""
    store.log("t", 0).append_records([b"%d" % number for number in range(5)])
    consumer = store.consumer("t", auto_offset_reset="earliest")
    assert next(consumer).value == b"0"
    get_ident, read = threading.get_ident, list[bytes]()

    def interrupted_once() -> int:
        monkeypatch.setattr(polling.threading, "get_ident", get_ident)
        read.extend(record.value for records in consumer.poll(0, 2).values() for record in records)
        return get_ident()

    monkeypatch.setattr(polling.threading, "get_ident", interrupted_once)
    assert next(consumer).value == b"3"
    assert read == [b"1", b"2"]


def test_a_future_is_not_waited_for_in_the_middle_of_an_append(store: Any) -> None:
    producer = store.producer(linger_ms=60_000)
    future = producer.send("t", b"v")
    (error,) = interrupted(store, future.get)
    assert isinstance(error, ReentrantCallError)
    producer.flush()
    assert future.get().offset == 1


def test_a_thread_that_waits_for_the_interrupted_log_is_not_waited_for(store: Any) -> None:
    producer, log = store.producer(linger_ms=60_000), store.log("t", 0)
    producer.send("t", b"of the producer")
    thread = threading.Thread(target=producer.flush)

    def handler() -> None:
        thread.start()
        while not producer._buffer.mutex.locked():  # then it waits for the log
            thread.join(0.001)
        producer.send("t", b"x" * 1_000_000)

    (error,) = interrupted(store, handler)
    assert isinstance(error, ReentrantCallError)
    thread.join()
    assert log.log_end_offset == 2


def test_a_consumer_is_not_read_in_the_middle_of_a_read(store: Any) -> None:
    store.log("t", 0).append_records([b"1", b"2"])
    errors: list[Exception] = []

    def deserializer(value: bytes) -> bytes:
        for read in (consumer.poll, consumer.to_arrow, lambda: next(consumer)):
            with pytest.raises(ReentrantCallError) as caught:
                read()
            errors.append(caught.value)
        return value

    consumer = store.consumer("t", auto_offset_reset="earliest", value_deserializer=deserializer)
    assert [record.value for records in consumer.poll().values() for record in records] == [b"1", b"2"]
    assert len(errors) == 6


def test_a_close_in_a_poll_ends_it_and_takes_its_records_back(store: Any) -> None:
    store.log("t", 0).append_records([b"1", b"2"])

    def deserializer(value: bytes) -> bytes:
        consumer.close()
        return value

    consumer = store.consumer("t", group_id="g", auto_offset_reset="earliest", value_deserializer=deserializer)
    with pytest.raises(IllegalStateError, match="already been closed"):
        consumer.poll(1000)
    assert "closed" in repr(consumer)
    assert not store.groups.describe("g").members
    another = store.consumer("t", group_id="g", auto_offset_reset="earliest")
    assert [record.value for records in another.poll(60_000).values() for record in records] == [b"1", b"2"]
