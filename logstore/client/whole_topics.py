"""Topics read as a whole: all partitions, and all records that are there. No consumer: nothing moves but an offset."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from ..columns.decoded_records import Records, TailRecords
from ..errors import OffsetOutOfRangeError
from ..log.partition_log import PartitionLog
from ..model import FetchIsolation, TopicPartition, name_of
from ..store.data_directory import DataDirectory
from ..store.read_only import ReadOnlyDirectory
from ..view.partition_reader import PartitionReader
from .consumer.config import isolation_of
from .consumer.consumer_records import ConsumerRecord, consumer_records
from .serializers import Deserializer, require_functions

_FETCH_SIZE = 1 << 20  # bytes
_PIECE_COUNT = 500  # records that become Python objects at once


def partitions_of(directory: DataDirectory | ReadOnlyDirectory, topic: str) -> list[TopicPartition]:
    """Return the partitions of a topic; raises UnknownTopicOrPartitionError, and UsageError if that is no name."""
    name = name_of("topic", topic)
    return [TopicPartition(name, number) for number in range(directory.describe_topic(name).partition_count)]


def read_topic(
    directory: DataDirectory | ReadOnlyDirectory,
    topic: str,
    isolation_level: str,
    to_key: Deserializer | None,
    to_value: Deserializer | None,
) -> Iterator[ConsumerRecord]:
    """Return an iterator over the present records of a topic, one partition after the other; see `Store.read`."""
    isolation = isolation_of(isolation_level)
    require_functions(key_deserializer=to_key, value_deserializer=to_value)
    ends = [
        (partition, isolation.end_offset(directory.log(*partition))) for partition in partitions_of(directory, topic)
    ]

    def records() -> Iterator[ConsumerRecord]:
        for partition, end_offset in ends:
            for piece in _pieces(directory, partition, end_offset, isolation):
                yield from consumer_records(partition, piece, to_key, to_value)

    return records()


def _pieces(
    directory: DataDirectory | ReadOnlyDirectory, partition: TopicPartition, end_offset: int, isolation: FetchIsolation
) -> Iterator[TailRecords | Records]:
    """Yield the records of a partition up to an offset, from where its log starts now."""
    position = 0
    while position < end_offset:
        directory.require_open()
        log = directory.log(*partition)
        position = max(position, log.log_start_offset)
        try:
            for chunk in _chunks(log, position, end_offset, isolation):
                for start in range(0, len(chunk), _PIECE_COUNT):
                    directory.require_open()  # the bytes of a closed log may be cut by its next opening
                    whole = len(chunk) <= _PIECE_COUNT
                    yield chunk if whole else chunk.part(start, min(start + _PIECE_COUNT, len(chunk)))
                position = chunk.next_offset
            return
        except OffsetOutOfRangeError:
            if position >= log.log_start_offset:
                raise  # else retention has deleted what comes next


def _chunks(
    log: PartitionLog | PartitionReader, position: int, end_offset: int, isolation: FetchIsolation
) -> Iterator[TailRecords | Records]:
    tail = log.tail(position, isolation, check_crc=True, size_max=_FETCH_SIZE)
    if tail is None:
        yield from log.records(position, end_offset=end_offset, isolation=isolation, fetch_size=_FETCH_SIZE).chunks()
    elif len(tail) and tail.offset[-1] >= end_offset:  # appended since the end was noted
        yield tail.part(0, bisect_left(tail.offset, end_offset))
    else:
        yield tail
