"""Where a consumer begins by `auto.offset.reset`, with nothing committed."""

from __future__ import annotations

import pytest

from logstore.client.store import Store
from logstore.errors import UsageError
from logstore.model import TopicPartition
from tests.support.clock import Clock

TOPICS = {"t": 1}

T0 = TopicPartition("t", 0)


@pytest.mark.parametrize(("duration", "expected"), [
    ("PT1S", 3), ("pt1.0005s", 3), ("PT0,5S", 4), ("P0DT0H0M2S", 2), ("P1D", 0), ("-PT-2S", 2), ("PT0S", 4),
])  # fmt: skip
def test_a_consumer_begins_at_records_of_some_age(store: Store, clock: Clock, duration: str, expected: int) -> None:
    times = [clock.now_ms - 1000 * (4 - number) for number in range(5)]
    store.log("t", 0).append_records([b"%d" % number for number in range(5)], timestamps=times)
    consumer = store.consumer("t", **{"auto.offset.reset": f"by_duration:{duration}"})
    [records] = consumer.poll().values()
    assert [record.value for record in records] == [b"%d" % number for number in range(expected, 5)]
    clock.now_ms += 100_000_000
    late = store.consumer("t", **{"auto.offset.reset": f"by_duration:{duration}"})
    assert late.position(T0) == 5
    late.seek(T0, 9)  # out of range
    assert late.poll() == {}
    assert late.position(T0) == 5


@pytest.mark.parametrize(("reset", "count"), [("latest", 0), ("by_duration:PT1H", 2), ("earliest", 2)])
def test_records_that_come_before_their_partition_is_known_are_read_unless_latest_skips_them(
    store: Store, reset: str, count: int
) -> None:
    consumer = store.consumer("t", group_id="g", auto_offset_reset=reset)
    assert consumer.poll() == {}
    store.add_partitions("t", 2)
    with store.producer() as producer:
        for value in (b"0", b"1"):
            producer.send("t", value, partition=1)
    assert sum(len(records) for _ in range(3) for records in consumer.poll().values()) == count


@pytest.mark.parametrize(
    "duration", ["-PT1S", "P", "PT", "1000", "", "PT1D", "PT2562047788015H13M", "P" + "9" * 5000 + "D"]
)
def test_a_duration_that_is_none_is_refused(store: Store, duration: str) -> None:
    with pytest.raises(UsageError, match="by_duration:<PnDTnHnMn"):
        store.consumer("t", **{"auto.offset.reset": f"by_duration:{duration}"})
