"""What a consumer hands out: records, those of an iteration, and how many are still to come."""

from __future__ import annotations

from itertools import chain
from typing import Any, NamedTuple

from ...model import TimestampType, TopicPartition


class ConsumerRecord(NamedTuple):
    """One record (`ConsumerRecord`).

    Attributes:
        timestamp: ms; -1 none.
        key, value: bytes or None, or what the deserializers made of them.
        headers: (key, value) each.
        leader_epoch: of the leader that took it; None unknown.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: TimestampType
    key: Any
    value: Any
    headers: list[tuple[str, bytes | None]]
    leader_epoch: int | None


Records = dict[TopicPartition, list[ConsumerRecord]]
#: the next offset to read, by partition
NextOffsets = dict[TopicPartition, int]


class Lag(NamedTuple):
    """How far a consumer is behind in a partition.

    Attributes:
        offsets: from its position to the end that it reads up to, as Kafka counts lag; markers, aborted records and
            those that the cleaner has removed are in it.
        records: how many of them it will get.
    """

    offsets: int
    records: int


class Iteration:
    """Records as `poll` would give them, for `for record in consumer`; positions follow what was handed out.

    Attributes:
        records: in their order.
        row: of the next record; all before it were handed out.
        settled_row: the positions are behind all records before it.
        change_count: of the positions that the records were read from.
    """

    __slots__ = ("_ends", "change_count", "records", "row", "settled_row")

    def __init__(self, records: Records, ends: NextOffsets, change_count: int) -> None:
        """`ends`: the positions behind all of the records."""
        self.records: list[ConsumerRecord] = list(chain.from_iterable(records.values()))
        self.row = self.settled_row = 0
        self.change_count = change_count
        self._ends = ends

    def positions(self) -> NextOffsets:
        """Return the offset of each partition's next record; the end of those without one."""
        found: NextOffsets = {}
        for record in self.records[self.row :]:
            partition = TopicPartition(record.topic, record.partition)
            if partition not in found and partition in self._ends:  # not in them: a deserializer moved it elsewhere
                found[partition] = record.offset
                if len(found) == len(self._ends):
                    break
        return self._ends | found
