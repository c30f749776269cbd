"""Records that a consumer hands out, the state of an iteration over them, and a consumer's lag."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain, repeat
from typing import Any, NamedTuple

from ...columns.decoded_records import Records, TailRecords
from ...log.partition_log import PartitionLog
from ...model import FetchIsolation, TimestampType, TopicPartition
from ..serializers import Deserializer, deserialized


class ConsumerRecord(NamedTuple):
    """One record (Java's class of this name).

    Attributes:
        timestamp: ms; -1: none.
        key, value: bytes or None, or the deserializers' results.
        headers: (key, value) pairs.
        leader_epoch: of the leader that wrote the record; None: unknown.
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


RecordsByPartition = dict[TopicPartition, list[ConsumerRecord]]
#: the next offset to read, by partition
NextOffsets = dict[TopicPartition, int]


def consumer_records(
    partition: TopicPartition,
    records: TailRecords | Records,
    to_key: Deserializer | None,
    to_value: Deserializer | None,
) -> Iterator[ConsumerRecord]:
    """Return the records as Python objects; the iterator raises SerializationError where a deserializer fails."""
    topic, number = partition
    offsets, timestamps, types, keys, values, *rest = records.to_lists()
    made_keys, made_values = iter(keys), iter(values)
    if to_key is not None:
        made_keys = map(partial(deserialized, to_key, "key", partition), offsets, keys)
    if to_value is not None:
        made_values = map(partial(deserialized, to_value, "value", partition), offsets, values)
    columns = repeat(topic), repeat(number), offsets, timestamps, types, made_keys, made_values, *rest
    return map(ConsumerRecord._make, zip(*columns, strict=False))


class Lag(NamedTuple):
    """Distance of a consumer from the end of a partition.

    Attributes:
        offsets: from its position to the end for its isolation level, as Kafka counts lag; includes markers, aborted
            records and removed ones; 0 for a position behind that end.
        records: how many of these offsets have a record for it.
    """

    offsets: int
    records: int

    @classmethod
    def of(cls, log: PartitionLog, position: int, isolation: FetchIsolation) -> Lag:
        """Return the distance from `position`, whose records are read to count them."""
        offset_count = isolation.end_offset(log) - position
        if offset_count <= 0:  # behind the end, as with a commit of read_uncommitted behind an open transaction
            return cls(0, 0)
        reader = log.records(max(position, log.log_start_offset), isolation=isolation, check_crc=False)
        return cls(offset_count, sum(map(len, reader.chunks())))


class Iteration:
    """Records of one read for `for record in consumer`; the positions follow what was handed out.

    Attributes:
        records: in the order of `poll`.
        row: row of the next record; those before it were handed out.
        settled_row: row before which the positions already are.
        change_count: `Positions.change_count` when the records were read.
    """

    __slots__ = ("_ends", "change_count", "records", "row", "settled_row")

    def __init__(self, records: RecordsByPartition, ends: NextOffsets, change_count: int) -> None:
        self.records: list[ConsumerRecord] = list(chain.from_iterable(records.values()))
        self.row = self.settled_row = 0
        self.change_count = change_count
        self._ends = ends

    def positions(self) -> NextOffsets:
        """Return the offset of each partition's next record, or its end if all were handed out."""
        found: NextOffsets = {}
        for record in self.records[self.row :]:
            partition = TopicPartition(record.topic, record.partition)
            if partition not in found and partition in self._ends:  # no end: a deserializer sought it
                found[partition] = record.offset
                if len(found) == len(self._ends):
                    break
        return self._ends | found
