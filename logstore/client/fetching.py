"""Records of one partition from a position on, as many as a consumer takes at a time (`CompletedFetch`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..log.partition_log import PartitionLog
from ..log.records import RecordChunk
from ..model import FetchIsolation, TopicPartition
from ..store.internal_topic import log_or_none
from ..store.store import Store
from .consumer_record import ConsumerRecord


@dataclass(frozen=True, slots=True)
class FetchSettings:
    """How a consumer reads: `isolation.level`, `check.crcs`, `max.partition.fetch.bytes`."""

    isolation: FetchIsolation
    check_crc: bool
    size_max: int


class PartitionFetch:
    """Some records of a partition: decoded, made Python objects when they are given.

    Attributes:
        partition: where they are from.
        position: everything before it was given.
        count: records that are not given yet.
        size: bytes of the records' keys and values, when they were read.
        made: the next records as Python objects, if they are made, the next one last.
    """

    __slots__ = ("_chunk", "_chunks", "_row", "count", "made", "partition", "position", "size")

    def __init__(
        self, partition: TopicPartition, position: int, chunk: RecordChunk, chunks: Iterator[RecordChunk]
    ) -> None:
        self.partition, self.position = partition, position
        self.count = len(chunk)
        table = chunk.records
        self.size = int(table.key_size.clip(0).sum() + table.value_size.clip(0).sum())
        self.made: list[ConsumerRecord] = []
        self._chunk, self._row = chunk, 0
        self._chunks = chunks  # whoever has made the chunk may use its arrays again when it goes on

    def head(self, count_max: int) -> RecordChunk:
        """The next records, `count_max` at most."""
        end = min(self._row + count_max, len(self._chunk))
        return self._chunk if end - self._row == len(self._chunk) else self._chunk.part(self._row, end)

    def pass_on(self, count: int) -> None:
        """The next `count` records are given."""
        self._row += count
        self.count -= count
        chunk = self._chunk
        self.position = int(chunk.records.offset[self._row]) if self.count else chunk.next_offset


def end_offset(log: PartitionLog, isolation: FetchIsolation) -> int:
    """Up to where a consumer reads now; exclusive."""
    return log.last_stable_offset if isolation is FetchIsolation.READ_COMMITTED else log.high_watermark


def fetch(partition: TopicPartition, log: PartitionLog, position: int, settings: FetchSettings) -> PartitionFetch | int:
    """The records from `position` on; where there is none, the position behind all that is not for the consumer.

    Raises:
        OffsetOutOfRangeError: `position` is below the log's start, or above its end.
        LogstoreError: a batch that cannot be read, as `RecordReader.chunks`.
    """
    reader = log.records(
        position, isolation=settings.isolation, check_crc=settings.check_crc, fetch_size=settings.size_max
    )
    chunks = reader.chunks()
    chunk = next(chunks, None)
    return reader.position if chunk is None else PartitionFetch(partition, position, chunk, chunks)


def record_count(log: PartitionLog, position: int, isolation: FetchIsolation) -> int:
    """How many records a consumer will get from `position` on."""
    start = max(position, log.log_start_offset)
    return sum(len(chunk) for chunk in log.records(start, isolation=isolation, check_crc=False).chunks())


def available_size(store: Store, positions: Mapping[TopicPartition, int], settings: FetchSettings) -> int:
    """Bytes of batches that are to be read, of each partition as many as `size_max`."""
    total = 0
    for partition, position in positions.items():
        log = log_or_none(store, *partition)
        if log is not None and log.log_start_offset <= position < end_offset(log, settings.isolation):
            total += log.read(position, settings.size_max, settings.isolation).data.size
    return total
