"""Producers that are closed on a full disk: they end at once, with the disk's error, and so does every future."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

import logstore
from logstore.client.producer import Producer
from logstore.client.store import Store
from logstore.disk.seam import Writable
from logstore.disk.system_errors import io_error
from logstore.errors import KafkaStorageError, LogstoreError, TransactionAbortedError
from tests.recovery.comparison import UnsyncedSeam
from tests.support.stores import FEW_PARTITIONS, LONG_MS, open_store

NO_SPACE = "No space left on device"
TIMEOUTS = [None, 0, 30]


class Disk(UnsyncedSeam):
    """One that is full when it is said."""

    is_full = False

    def write(self, descriptor: int, data: Writable) -> None:
        if self.is_full:
            raise io_error(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        super().write(descriptor, data)


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def store(tmp_path: Path, disk: Disk) -> Iterator[Store]:
    opened = open_store(tmp_path, config=FEW_PARTITIONS, seam=disk)
    opened.create_topic("t", partitions=3)
    yield opened
    with suppress(LogstoreError):
        opened.close()


def warmed(store: Store, **config: Any) -> Producer:
    """A producer with its id, and in a transaction a record that is on the disk."""
    made = store.producer(linger_ms=LONG_MS, **config)
    if "transactional_id" in config:
        made.init_transactions()
        made.begin_transaction()
    made.send("t", b"on the disk", partition=0)
    made.flush()
    return made


def send_all(producer: Producer) -> list[Any]:
    return [producer.send("t", b"lost", partition=partition) for partition in (0, 1, 2, 0)]


def assert_closes_at_once(
    producer: Producer, disk: Disk, timeout: float | None, text: str, of_futures: type[LogstoreError]
) -> None:
    """Closing a producer whose records a full disk does not take says so, once; every future has its error."""
    futures = send_all(producer)
    disk.is_full = True
    start_s = time.monotonic()
    with pytest.raises(KafkaStorageError, match=text) as raised:
        producer.close(timeout)
    assert time.monotonic() - start_s < 30
    assert NO_SPACE in str(raised.value)
    assert [type(future.exception) for future in futures] == [of_futures] * len(futures)
    producer.close(timeout)
    disk.is_full = False


def committed(directory: Path) -> list[bytes | None]:
    with logstore.open(directory) as again:
        logs = [again.log("t", partition) for partition in range(3)]
        assert [log.last_stable_offset for log in logs] == [log.log_end_offset for log in logs]
        consumer = again.consumer("t", auto_offset_reset="earliest", isolation_level="read_committed")
        return [record.value for records in consumer.poll(0).values() for record in records]


@pytest.mark.parametrize("has_id", [True, False])
@pytest.mark.parametrize("timeout", TIMEOUTS)
def test_closing_says_what_the_disk_did_not_take(
    store: Store, disk: Disk, tmp_path: Path, timeout: float | None, has_id: bool
) -> None:
    producer = warmed(store) if has_id else store.producer(linger_ms=LONG_MS)
    assert_closes_at_once(producer, disk, timeout, "Error while appending records to", KafkaStorageError)
    store.close()
    assert committed(tmp_path) == [b"on the disk"] * has_id


def test_a_store_says_what_the_disk_did_not_take_for_its_producers(store: Store, disk: Disk) -> None:
    warmed(store)
    futures = send_all(warmed(store))
    disk.is_full = True
    with pytest.raises(KafkaStorageError, match="Error while appending records to t-0"):
        store.close()
    assert all(NO_SPACE in str(future.exception) for future in futures)


@pytest.mark.parametrize("how", ["get", "errback", "exception"])
def test_closing_does_not_repeat_what_a_future_has_told(store: Store, disk: Disk, how: str) -> None:
    producer = warmed(store)
    future = producer.send("t", b"lost", partition=0)
    told: list[Any] = []
    if how == "errback":
        future.add_errback(told.append)
    disk.is_full = True
    assert producer._buffer.flush()  # as the producer's thread does
    if how == "get":
        with pytest.raises(KafkaStorageError, match=NO_SPACE):
            future.get(0)
    elif how == "exception":
        told.append(future.exception)
    assert len(told) == (how != "get")
    producer.close()


def test_closing_tells_of_the_records_that_nobody_asked_for(store: Store, disk: Disk) -> None:
    producer = warmed(store)
    asked = producer.send("t", b"lost", partition=0)
    disk.is_full = True
    producer._buffer.flush()
    assert asked.failed()
    producer.send("t", b"lost", partition=1)
    with pytest.raises(KafkaStorageError, match="Error while appending records to t-1"):
        producer.close()


def test_a_future_that_a_log_or_a_debugger_shows_is_not_asked(store: Store, disk: Disk) -> None:
    producer = warmed(store)
    future = producer.send("t", b"lost", partition=0)
    disk.is_full = True
    producer._buffer.flush()
    assert "failed, KafkaStorageError" in repr(future)
    with pytest.raises(KafkaStorageError, match="Error while appending records to t-0"):
        producer.close()


@pytest.mark.parametrize("timeout", TIMEOUTS)
def test_a_transaction_that_cannot_be_aborted_says_so_and_does_not_count(
    store: Store, disk: Disk, tmp_path: Path, timeout: float | None
) -> None:
    producer = warmed(store, transactional_id="x")
    text = "Error while appending records to __transaction_state-0"
    assert_closes_at_once(producer, disk, timeout, text, TransactionAbortedError)
    with suppress(LogstoreError):
        store.close()
    with logstore.open(tmp_path) as again:
        again.producer(transactional_id="x").init_transactions()
    assert committed(tmp_path) == []


def test_a_commit_says_what_the_disk_did_not_take_and_closing_that_it_cannot_abort(
    store: Store, disk: Disk, tmp_path: Path
) -> None:
    producer = warmed(store, transactional_id="x")
    futures = send_all(producer)
    disk.is_full = True
    with pytest.raises(KafkaStorageError, match="Error while appending records to t-0"):
        producer.commit_transaction()
    assert all(isinstance(future.exception, KafkaStorageError) for future in futures)
    with pytest.raises(KafkaStorageError, match="__transaction_state-0"):
        producer.close()
    disk.is_full = False
    with suppress(LogstoreError):
        store.close()
    with logstore.open(tmp_path) as again:
        again.producer(transactional_id="x").init_transactions()
    assert committed(tmp_path) == []
