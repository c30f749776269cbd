"""confluent-kafka's producer with a local broker; the extra `bench` installs it."""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.measured import Side
from benchmarks.peers.optional import module


def confluent_sends(bootstrap: Callable[[], str], topic: Callable[[], str], value: bytes, call_count: int) -> Side:
    """Seconds of one `produce` call with its share of the flush at the end; idempotent, defaults else."""

    def side() -> float:
        producer_type = module("confluent_kafka").Producer
        name = topic()
        producer = producer_type({"bootstrap.servers": bootstrap(), "enable.idempotence": True})
        producer.produce(name, b"first")
        producer.flush()
        start = time.perf_counter()
        for _ in range(call_count):
            try:
                producer.produce(name, value)
            except BufferError:  # its queue is full: wait as its users do
                producer.poll(1)
                producer.produce(name, value)
        missing = producer.flush()
        seconds = time.perf_counter() - start
        if missing:
            raise RuntimeError(f"{missing} records were not sent")
        return seconds / call_count

    return side
