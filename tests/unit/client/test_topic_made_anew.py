"""A topic that is deleted and made anew under a producer that has written to it: its log is another one."""

from __future__ import annotations

from pathlib import Path

import logstore
from logstore.model import FetchIsolation


def test_a_transaction_goes_on_in_the_new_log(tmp_path: Path) -> None:
    with logstore.open(tmp_path) as store:
        store.create_topic("t", 1)
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
        chunks = log.records(isolation=FetchIsolation.READ_COMMITTED).chunks()
        assert [record.value for chunk in chunks for record in chunk.to_records()] == [b"first", b"second"]


def test_sequences_begin_at_0_in_the_new_log(tmp_path: Path) -> None:
    with logstore.open(tmp_path) as store:
        store.create_topic("t", 1)
        producer = store.producer()
        for value in (b"1", b"2"):
            producer.send("t", value)
        producer.flush()
        store.delete_topic("t")
        store.create_topic("t", 1)
        assert producer.send("t", b"3").get().offset == 0
        (entry,) = store.log("t", 0).producers.state
        assert [(batch.first_sequence, batch.last_offset) for batch in entry.batches] == [(0, 0)]
