"""The next records for a consumer, of its partitions in turn (`FetchCollector`)."""

from __future__ import annotations

from itertools import repeat
from typing import Any

from .. import clock
from ..errors import LogstoreError, OffsetOutOfRangeError, SerializationError
from ..log.records import RecordChunk
from ..model import TopicPartition
from ..store.store import Store
from . import fetching
from .consumer_config import ConsumerConfig
from .consumer_record import ConsumerRecord
from .fetching import FetchSettings, PartitionFetch
from .positions import Positions
from .serializers import Deserializer, deserialized

Records = dict[TopicPartition, list[ConsumerRecord]]


class RecordFetcher:
    """Of one consumer: reads `max.partition.fetch.bytes` of a partition at a time, and gives them piece by piece."""

    def __init__(
        self,
        store: Store,
        positions: Positions,
        config: ConsumerConfig,
        settings: FetchSettings,
        *,
        to_key: Deserializer | None,
        to_value: Deserializer | None,
    ) -> None:
        self._store, self._positions, self._config, self._settings = store, positions, config, settings
        self._to_key, self._to_value = to_key, to_value
        self._fetch: tuple[TopicPartition, PartitionFetch] | None = None
        self._last_partition: TopicPartition | None = None
        self._fetch_wait_s: float | None = None

    def drop(self) -> None:
        """Forget what is read and not given."""
        self._fetch = None

    def collect(self, count_max: int) -> Records:
        """What can be given now; an error of what comes behind waits for the next call."""
        found: Records = {}
        count = size = 0
        while count < count_max and size < max(self._config["fetch.max.bytes"], 1):
            try:
                current = self._current()
                if current is None:
                    break
                partition, fetch = current
                records = self._taken(partition, fetch, count_max - count)
            except LogstoreError:
                if found:
                    break
                raise
            found.setdefault(partition, []).extend(records)
            count += len(records)
            size += 0 if fetch.count else fetch.size
        return found

    def next_made(self) -> ConsumerRecord | None:
        """The next record, if it is at hand and still wanted."""
        if self._fetch is None or not self._fetch[1].made or not self._is_wanted(*self._fetch):
            return None
        partition, fetch = self._fetch
        fetch.pass_on(1)
        self._positions.advance(partition, fetch.position)
        return fetch.made.pop()

    def _is_wanted(self, partition: TopicPartition, fetch: PartitionFetch) -> bool:
        """Whether the consumer is still where it was, and reads the partition."""
        positions = self._positions
        return (
            partition in positions and partition not in positions.paused and positions.get(partition) == fetch.position
        )

    def _current(self) -> tuple[TopicPartition, PartitionFetch] | None:
        """Records that are read and not given yet; those of the partition whose turn it is, if there are none."""
        if self._fetch is not None and self._fetch[1].count and self._is_wanted(*self._fetch):
            return self._fetch
        self._fetch = None
        readable = self._positions.readable()
        if self._last_partition in readable:
            turn = readable.index(self._last_partition) + 1
            readable = readable[turn:] + readable[:turn]
        if not self.is_enough(readable):
            return None
        for partition in readable:
            read = self._read(partition)
            self._last_partition = partition
            if isinstance(read, PartitionFetch):
                self._fetch = partition, read
                return self._fetch
            self._positions.advance(partition, read)
        return None

    def _read(self, partition: TopicPartition) -> PartitionFetch | int:
        position = self._positions.get(partition)
        assert position is not None
        try:
            return fetching.fetch(self._store.log(*partition), position, self._settings)
        except OffsetOutOfRangeError:
            self._positions.out_of_range(partition, position)
        position = self._positions.get(partition)
        assert position is not None
        return fetching.fetch(self._store.log(*partition), position, self._settings)

    def is_enough(self, readable: list[TopicPartition]) -> bool:
        """Whether there are `fetch.min.bytes` to be read, or `fetch.max.wait.ms` are over."""
        size_min = self._config["fetch.min.bytes"]
        if size_min <= 1 or not readable:
            return True
        now_s = clock.monotonic_s()
        self._fetch_wait_s = now_s if self._fetch_wait_s is None else self._fetch_wait_s
        is_over = now_s - self._fetch_wait_s >= self._config["fetch.max.wait.ms"] / 1000
        positions = {one: position for one, position in self._positions.known().items() if one in readable}
        if not is_over and fetching.available_size(self._store, positions, self._settings) < size_min:
            return False
        self._fetch_wait_s = None
        return True

    def _taken(self, partition: TopicPartition, fetch: PartitionFetch, count_max: int) -> list[ConsumerRecord]:
        """The next records of a fetch, which go behind them."""
        if not fetch.made:
            fetch.made = self._made(partition, fetch.head(max(count_max, self._config["max.poll.records"])))
        taken = fetch.made[: -count_max - 1 : -1]
        del fetch.made[-len(taken) :]
        fetch.pass_on(len(taken))
        self._positions.advance(partition, fetch.position)
        return taken

    def _made(self, partition: TopicPartition, chunk: RecordChunk) -> list[ConsumerRecord]:
        """Records for the program, the last one first; up to one that cannot be deserialized."""
        offsets, timestamps, types, keys, values, *rest = chunk.to_lists()
        if self._to_key is not None or self._to_value is not None:
            keys, values = self._deserialized(partition, offsets, keys, values)
        topic, number = partition
        columns = (repeat(topic), repeat(number), offsets, timestamps, types, keys, values, *rest)
        made = list(map(ConsumerRecord._make, zip(*columns, strict=False)))  # up to the last of the values
        made.reverse()
        return made

    def _deserialized(
        self, partition: TopicPartition, offsets: list[int], keys: list[Any], values: list[Any]
    ) -> tuple[list[Any], list[Any]]:
        made_keys: list[Any] = []
        made_values: list[Any] = []
        try:
            for offset, key, value in zip(offsets, keys, values, strict=True):
                made_key = deserialized(self._to_key, "key", partition, offset, key)
                made_values.append(deserialized(self._to_value, "value", partition, offset, value))
                made_keys.append(made_key)
        except SerializationError:
            if not made_keys:
                raise
        return made_keys, made_values
