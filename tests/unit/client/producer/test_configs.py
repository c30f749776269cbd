"""What a producer's configurations do to what is written, and when; and how those that do not do are refused."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from logstore.client.producer import Producer
from logstore.client.producer.config import parse_producer_config
from logstore.client.producer.queues import partition_for_key
from logstore.client.store import Store
from logstore.errors import (
    BufferExhaustedError,
    CoordinatorLoadInProgressError,
    ProducerFailedError,
    RequestTimedOutError,
    UsageError,
)
from logstore.log.partition_log import PartitionLog
from tests.support.stores import LONG_MS, patient_producer

TOPICS = {"t": 3, "one": 1}

LONG_MAX = 2**63 - 1
KEYS = [b"%d" % number for number in range(50)]
LOADING = CoordinatorLoadInProgressError


@contextmanager
def given_up(sending: Producer) -> Iterator[Producer]:
    """A producer that waits for nothing when it is closed."""
    try:
        yield sending
    finally:
        with suppress(ProducerFailedError):
            sending.close(0)


class Clock:
    """The monotonic clock of a producer that nothing but the test keeps going."""

    def __init__(self, sending: Producer, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 1000.0
        self._buffer = sending._buffer  # only its thread writes what is due, and that waits by the real time
        monkeypatch.setattr(self._buffer.background, "ensure", lambda due_s=0.0: None)
        monkeypatch.setattr("logstore.clock.monotonic_s", lambda: self.now_s)

    def go_on(self, seconds: float) -> None:
        """So much later, write what is due."""
        self.now_s += seconds
        self._buffer._write_due()


def refuse(log: PartitionLog, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let the log refuse every append with what may pass; the numbers of records of each attempt."""
    counts: list[int] = []

    def append(values: Any, *_: Any, **__: Any) -> Any:
        counts.append(len(values))
        raise LOADING()

    monkeypatch.setattr(log, "append_records", append)
    return counts


LEVELS = pytest.mark.parametrize(
    ("codec", "low", "high"), [("gzip", 1, 9), ("lz4", 1, 12), ("zstd", -20, 19)], ids=["gzip", "lz4", "zstd"]
)


def size_of(store: Store, partition: int, *, is_columns: bool, is_first: bool = True, **config: Any) -> int:
    """Bytes of the log of a partition that the same records were written to; the first append goes the slow path."""
    values = [b"%d, %d" % (number, number * number) for number in range(2000)]
    if not is_first:
        store.log("t", partition).append_records([b"first"])
    with patient_producer(store, batch_size=100_000, **config) as sending:
        if is_columns:
            sending.send_columns("t", values, timestamps=range(len(values)), partition=partition)
        else:
            for number, value in enumerate(values):
                sending.send("t", value, partition=partition, timestamp_ms=number)
    return store.log("t", partition).size


@pytest.mark.parametrize("is_first", [True, False], ids=["first", "later"])
@pytest.mark.parametrize("is_columns", [False, True], ids=["send", "send_columns"])
@LEVELS
def test_a_level_decides_how_small_a_batch_gets(
    store: Store, codec: str, low: int, high: int, is_columns: bool, is_first: bool
) -> None:
    name = f"compression.{codec}.level"
    sizes = [
        size_of(store, partition, is_columns=is_columns, is_first=is_first, compression_type=codec, **{name: level})
        for partition, level in enumerate([low, high])
    ]
    assert sizes[1] < sizes[0]


@pytest.mark.parametrize("is_columns", [False, True], ids=["send", "send_columns"])
@LEVELS
def test_a_topic_that_compresses_otherwise_has_its_own_level(
    store: Store, codec: str, low: int, high: int, is_columns: bool
) -> None:
    name = f"compression.{codec}.level"
    store.alter_config("t", {"compression.type": codec, name: high})
    config = {"compression_type": "gzip" if codec == "lz4" else "lz4", name: low}
    sizes = [
        size_of(store, 0, is_columns=is_columns, **config),
        size_of(store, 1, is_columns=is_columns, compression_type=codec, **{name: low}),
    ]
    assert sizes[0] < sizes[1]  # what is compressed as the topic wants it stays as it is


@pytest.mark.parametrize("is_columns", [False, True], ids=["send", "send_columns"])
@pytest.mark.parametrize("ignores_keys", [False, True])
def test_keys_may_be_ignored_where_the_partition_is_chosen(store: Store, ignores_keys: bool, is_columns: bool) -> None:
    with patient_producer(store, partitioner_ignore_keys=ignores_keys) as sending:
        if is_columns:
            partitions = {one.partition for one in sending.send_columns("t", KEYS, KEYS)}
        else:
            futures = [sending.send("t", b"v", key) for key in KEYS]
            sending.flush()
            partitions = {future.get().partition for future in futures}
    assert len(partitions) == (1 if ignores_keys else 3)
    assert {partition_for_key(key, 3) for key in KEYS} == {0, 1, 2}


