"""The next records for a consumer, of its partitions in turn (`FetchCollector`)."""

from __future__ import annotations

from collections import deque
from itertools import repeat
from typing import Any

from .. import clock
from ..errors import IllegalStateError, LogstoreError, OffsetOutOfRangeError, SerializationError
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
Offsets = dict[TopicPartition, int]


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
        self._fetch: PartitionFetch | None = None
        self._last_partition: TopicPartition | None = None
        self._fetch_wait_s: float | None = None
        self._change_count = 0  # of what is read and not given

    def drop(self) -> None:
        """Forget what is read and not given."""
        self._change_count += 1
        self._fetch = None

    def collect(self, count_max: int) -> tuple[Records, Offsets]:
        """What can be given now, and the positions behind it, which are the caller's to enter when it has given it.

        An error of what comes behind waits for the next call.

        Raises:
            IllegalStateError: a deserializer has read from the consumer that called it; those records count as given.
            LogstoreError: what is next cannot be read.
        """
        self._change_count = change_count = self._change_count + 1
        found: Records = {}
        moved: Offsets = {}
        fetch, self._fetch = self._fetch, None  # an interrupt drops it: it would be ahead of the positions
        if fetch is not None and not self._is_wanted(fetch):
            fetch = None
        turn: deque[TopicPartition] | None = None
        count = size = 0
        try:
            while count < count_max and size < max(self._config["fetch.max.bytes"], 1):
                if fetch is None:
                    turn = self._turn(moved) if turn is None else turn
                    fetch = self._next_fetch(turn, moved)
                    if fetch is None:
                        break
                records = self._taken(fetch, count_max - count)
                found.setdefault(fetch.partition, []).extend(records)
                moved[fetch.partition] = fetch.position
                count += len(records)
                if not fetch.count:
                    size += fetch.size
                    fetch = None
        except LogstoreError:
            if not found:
                raise
        if self._change_count != change_count:
            raise IllegalStateError("A deserializer has read from the consumer that called it")
        self._fetch = fetch
        return found, moved

    def _is_wanted(self, fetch: PartitionFetch) -> bool:
        """Whether the consumer is still where it was, and reads the partition."""
        positions, partition = self._positions, fetch.partition
        if not fetch.count or partition not in positions or partition in positions.paused:
            return False
        return positions.get(partition) == fetch.position

    def _turn(self, moved: Offsets) -> deque[TopicPartition]:
        """The partitions that have something to read, beginning behind the one that was read last."""
        readable = self._positions.readable(moved)
        if self._last_partition in readable:
            turn = readable.index(self._last_partition) + 1
            readable = readable[turn:] + readable[:turn]
        return deque(readable if self.is_enough(readable) else ())

    def _next_fetch(self, turn: deque[TopicPartition], moved: Offsets) -> PartitionFetch | None:
        """Records of the partition whose turn it is, which then waits for its next; None if no partition has any."""
        while turn:
            partition = turn.popleft()
            self._last_partition = partition
            read = self._read(partition, moved)
            if isinstance(read, PartitionFetch):
                turn.append(partition)
                return read
            moved[partition] = read
        return None

    def _read(self, partition: TopicPartition, moved: Offsets) -> PartitionFetch | int:
        position = moved[partition] if partition in moved else self._positions.get(partition)
        assert position is not None
        log = self._store.log(*partition)
        if partition in moved and position == fetching.end_offset(log, self._settings.isolation):
            return position
        try:
            return fetching.fetch(partition, log, position, self._settings)
        except OffsetOutOfRangeError:
            self._positions.out_of_range(partition, position)
        moved.pop(partition, None)
        position = self._positions.get(partition)
        assert position is not None
        return fetching.fetch(partition, self._store.log(*partition), position, self._settings)

    def is_enough(self, readable: list[TopicPartition]) -> bool:
        """Whether there are `fetch.min.bytes` to be read, or `fetch.max.wait.ms` are over."""
        size_min = self._config["fetch.min.bytes"]
        if size_min <= 1 or not readable:
            return True
        now_s = clock.monotonic_s()
        self._fetch_wait_s = now_s if self._fetch_wait_s is None else self._fetch_wait_s
        is_over = now_s - self._fetch_wait_s >= self._config["fetch.max.wait.ms"] / 1000
        positions = {one: position for one in readable if (position := self._positions.get(one)) is not None}
        if not is_over and fetching.available_size(self._store, positions, self._settings) < size_min:
            return False
        self._fetch_wait_s = None
        return True

    def _taken(self, fetch: PartitionFetch, count_max: int) -> list[ConsumerRecord]:
        """The next records of a fetch, which go behind them."""
        if not fetch.made:
            fetch.made = self._made(fetch.partition, fetch.head(max(count_max, self._config["max.poll.records"])))
        taken = fetch.made[: -count_max - 1 : -1]
        del fetch.made[-len(taken) :]
        fetch.pass_on(len(taken))
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
