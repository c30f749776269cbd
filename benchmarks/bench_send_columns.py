"""`send_columns` of an idempotent producer, from numpy; beside confluent-kafka's `produce` with a real local broker."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import logstore
from benchmarks.floors import appending
from benchmarks.measured import Measured
from benchmarks.peers.confluent_clients import confluent_sends
from benchmarks.peers.local_broker import LocalBroker
from benchmarks.sizes import scaled
from benchmarks.written import written

VALUE_SIZE, RECORD_SIZE = 100, 107
RECORD_COUNT = scaled(200, 200_000)


def test_send_columns(measured: Measured, broker: LocalBroker, tmp_path: Path) -> None:
    theirs = confluent_sends(lambda: broker.bootstrap, lambda: broker.topic("columns"), b"v" * VALUE_SIZE, RECORD_COUNT)
    values = np.full((RECORD_COUNT, VALUE_SIZE), ord("v"), np.uint8)
    with logstore.open(tmp_path / "data") as store:
        store.create_topic("columns", partitions=1)
        producer = store.producer()

        def send() -> int:
            return sum(one.record_count for one in producer.send_columns("columns", values))

        sent = measured(
            send,
            title=f"`send_columns` of {RECORD_COUNT:,} records",
            size=values.nbytes,
            count=RECORD_COUNT,
            peers={"confluent-kafka": broker.asked(lambda: theirs() * RECORD_COUNT)},
            floor=appending(tmp_path / "floor", RECORD_COUNT * RECORD_SIZE),
            written_size=values.nbytes,
            hashed=lambda sent: (sent, *written(store.log("columns", 0), RECORD_COUNT)),
        )
        assert sent == RECORD_COUNT
        log = store.log("columns", 0)
        assert log.log_end_offset % RECORD_COUNT == 0
        last = next(log.records(log.log_end_offset - 1).chunks()).to_records()[-1]
        assert (last.offset, last.value) == (log.log_end_offset - 1, values[-1].tobytes())
