"""confluent-kafka's producer and consumer with a local broker; the extra `bench` installs it."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache
from typing import Any

from benchmarks.measured import Side
from benchmarks.peers.optional import module

CONSUMED_COUNT = 500  # records a call, as `max.poll.records`


def confluent_sends(
    bootstrap: Callable[[], str],
    topic: Callable[[], str],
    value: bytes,
    call_count: int,
    key: bytes | None = None,
    headers: list[tuple[str, bytes]] | None = None,
) -> Side:
    """Seconds of one `produce` call with its share of the flush at the end; idempotent, defaults else.

    One producer for all rounds, as its users have: to connect and to ask for a producer id takes longer than a round.
    The side raises RuntimeError when the topic's only partition has not as many records more afterwards.
    """

    @cache
    def producer() -> Any:
        new = module("confluent_kafka").Producer({"bootstrap.servers": bootstrap(), "enable.idempotence": True})
        new.produce(topic(), b"first")
        new.flush()
        return new

    @cache
    def asking() -> Any:
        quiet = {"log_level": 0}  # it is still there when the broker is not
        return module("confluent_kafka").Consumer({"bootstrap.servers": bootstrap(), "group.id": "ends", **quiet})

    def end_offset(name: str) -> int:
        _, end = asking().get_watermark_offsets(module("confluent_kafka").TopicPartition(name, 0), timeout=10)
        return int(end)

    def side() -> float:
        name, one = topic(), producer()
        first_offset = end_offset(name)
        start = time.perf_counter()
        for _ in range(call_count):
            try:
                one.produce(name, value, key, headers=headers)
            except BufferError:  # its queue is full: wait as its users do
                one.poll(1)
                one.produce(name, value, key, headers=headers)
        missing = one.flush()
        seconds = time.perf_counter() - start
        arrived = end_offset(name) - first_offset
        if missing or arrived != call_count:
            raise RuntimeError(f"{missing} records were not sent, {arrived} arrived instead of {call_count}")
        return seconds / call_count

    return side


def confluent_consumes(bootstrap: Callable[[], str], topic: Callable[[], str], record_count: int) -> Side:
    """Seconds of one record of `consume`, from the start of the topic's only partition; defaults else.

    One consumer for all rounds, which seeks to the start before each.
    The side raises RuntimeError when not as many records come.
    """

    @cache
    def consumer() -> Any:
        kafka = module("confluent_kafka")
        new = kafka.Consumer({"bootstrap.servers": bootstrap(), "group.id": "bench", "enable.auto.commit": False})
        new.assign([kafka.TopicPartition(topic(), 0, 0)])
        if not new.consume(1, 10):
            raise RuntimeError("nothing was consumed in 10 s")
        return new

    def side() -> float:
        one, count = consumer(), 0
        one.seek(module("confluent_kafka").TopicPartition(topic(), 0, 0))
        start = time.perf_counter()
        while count < record_count:
            found = one.consume(min(CONSUMED_COUNT, record_count - count), 10)
            if not found:
                raise RuntimeError(f"{count} of {record_count} records were consumed")
            count += sum(each.value() is not None for each in found)
        return (time.perf_counter() - start) / record_count

    return side
