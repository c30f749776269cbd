"""What becomes the bytes of a record: each kind gives all its bytes, or is refused before anything is sent."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from logstore.client.store import Store
from logstore.errors import LogstoreError, SerializationError, UsageError
from tests.support.stores import LONG_MS

TOPICS = {"t": 1}

WIDE = memoryview(array("i", [1, 2]))
ALL = WIDE.tobytes()


def records_of(store: Store) -> list[Any]:
    return [(record.key, record.value, record.headers) for record in store.read("t")]


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_wide_views_give_all_their_bytes_wherever_a_producer_takes_bytes(store: Store, codec: str) -> None:
    with store.producer(compression_type=codec) as producer:
        producer.send("t", WIDE, WIDE, [("h", WIDE)]).get()
        producer.send_columns("t", [WIDE, b"2"], [b"k", WIDE], headers=[[("h", WIDE)], []])
    with store.producer(value_serializer=lambda _: WIDE, key_serializer=lambda _: WIDE) as producer:
        producer.send("t", 1, 1).get()
    assert records_of(store) == [
        (ALL, ALL, [("h", ALL)]),
        (b"k", ALL, [("h", ALL)]),
        (ALL, b"2", []),
        (ALL, ALL, []),
    ]


@pytest.mark.parametrize("bad", [array("f", [1.0]), np.arange(3), np.float64(1), "text", [], {}, (), 0, False, 1.5])
@pytest.mark.parametrize(
    "call",
    [
        lambda producer, bad: producer.send("t", b"v", headers=[("h", bad)]),
        lambda producer, bad: producer.send("t", b"v", headers=(("l", b"1"), ("h", bad))),
        lambda producer, bad: producer.send("t", b"v", key=bad),
        lambda producer, bad: producer.send("t", bad),
        lambda producer, bad: producer.send_columns("t", [bad, b"2"]),
        lambda producer, bad: producer.send_columns("t", [b"2"], headers=[[("h", bad)]]),
    ],
)
def test_what_is_no_bytes_is_refused(store: Store, call: Callable[..., Any], bad: Any) -> None:
    with store.producer(linger_ms=LONG_MS) as producer, pytest.raises((UsageError, SerializationError)):
        call(producer, bad)
    assert records_of(store) == []


def test_a_buffer_may_be_changed_after_the_call(store: Store) -> None:
    data = bytearray(b"first")
    headers = [("h", data)]
    with store.producer(linger_ms=LONG_MS) as producer:
        producer.send("t", data, memoryview(data), headers)
        data[:] = b"other"
        headers.clear()
    assert records_of(store) == [(b"first", b"first", [("h", b"first")])]


def test_null_stays_null_and_no_serializer_sees_it(store: Store) -> None:
    with store.producer(value_serializer=lambda value: repr(value).encode(), key_serializer=str.encode) as producer:
        producer.send("t", None, None).get()
        producer.send("t", 0, "k").get()
    assert records_of(store) == [(None, None, []), (b"k", b"0", [])]


@pytest.mark.parametrize(
    ("config", "told", "not_told"),
    [
        ({}, "found str; encode it, or give the producer a value_serializer", "from"),
        (
            {"value_serializer": lambda text: text},
            "found str from the value_serializer; let the value_serializer return bytes",
            "give the producer",
        ),
        ({"value_serializer": int}, "ValueError", "give the producer"),
    ],
)
def test_the_advice_about_text_fits_the_producer(store: Store, config: Any, told: str, not_told: str) -> None:
    with store.producer(**config) as producer, pytest.raises(LogstoreError) as raised:
        producer.send("t", "text")
    assert told in str(raised.value)
    assert not_told not in str(raised.value)


@pytest.mark.parametrize("name", ["read_committed", "read_uncommitted", "log_end"])
def test_an_isolation_level_is_given_by_its_name(store: Store, name: str) -> None:
    log = store.log("t", 0)
    log.append_records([b"v"])
    assert len(list(log.records(isolation=name).chunks())) == 1
    assert log.read(0, 100, name).data.size
    assert log.offset_for_timestamp(0, name) is not None
    for call in (lambda bad: log.records(isolation=bad), lambda bad: log.read(0, 1, bad)):
        with pytest.raises(UsageError, match="read_committed"):
            call("committed")
