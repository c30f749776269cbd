"""A topic that is deleted and made anew under a producer that has written to it: its log is another one."""

from __future__ import annotations

from logstore.client.store import Store
from tests.support.stores import values_of

TOPICS = {"t": 1}


def test_a_transaction_goes_on_in_the_new_log(store: Store) -> None:
    producer = store.producer(transactional_id="x")
    producer.init_transactions()
    producer.begin_transaction()
    gone = producer.send("t", b"gone")
    producer.flush()
    store.delete_topic("t")
    store.create_topic("t", 1)
    kept = [producer.send("t", b"first"), producer.send("t", b"second")]
    producer.commit_transaction()
    assert [one.get().offset for one in (gone, *kept)] == [0, 0, 1]
    log = store.log("t", 0)
    assert log.last_stable_offset == log.log_end_offset == 3
    assert values_of(store, "t") == [b"first", b"second"]


def test_sequences_begin_at_0_in_the_new_log(store: Store) -> None:
    producer = store.producer()
    for value in (b"1", b"2"):
        producer.send("t", value)
    producer.flush()
    store.delete_topic("t")
    store.create_topic("t", 1)
    assert producer.send("t", b"3").get().offset == 0
    (entry,) = store.log("t", 0).state.producers.state
    assert [(batch.first_sequence, batch.last_offset) for batch in entry.batches] == [(0, 0)]
