"""Single `send` calls of an idempotent producer from Python; beside confluent-kafka with a real local broker."""

from __future__ import annotations

from pathlib import Path

import logstore
from benchmarks.floors import appending
from benchmarks.measured import Measured
from benchmarks.peers.confluent_producer import confluent_sends
from benchmarks.peers.local_broker import LocalBroker
from benchmarks.sizes import scaled
from benchmarks.written import last_values

VALUE = b"v" * 100
RECORD_SIZE = 107  # of a record of such a value, on average
CALL_COUNT = scaled(200, 50_000)


def test_send(measured: Measured, broker: LocalBroker, tmp_path: Path) -> None:
    theirs = confluent_sends(lambda: broker.bootstrap, lambda: broker.topic("sends"), VALUE, CALL_COUNT)
    with logstore.open(tmp_path / "data") as store:
        store.create_topic("sends", partitions=1)
        producer = store.producer()

        def send_all() -> int:
            for _ in range(CALL_COUNT):
                producer.send("sends", VALUE)
            producer.flush()
            return CALL_COUNT

        measured(
            send_all,
            title=f"{CALL_COUNT:,} `send` calls and a flush",
            size=CALL_COUNT * len(VALUE),
            count=CALL_COUNT,
            peers={"confluent-kafka": broker.asked(lambda: theirs() * CALL_COUNT)},
            floor=appending(tmp_path / "floor", CALL_COUNT * RECORD_SIZE),
            written_size=CALL_COUNT * len(VALUE),
            hashed=lambda count: (count, last_values(store.log("sends", 0), CALL_COUNT)),
        )
        end = store.log("sends", 0).log_end_offset
    assert end > 0
    assert end % CALL_COUNT == 0
