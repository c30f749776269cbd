"""Reads of whole topics: every present record, whatever happens to the log or the store in between."""

from __future__ import annotations

from typing import Any

import pytest

from logstore.client.store import Store
from logstore.errors import SerializationError, UnknownTopicOrPartitionError, UsageError
from logstore.model import TimestampType
from tests.support.stores import begun

TOPICS = {"t": 2}


def sent(store: Store, count: int, partition: int = 0) -> list[bytes]:
    values = [b"%d" % number for number in range(count)]
    store.log("t", partition).append_records(values)
    return values


def test_partitions_come_one_after_the_other_and_later_records_are_left_out(store: Store) -> None:
    values = sent(store, 3), sent(store, 1_700, 1)
    records = store.read("t")
    first = next(records)
    assert first[:5] == ("t", 0, 0, first.timestamp, TimestampType.CREATE_TIME)
    assert first[5:] == (None, b"0", [], 0)
    sent(store, 1)
    sent(store, 1, 1)
    assert [record.value for record in records] == [*values[0][1:], *values[1]]


def test_an_error_of_a_deserializer_comes_after_the_records_before_it(store: Store) -> None:
    store.log("t", 0).append_records([b"1", None, b"x", b"4"])
    records = store.read("t", value_deserializer=int)
    assert [next(records).value, next(records).value] == [1, None]
    with pytest.raises(SerializationError, match=r"Error deserializing VALUE for partition t-0 at offset 2") as caught:
        next(records)
    assert caught.value.offset == 2


def test_markers_alone_are_no_records(store: Store) -> None:
    producer = begun(store, "p")
    producer.send("t", b"dropped", partition=0)
    producer.flush()
    producer.abort_transaction()
    assert list(store.read("t", isolation_level="read_committed")) == []
    assert [record.value for record in store.read("t")] == [b"dropped"]


def test_records_that_retention_deletes_are_passed_over(store: Store) -> None:
    sent(store, 2)
    log = store.log("t", 1)
    log.append_records([b"gone"])
    log.roll()
    log.append_records([b"kept"])
    records = store.read("t")
    next(records)
    log.delete_records(1)
    assert [record.value for record in records] == [b"1", b"kept"]


def test_the_rest_is_refused_once_the_store_is_closed(store: Store) -> None:
    sent(store, 3)
    sent(store, 3, 1)
    records = store.read("t")
    next(records)
    store.close()
    with pytest.raises(UsageError, match="The store is closed"):
        list(records)


@pytest.mark.parametrize(
    ("topic", "how", "error"),
    [
        ("nowhere", {}, UnknownTopicOrPartitionError),
        ("t", {"isolation_level": "log_end"}, UsageError),
    ],
)
def test_wrong_calls_are_refused_at_once(store: Store, topic: str, how: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        store.read(topic, **how)
