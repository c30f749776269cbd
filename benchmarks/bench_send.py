"""Single `send` calls of an idempotent producer from Python; beside confluent-kafka with a real local broker."""

from __future__ import annotations

from pathlib import Path

import pytest

import logstore
from benchmarks.floors import appending
from benchmarks.measured import Measured
from benchmarks.peers.confluent_clients import confluent_sends
from benchmarks.peers.local_broker import LocalBroker
from benchmarks.sizes import scaled
from benchmarks.written import last_values

VALUE = b"v" * 100
KEY = b"customer-0042"
HEADERS = [("trace", b"7f3a"), ("source", b"billing")]
RECORD_SIZE = 107  # of a record of such a value, on average
CALL_COUNT = scaled(200, 50_000)


@pytest.mark.parametrize(
    ("key", "headers"),
    [(None, None), (KEY, None), (KEY, HEADERS)],
    ids=["value", "key", "key and headers"],
)
def test_send(
    measured: Measured,
    broker: LocalBroker,
    tmp_path: Path,
    key: bytes | None,
    headers: list[tuple[str, bytes]] | None,
) -> None:
    where = (lambda: broker.bootstrap), (lambda: broker.topic("sends"))
    theirs = confluent_sends(*where, VALUE, CALL_COUNT, key, headers)
    with logstore.open(tmp_path / "data") as store:
        store.create_topic("sends", partitions=1)
        producer = store.producer()

        def send_all() -> int:
            for _ in range(CALL_COUNT):
                producer.send("sends", VALUE, key, headers)
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
