"""What commits by itself: an orderly close; no `unsubscribe` and nothing that comes of a failure: records may wait."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from subprocess import run

import pytest

import logstore
from logstore import clock
from logstore.client.consumer import Consumer
from logstore.client.store import Store
from logstore.model import TopicPartition
from tests.support.stores import FEW_PARTITIONS

T0 = TopicPartition("t", 0)


class Failure(BaseException):
    """As an interrupt: nothing catches it by accident."""


def opened(directory: Path) -> Store:
    store = logstore.open(directory / "data", config=FEW_PARTITIONS)
    if "t" not in store.topics:
        store.create_topic("t")
        store.log("t", 0).append_records([b"1", b"2"])
    return store


def polled(store: Store, *, is_assigned: bool = False) -> Consumer:
    consumer = store.consumer(group_id="g", auto_offset_reset="earliest")
    if is_assigned:
        consumer.assign([T0])
    else:
        consumer.subscribe(["t"])
    assert [record.offset for records in consumer.poll(60_000).values() for record in records] == [0, 1]
    return consumer


def committed(directory: Path) -> int | None:
    with opened(directory) as store, store.consumer(group_id="g") as consumer:
        found = consumer.committed(T0)[T0]
        return None if found is None else found.offset


def leave_consumer(store: Store, consumer: Consumer) -> None:
    with store, consumer:
        raise Failure


def leave_store(store: Store, _: Consumer) -> None:
    with store:
        raise Failure


def close_in_finally(store: Store, _: Consumer) -> None:
    try:
        raise Failure
    finally:
        store.close()


def close_without_commit(store: Store, consumer: Consumer) -> None:
    consumer.close(autocommit=False)
    store.close()


def unsubscribe_first(store: Store, consumer: Consumer) -> None:
    consumer.unsubscribe()
    consumer.close()
    store.close()


def break_iteration(store: Store, consumer: Consumer) -> None:
    with store:
        consumer.seek(T0, 0)
        for _ in consumer:
            raise Failure


@pytest.mark.parametrize("is_assigned", [False, True])
@pytest.mark.parametrize(
    "end",
    [leave_consumer, leave_store, close_in_finally, close_without_commit, unsubscribe_first, break_iteration],
)
def test_a_failure_commits_nothing(tmp_path: Path, end: Callable[[Store, Consumer], None], is_assigned: bool) -> None:
    store = opened(tmp_path)
    consumer = polled(store, is_assigned=is_assigned)
    with suppress(Failure):
        end(store, consumer)
    assert committed(tmp_path) is None


def test_a_consumer_that_is_dropped_commits_nothing(tmp_path: Path) -> None:
    store = opened(tmp_path)
    polled(store)
    gc.collect()
    store.close()
    assert committed(tmp_path) is None


@pytest.mark.parametrize("is_assigned", [False, True])
@pytest.mark.parametrize("what", ["close", "with", "store", "store in order"])
def test_an_orderly_close_commits(tmp_path: Path, what: str, is_assigned: bool) -> None:
    store = opened(tmp_path)
    consumer = polled(store, is_assigned=is_assigned)
    if what == "close":
        consumer.close()
    elif what == "with":
        with consumer:
            pass
    elif what == "store in order":
        try:
            raise ValueError
        except ValueError:
            with store:  # the block itself is left in order
                pass
    store.close()
    assert committed(tmp_path) == 2


@pytest.mark.parametrize(
    "end",
    [
        "raise RuntimeError",
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); os.kill(os.getpid(), signal.SIGTERM)",
        "sys.exit()",
        "pass",
    ],
)
def test_the_end_of_the_program_commits_nothing(tmp_path: Path, end: str) -> None:
    opened(tmp_path).close()
    program = (
        "import logstore, os, signal, sys\n"
        "store = logstore.open(sys.argv[1])\n"
        "consumer = store.consumer('t', group_id='g', auto_offset_reset='earliest')\n"
        "assert consumer.poll(60_000)\n"
        f"{end}\n"
    )
    run([sys.executable, "-c", program, str(tmp_path / "data")], check=False, capture_output=True)
    assert committed(tmp_path) is None


def test_a_loop_commits_as_time_passes_among_the_records_at_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [1000.0]
    monkeypatch.setattr(clock, "monotonic_s", lambda: now_s[0])
    monkeypatch.setattr(clock, "monotonic_ms", lambda: int(now_s[0] * 1000))
    with opened(tmp_path) as store:
        consumer = store.consumer(group_id="g", auto_offset_reset="earliest", auto_commit_interval_ms=5000)
        consumer.assign([T0])
        assert next(consumer).value == b"1"
        assert consumer.committed(T0) == {T0: None}
        now_s[0] += 60
        assert next(consumer).value == b"2"
        committed = consumer.committed(T0)[T0]
        assert committed.offset == 1
