"""Records that were refused after `send`: whoever asks no future hears of them at `flush`, `close` or in `with`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from logstore.client.producer import Producer
from logstore.client.store import Store
from logstore.errors import InvalidRecordError, InvalidTimestampError, LogstoreError, ProducerFailedError
from tests.support.stores import LONG_MS, begun, patient_producer

TOPICS = {"t": 1, "u": 1}


def refused(store: Store, **config: Any) -> Producer:
    """A producer with two records that a compacted topic does not take."""
    store.alter_config("t", {"cleanup.policy": "compact"})
    producer = store.producer(**{"linger_ms": LONG_MS, **config})
    for _ in range(2):
        producer.send("t", b"without a key")
    producer.send("u", b"good")
    return producer


def leave_with(producer: Producer) -> None:
    with producer:
        pass


@pytest.mark.parametrize("end", [Producer.flush, Producer.close, leave_with])
def test_the_end_raises_what_nobody_has_seen(store: Store, end: Callable[[Producer], Any]) -> None:
    producer = refused(store)
    with pytest.raises(InvalidRecordError) as raised:
        end(producer)
    assert "2 record(s) were not written" in raised.value.__notes__[0]
    assert [record.value for record in store.read("u")] == [b"good"]
    producer.flush()  # once
    producer.close()


def test_the_store_raises_what_nobody_has_seen(store: Store) -> None:
    refused(store)
    with pytest.raises(InvalidRecordError):
        store.close()


@pytest.mark.parametrize("linger_ms", [0, LONG_MS])
def test_a_callback_for_success_alone_hears_of_no_error(store: Store, linger_ms: int) -> None:
    producer = refused(store, linger_ms=linger_ms)
    heard: list[Any] = []
    producer.send("t", b"without a key").add_callback(heard.append)
    with pytest.raises(InvalidRecordError):
        producer.flush()
    assert heard == []


def test_errors_that_were_seen_are_not_raised_again(store: Store) -> None:
    producer = refused(store)
    heard: list[LogstoreError] = []
    producer.send("t", b"without a key").add_errback(heard.append)
    assert producer.flush()
    assert len(heard) == 1
    asked = producer.send("t", b"without a key")
    producer._buffer.flush()
    assert asked.failed()
    producer.close()


def test_flush_in_a_callback_raises_nothing_and_hides_nothing(store: Store) -> None:
    producer = refused(store)
    found: list[bool] = []
    producer.send("u", b"good").add_callback(lambda _: found.append(producer.flush()))
    with pytest.raises(InvalidRecordError):
        producer.flush()
    assert found == [True]


def test_records_that_a_close_gives_up_are_told(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    producer = store.producer(linger_ms=LONG_MS)
    future = producer.send("t", b"given up")
    monkeypatch.setattr(producer._buffer, "flush", lambda _: False)
    with pytest.raises(ProducerFailedError, match="closed forcefully"):
        producer.close(timeout=0)
    assert isinstance(future.exception, ProducerFailedError)


@pytest.mark.parametrize(("bad_count", "kind"), [(1, InvalidTimestampError), (2, InvalidRecordError)])
def test_a_record_among_refused_ones_has_the_batch_s_error_if_it_is_the_only_bad_one(
    bad_count: int, kind: type[LogstoreError], store: Store
) -> None:
    """`Sender.completeBatch`: the answer's error names one cause."""
    store.alter_config("t", {"message.timestamp.before.max.ms": "1000"})
    producer = patient_producer(store)
    good = producer.send("t", b"good")
    bad = [producer.send("t", b"old", timestamp_ms=0) for _ in range(bad_count)]
    with pytest.raises(InvalidTimestampError):
        producer.flush()
    assert [type(future.exception) for future in (good, *bad)] == [InvalidRecordError, *[kind] * bad_count]
    assert all("out of range" in str(future.exception) for future in bad)
    producer.close()


def test_a_transaction_tells_its_errors_once(store: Store) -> None:
    producer = store.producer(transactional_id="x", linger_ms=LONG_MS)
    producer.init_transactions()
    for end in (producer.commit_transaction, producer.abort_transaction, producer.flush):
        store.alter_config("t", {"cleanup.policy": "compact"})
        producer.begin_transaction()
        producer.send("t", b"without a key")
        if end == producer.abort_transaction:
            producer.abort_transaction()  # drops it
            continue
        with pytest.raises(LogstoreError):
            end()
        producer.abort_transaction()
        producer.flush()
    producer.close()


def test_a_transaction_that_a_close_aborts_tells_its_errors(store: Store) -> None:
    store.alter_config("t", {"cleanup.policy": "compact"})
    producer = begun(store, linger_ms=0)
    producer.send("t", b"without a key")
    with pytest.raises(InvalidRecordError):
        producer.close()