def test_a_batch_lingers_for_its_time_and_no_longer(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with given_up(patient_producer(store, linger_ms=250)) as sending:
        clock = Clock(sending, monkeypatch)
        first = sending.send("one", b"1")
        clock.go_on(0.2)
        second = sending.send("one", b"2")
        clock.go_on(0.049)
        assert not first.is_done
        clock.go_on(0.002)  # the first decides, for both are in its batch
        assert first.get(0).offset == 0
        assert second.get(0).offset == 1


def test_records_may_linger_for_ever(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", failures.append)
    with patient_producer(store, linger_ms=LONG_MAX, client_id="patient") as sending:
        future = sending.send("one", b"1")
        thread = next(one for one in threading.enumerate() if one.name == "logstore-patient")
        thread.join(0.05)
        assert thread.is_alive()
        assert not future.is_done
    thread.join(60)
    assert not thread.is_alive()  # else it would keep the producer for as long
    assert not failures
    assert future.succeeded()


@pytest.mark.parametrize("max_block_ms", [0, 60])
def test_a_send_waits_for_memory_as_long_as_it_may_block(
    store: Store, monkeypatch: pytest.MonkeyPatch, max_block_ms: int
) -> None:
    refuse(store.log("one", 0), monkeypatch)
    config = {"batch_size": 1000, "buffer_memory": 1000, "retry_backoff_ms": 5, "retry_backoff_max_ms": 5}
    with given_up(patient_producer(store, max_block_ms=max_block_ms, **config)) as sending:
        sending.send("one", bytes(900))
        start_s = time.monotonic()
        with pytest.raises(BufferExhaustedError, match=f"the configured max blocking time {max_block_ms} ms"):
            sending.send("one", bytes(900))
        assert max_block_ms / 1000 <= time.monotonic() - start_s < 60


def test_a_batch_that_memory_has_no_room_for_is_refused_in_kafkas_words(store: Store) -> None:
    with (
        patient_producer(store, batch_size=1001, buffer_memory=1000, max_block_ms=LONG_MS) as sending,
        pytest.raises(UsageError, match="Attempt to allocate 1001 bytes, but there is a hard limit of 1000 on memory"),
    ):
        sending.send("one", b"small")
    with patient_producer(store, batch_size=1000, buffer_memory=1000) as sending:
        sending.send("one", b"small")


def test_a_batch_is_tried_until_its_time_of_delivery_is_over(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = refuse(store.log("one", 0), monkeypatch)
    config = {"delivery_timeout_ms": 1000, "request_timeout_ms": 10, "retry_backoff_ms": 1, "retry_backoff_max_ms": 1}
    with given_up(patient_producer(store, linger_ms=100, **config)) as sending:
        clock = Clock(sending, monkeypatch)
        future = sending.send("one", b"1")
        sending.send("one", b"2")
        clock.go_on(0.5)
        clock.go_on(0.499)
        assert counts == [2] * 3  # the second attempt follows at once
        assert not future.is_done
        clock.go_on(0.002)  # it is counted from the batch's making, not from the first attempt
        with pytest.raises(RequestTimedOutError, match=r"Expiring 2 record\(s\) for one-0") as raised:
            future.get(0)
    assert isinstance(raised.value.__cause__, LOADING)


ACKS = "Must set acks to all in order to use the idempotent producer. Otherwise we cannot guarantee idempotence."
RETRIES = "Must set retries to non-zero when using the idempotent producer."
IN_FLIGHT = (
    "To use the idempotent producer, max.in.flight.requests.per.connection must be set to at most 5. "
    "Current value is 6."
)
TRANSACTIONAL = "Cannot set a transactional.id without also enabling idempotence."


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, True),
        ({"transactional.id": "x"}, True),
        ({"transactional.id": None, "acks": "0"}, False),
        ({"acks": "1"}, False),
        ({"acks": 0}, False),
        ({"retries": 0}, False),
        ({"acks": "all", "retries": 1, "max.in.flight.requests.per.connection": 5}, True),
        ({"enable.idempotence": False, "max.in.flight.requests.per.connection": 6, "acks": 1, "retries": 0}, False),
        ({"enable.idempotence": True, "acks": "1"}, ACKS),
        ({"enable.idempotence": True, "retries": 0}, RETRIES),
        ({"enable.idempotence": True, "retries": 0, "acks": 0}, RETRIES),
        ({"max.in.flight.requests.per.connection": 6}, IN_FLIGHT),
        ({"enable.idempotence": True, "max.in.flight.requests.per.connection": 6}, IN_FLIGHT),
        ({"acks": 1, "max.in.flight.requests.per.connection": 6}, IN_FLIGHT),
        ({"transactional.id": "x", "acks": 1}, TRANSACTIONAL),
        ({"transactional.id": "x", "retries": 0}, TRANSACTIONAL),
        ({"transactional.id": "x", "enable.idempotence": False}, TRANSACTIONAL),
    ],
)
def test_idempotence_is_on_off_or_refused_as_by_kafka(values: dict[str, Any], expected: bool | str) -> None:
    if isinstance(expected, bool):
        assert parse_producer_config(values)["enable.idempotence"] is expected
        return
    with pytest.raises(UsageError) as raised:
        parse_producer_config(values)
    assert raised.value.message == expected


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"transaction.timeout.ms": " x "}, "Invalid value  x  for configuration transaction.timeout.ms: Not a number"),
        (
            {"enable_idempotence": " yes "},
            "Invalid value  yes  for configuration enable.idempotence: Expected value to",
        ),
    ],
)
def test_a_refusal_shows_what_was_given(values: dict[str, Any], text: str) -> None:
    with pytest.raises(UsageError, match=text):
        parse_producer_config(values)
    assert parse_producer_config({"acks": " all ", "retries": " 7 "})["retries"] == 7


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({}, "producer-1"),
        ({"client.id": "me"}, "me"),
        ({"transactional.id": "mover"}, "producer-mover"),
        ({"transactional.id": "mover", "client.id": "me"}, "me"),
    ],
)
def test_a_producer_without_a_client_id_is_named_as_by_kafka(values: dict[str, Any], expected: str) -> None:
    assert parse_producer_config(values)["client.id"] == expected
