"""Records that cannot be sent: each is refused at once and alone, and a transaction does not count without it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from logstore.client.store import Store
from logstore.errors import (
    CoordinatorLoadInProgressError,
    InvalidGroupIdError,
    LogstoreError,
    Recovery,
    RequestTimedOutError,
    UsageError,
)
from tests.support.stores import LONG_MS, begun

TOPICS = {"t": 1}

MS_MAX = (1 << 63) - 1


@pytest.mark.parametrize("bad", [-5, -1, 1 << 63, 1 << 64, -(1 << 63) - 1, 1 << 200, "x", 1.5])
def test_a_bad_time_is_refused_at_once_and_alone(store: Store, bad: Any) -> None:
    producer = store.producer(linger_ms=LONG_MS)
    text = f"Invalid timestamp: {bad}. Timestamp should always be non-negative or null."
    first = producer.send("t", b"first")
    for key in (None, b"k"):
        with pytest.raises(UsageError) as raised:
            producer.send("t", b"bad", key=key, timestamp_ms=bad)
        assert raised.value.message == text
        assert raised.value.java_class == "java.lang.IllegalArgumentException"
    last = producer.send("t", b"last")
    producer.flush()
    assert [first.get().offset, last.get().offset] == [0, 1]


@pytest.mark.parametrize("good", [0, 1, 1 << 62, MS_MAX, True, np.int64(7)])
def test_any_good_time_is_taken(store: Store, good: Any) -> None:
    store.alter_config("t", {"message.timestamp.after.max.ms": str(MS_MAX)})
    producer = store.producer(linger_ms=LONG_MS)
    sent = [producer.send("t", b"v", timestamp_ms=time) for time in (good, good, None)]
    producer.flush()
    assert [future.get().timestamp for future in sent[:2]] == [int(good)] * 2


@pytest.mark.parametrize("bad", [-1, 1 << 31, "0", 0.5])
def test_a_bad_partition_is_refused(store: Store, bad: Any) -> None:
    producer = store.producer(linger_ms=LONG_MS)
    with pytest.raises(UsageError) as raised:
        producer.send("t", b"bad", partition=bad)
    assert raised.value.message == f"Invalid partition: {bad}. Partition number should always be non-negative or null."


def passing(*_: Any, **__: Any) -> None:
    raise CoordinatorLoadInProgressError


@pytest.mark.parametrize(
    "bad",
    [{"topic": "nope"}, {"partition": 9}, {"value": b"x" * 5000}, {"partition": 1}],
    ids=["topic", "partition", "size", "memory"],
)
def test_a_transaction_does_not_count_without_a_record_that_was_refused(
    store: Store, bad: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create_topic("two", partitions=2)
    producer = begun(store, linger_ms=LONG_MS, max_block_ms=20, buffer_memory=3000, batch_size=2000)
    producer.send("two", b"half", partition=0)
    if bad == {"partition": 1}:
        monkeypatch.setattr(store.log("two", 0), "append_records", passing)  # what waits keeps its memory
    with pytest.raises(LogstoreError) as refused:
        producer.send(**{"topic": "two", "value": b"other half", **bad})
    with pytest.raises(LogstoreError) as raised:
        producer.commit_transaction()
    assert refused.value in (raised.value.__cause__, getattr(raised.value.__cause__, "__cause__", None))
    assert raised.value.recovery is Recovery.ABORT
    producer.abort_transaction()


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("send", ("t", b"bad", None, None, None, -1)),
        ("send", (None, b"bad")),
        ("send", (5, b"bad", b"key")),
        ("send", (["t"], b"bad", b"key")),
        *(("send", ("t", b"bad", None, headers)) for headers in (5, [5], ["x"], [("a", 5)], [(5, b"a")], [("a", "b")])),
        ("send", ("t", b"bad", None, np.array([1, 2]))),
        ("send_columns", (None, [b"bad"])),
        ("send_columns", (["t"], [b"bad"])),
        ("send_columns", ("t", 5)),
        ("send_columns", ("t", [b"bad"], None, None, None, "0")),
        ("partitions_for", (None,)),
        ("flush", ("5",)),
        ("close", (-1,)),
        ("send_offsets_to_transaction", ({("t", 0): 1}, 5)),
        ("send_offsets_to_transaction", (5, "group")),
        ("send_offsets_to_transaction", (np.array([1, 2]), "group")),
        ("send_offsets_to_transaction", ({("t", 0): 1}, "x" * 40_000)),
        ("send_offsets_to_transaction", ({"t": 1}, "group")),
        ("send_offsets_to_transaction", ({("t", 0): 1 << 63}, "group")),
        ("send_offsets_to_transaction", ({("t", 0): 1}, "\ud800")),
        ("send_offsets_to_transaction", ({("t", 0): 1}, "")),
    ],
    ids=str,
)
def test_a_bad_argument_leaves_the_transaction_as_it_is(store: Store, method: str, arguments: tuple[Any, ...]) -> None:
    producer = begun(store)
    with pytest.raises((UsageError, InvalidGroupIdError)) as raised:
        getattr(producer, method)(*arguments)
    assert raised.value.recovery is Recovery.MEND
    sent = producer.send("t", b"good")
    producer.commit_transaction()
    assert sent.succeeded()


def test_a_topic_that_is_deleted_in_a_transaction_asks_for_an_abort(store: Store) -> None:
    producer = begun(store, linger_ms=LONG_MS)
    producer.send("t", b"1")
    store.delete_topic("t")
    with pytest.raises(LogstoreError) as raised:
        producer.commit_transaction()
    assert raised.value.recovery is Recovery.ABORT
    producer.abort_transaction()


@pytest.mark.parametrize("call", [
    lambda future: future.get("5"),
    lambda future: future.result(float("nan")),
    lambda future: future.add_callback(5),
    lambda future: future.add_errback(5),
])  # fmt: skip
def test_a_future_names_a_wrong_argument(store: Store, call: Any) -> None:
    future = store.producer(linger_ms=LONG_MS).send("t", b"v")
    with pytest.raises(UsageError):
        call(future)
    with pytest.raises(RequestTimedOutError):
        future.get(-1)


def test_a_name_that_is_no_text_keeps_nobody_out_of_a_group(store: Store) -> None:
    for name in ("client_id", "group_id", "group_instance_id"):
        with pytest.raises(UsageError, match="Not a Unicode text"):
            store.consumer("t", **{"group_id": "g", name: "\ud800"})
    with pytest.raises(UsageError, match="Not a Unicode text"):
        store.producer(transactional_id="\ud800")


def test_a_name_that_no_record_can_hold_is_refused_at_once(store: Store) -> None:
    for name in ("client_id", "group_id", "group_instance_id"):
        with pytest.raises(UsageError, match="String must have at most"):
            store.consumer("t", **{"group_id": "g", name: "ü" * 20_000})
    with pytest.raises(UsageError, match="String must have at most"):
        store.producer(transactional_id="ü" * 20_000)
    longest = store.consumer("t", group_id="g" * 32_000, group_instance_id="i" * 32_000, client_id="c" * 32_000)
    assert longest.poll() == {}
    with pytest.raises(UsageError, match=r"client\.id"):  # that of the group and the instance
        store.consumer("t", group_id="g" * 20_000, group_instance_id="i" * 20_000)
