"""Reads the next records for a consumer, from its partitions in turn (`FetchCollector`, `CompletedFetch`)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from ... import clock
from ...columns.arrow_batches import imported_pyarrow, record_schema
from ...columns.decoded_records import Records, TailRecords
from ...errors import (
    DataDirectoryError,
    LogstoreError,
    OffsetOutOfRangeError,
    SerializationError,
    UnknownTopicOrPartitionError,
)
from ...log.partition_log import PartitionLog
from ...model import TopicPartition
from ...store.data_directory import DataDirectory
from ...store.fetch import LOOK_AGAIN_S, AppendWaiter
from ..serializers import Deserializer, require_functions
from .config import ConsumerConfig
from .consumer_records import ConsumerRecord, NextOffsets, RecordsByPartition, consumer_records
from .positions import Positions


class _Fetch:
    """Records of one partition, which are handed out piece by piece; each piece becomes Python objects then.

    Attributes:
        position: offset before which all were handed out.
        row: number of records that were handed out.
        count: number of records that are left.
        made, made_row: the next records as Python objects, and the row of the first of them.
    """

    __slots__ = ("_chunks", "chunk", "count", "made", "made_row", "partition", "position", "row")

    def __init__(
        self,
        partition: TopicPartition,
        position: int,
        chunk: TailRecords | Records,
        chunks: Iterator[Records] | None,
    ) -> None:
        self.partition, self.position, self.chunk = partition, position, chunk
        self.row, self.count, self.made_row = 0, len(chunk), 0
        self.made: list[ConsumerRecord] = []
        self._chunks = chunks  # keeps the reader alive: once dropped, the arrays of its chunk may be used for another


class Fetcher:
    """Reads `max.partition.fetch.bytes` of a partition at a time, and hands its records out in pieces."""

    def __init__(
        self,
        store: DataDirectory,
        positions: Positions,
        config: ConsumerConfig,
        *,
        to_key: Deserializer | None,
        to_value: Deserializer | None,
    ) -> None:
        self._store, self._positions, self._config = store, positions, config
        require_functions(key_deserializer=to_key, value_deserializer=to_value)
        self._to_key, self._to_value = to_key, to_value
        self._size_max, self._size_min = max(config["fetch.max.bytes"], 1), config["fetch.min.bytes"]
        self._partition_size_max, self._check_crc = config["max.partition.fetch.bytes"], config["check.crcs"]
        self._count_max = config["max.poll.records"]
        self._fetch: _Fetch | None = None
        self._arrivals = AppendWaiter()
        # partitions that may have records, the next one first; an append to any other brings that back
        self._turn: deque[TopicPartition] = deque()
        self._turn_is_for: int | None = None  # `look_count` for which the turn is valid; None: it is not
        self._collected_for: int | None = None  # `_turn_is_for` as it will be once `confirm` is called
        self._next_look_s = 0.0  # time to look at all partitions again
        self._fetch_wait_s: float | None = None  # since when there is less than `fetch.min.bytes`

    def confirm(self) -> None:
        """Keep the turn, as the positions are behind what `collect` returned; else the next call looks at all."""
        self._turn_is_for = self._collected_for

    def wait(self, timeout_s: float) -> None:
        """Wait for an append to a partition that had no records, for `wake`, or until the time is up."""
        held_for, self._turn_is_for = self._turn_is_for, None  # invalid if an interrupt loses the arrivals below
        self._turn.extend(self._arrivals.wait(timeout_s))
        self._turn_is_for = held_for

    def close(self) -> None:
        """Let the logs forget the consumer: without appends they would keep each one that has ever read to the end."""
        self._arrivals.keep(())

    def wake(self) -> None:
        """Let `wait` return at once; any thread may call it."""
        self._arrivals.wake()

    def collect(self, count_max: int) -> tuple[RecordsByPartition, NextOffsets]:
        """Return the records that there are now, and the positions behind them, which the caller has to enter.

        Raises LogstoreError if the next record cannot be read. An error behind records waits for the next call; behind
        an error the next call begins with the other partitions. A partition that a deserializer has moved by `seek` is
        not among the positions.
        """
        self._positions.sought.clear()
        self._collected_for = self._turn_is_for  # stays if the current fetch suffices and the turn is not used
        found: RecordsByPartition = {}
        moved: NextOffsets = {}
        fetch, self._fetch = self._fetch, None  # an interrupt drops it, as it would be ahead of the positions
        if fetch is not None and not self._is_wanted(fetch):
            fetch = None
        ready = self._ready(moved)
        count = size = 0
        try:
            while count < count_max and size < self._size_max:
                if fetch is None:
                    if (following := next(ready, None)) is None:
                        break
                    fetch = self._read(*following, moved)
                    continue
                records = self._taken(fetch, count_max - count)
                if fetch.partition in found:
                    found[fetch.partition] += records
                else:
                    found[fetch.partition] = records
                moved[fetch.partition] = fetch.position
                count += len(records)
                if not fetch.count:
                    size += fetch.chunk.size
                    fetch = None
        except LogstoreError:
            if fetch is None or not found:  # else the next call begins with the fetch that failed
                self._note_error(is_first=not found)
            if not found:
                raise
        self._fetch = fetch
        if self._positions.sought:
            for partition in self._positions.sought & moved.keys():
                del moved[partition]
        return found, moved

    def collect_table(self) -> tuple[Any, NextOffsets]:
        """Return the records from the positions on as an Arrow table of about `fetch.max.bytes`, as `collect` does.

        Forgets the current fetch. Raises LogstoreError as `collect`, and without pyarrow.
        """
        pa = imported_pyarrow()
        self._fetch, self._collected_for = None, self._turn_is_for
        names = pa.array(sorted({partition.topic for partition in self._positions}), pa.string())
        topic = pa.field("topic", pa.dictionary(pa.int32(), pa.string()), nullable=False)
        schema = pa.schema([topic, pa.field("partition", pa.int32(), nullable=False), *record_schema()])
        batches: list[Any] = []
        moved: NextOffsets = {}
        size = 0
        try:
            for partition, batch in self._record_batches(moved):
                name, number = names.index(partition.topic).cast(pa.int32()), pa.scalar(partition.partition, pa.int32())
                topics = pa.DictionaryArray.from_arrays(pa.repeat(name, len(batch)), names)
                columns = [topics, pa.repeat(number, len(batch)), *batch.columns]
                batches.append(pa.record_batch(columns, schema=schema))
                size += batch.nbytes
                if size >= self._size_max:
                    break
        except LogstoreError:
            self._note_error(is_first=not batches)
            if not batches:
                raise
        return pa.Table.from_batches(batches, schema), moved

    def _ready(self, moved: NextOffsets) -> Iterator[tuple[TopicPartition, int, PartitionLog]]:
        """Return each partition with something to read, its position and log, in turn, until none has more.

        A partition without anything leaves the turn until an append brings it back, so that idle partitions cost a poll
        nothing. The caller writes its progress into `moved`, which overrides the positions. Empty until `_is_enough`.
        Raises UnknownTopicOrPartitionError if a partition that the program assigned is gone.
        """
        positions = self._positions
        positions.reset_recreated_topics()
        if self._size_min > 1 and not self._is_enough():
            return
        if not self._arrivals.is_idle:
            self.wait(0)
        now_s = clock.monotonic_s()
        # looks again from time to time, as an interrupted append wakes nobody
        if self._turn_is_for != positions.look_count or now_s >= self._next_look_s:
            self._turn, self._next_look_s = deque(positions), now_s + LOOK_AGAIN_S
            self._arrivals.keep(self._turn)
        self._turn_is_for, self._collected_for = None, positions.look_count
        turn, end_offset = self._turn, positions.isolation.end_offset
        left_count = len(turn)
        while left_count:
            partition = turn[0]
            turn.rotate(-1)  # before anything can fail
            position = moved[partition] if partition in moved else positions.get(partition)
            log = positions.log(partition)
            if positions.is_beside_writer and position is not None and log is not None:
                if position > log.high_watermark:  # sought, and written since the last look
                    self._arrivals.expect(partition, log)
                reached, position = position, positions.followed(partition, position, log)
                if position < reached:
                    moved.pop(partition, None)
            left_count -= 1
            if position is None or log is None:
                turn.pop()
            elif not max(end := end_offset(log), log.log_start_offset) <= position <= log.high_watermark:
                yield partition, position, log
                reached = moved.get(partition, position)
                # a whole round without progress ends it; whoever is at the end is looked at by the next call
                left_count = left_count if reached in (position, end) else len(turn)
            elif partition not in moved:  # else read to its end just now: the next call looks whether it is idle
                self._arrivals.expect(partition, log)
                if position >= end_offset(log):  # again: an append before `expect` told nobody
                    turn.pop()
                else:
                    left_count = len(turn)

    def _note_error(self, *, is_first: bool) -> None:
        """Let the other partitions come before one that has failed; if they came first, the next call raises it."""
        self._store.refresh()  # another process may have deleted the topic, and made it anew
        if is_first:
            self._turn_is_for = self._collected_for  # valid without `confirm`: nothing has moved
        else:
            self._turn.rotate(1)

    def _is_enough(self) -> bool:
        """Return whether `fetch.min.bytes` can be read, or `fetch.max.wait.ms` have passed."""
        positions, isolation = self._positions, self._positions.isolation
        size, is_idle = 0, True
        try:
            for partition in positions:
                position = positions.get(partition)
                log = None if position is None else positions.log(partition)
                if position is None or log is None:
                    continue
                start, end = log.log_start_offset, isolation.end_offset(log)
                is_idle = is_idle and start <= position == end  # the read resets a position that is out of range
                if start <= position < end:
                    size += log.read(position, self._partition_size_max, isolation).data.size
                if size >= self._size_min:
                    break
        except (UnknownTopicOrPartitionError, OffsetOutOfRangeError):
            return True  # the read raises it, in the turn of the partition
        if is_idle:
            return True
        if size < self._size_min:
            now_s = clock.monotonic_s()
            self._fetch_wait_s = now_s if self._fetch_wait_s is None else self._fetch_wait_s
            if now_s - self._fetch_wait_s < self._config["fetch.max.wait.ms"] / 1000:
                return False
        self._fetch_wait_s = None
        return True

    def _is_wanted(self, fetch: _Fetch) -> bool:
        partition = fetch.partition
        if not fetch.count or partition in self._positions.paused:
            return False
        return self._positions.get(partition) == fetch.position

    def _record_batches(self, moved: NextOffsets) -> Iterator[tuple[TopicPartition, Any]]:
        """Read Arrow record batches, each partition's in order; `moved` gets the position behind each."""
        positions = self._positions
        for partition, position, log in self._ready(moved):
            reader = log.records(position, isolation=positions.isolation, check_crc=self._check_crc)
            try:
                for chunk in reader.chunks():
                    batch = chunk.to_arrow()
                    moved[partition] = chunk.next_offset
                    yield partition, batch
            except DataDirectoryError:
                self._arrivals.expect(partition, log)
                raise
            except OffsetOutOfRangeError:
                moved.pop(partition, None)
                positions.out_of_range(partition, position)
                continue
            except LogstoreError as error:
                _place(error, partition, reader.position)
                raise
            moved[partition] = reader.position
            if reader.position == position:
                self._arrivals.expect(partition, log)

    def _read(self, partition: TopicPartition, position: int, log: PartitionLog, moved: NextOffsets) -> _Fetch | None:
        """Read records; if none of the data is for the consumer, note the position behind it in `moved`."""
        try:
            return self._fetched(partition, log, position, moved)
        except DataDirectoryError:
            self._arrivals.expect(partition, log)  # another process may have cut it: the next call reads what is left
            raise
        except OffsetOutOfRangeError:
            self._positions.out_of_range(partition, position)
            moved.pop(partition, None)
            reset = self._positions.get(partition)
            assert reset is not None
            return self._fetched(partition, self._store.log(*partition), reset, moved)

    def _fetched(
        self, partition: TopicPartition, log: PartitionLog, position: int, moved: NextOffsets
    ) -> _Fetch | None:
        isolation, check_crc, size_max = self._positions.isolation, self._check_crc, self._partition_size_max
        next_offset, chunks = position, None
        try:
            chunk = log.tail(position, isolation, check_crc=check_crc, size_max=size_max)
            if chunk is None:
                reader = log.records(position, isolation=isolation, check_crc=check_crc, fetch_size=size_max)
                chunks = reader.chunks()
                chunk = next(chunks, None)
                next_offset = reader.position
        except LogstoreError as error:
            _place(error, partition, position)
            raise
        if chunk is not None and len(chunk):
            return _Fetch(partition, position, chunk, chunks)
        moved[partition] = next_offset if chunk is None else chunk.next_offset
        if moved[partition] == position:  # another process has cut the log, which ends here as it was
            self._arrivals.expect(partition, log)
        return None

    def _taken(self, fetch: _Fetch, count_max: int) -> list[ConsumerRecord]:
        start = fetch.row - fetch.made_row
        if start >= len(fetch.made):
            # more than the call takes, so that small polls do not convert a few rows at a time
            fetch.made, fetch.made_row = self._made(fetch, max(count_max, self._count_max)), fetch.row
            start = 0
        taken = fetch.made[start : start + count_max]
        count = len(taken)
        fetch.row += count
        fetch.count -= count
        fetch.position = int(fetch.chunk.offset[fetch.row]) if fetch.count else fetch.chunk.next_offset
        return taken

    def _made(self, fetch: _Fetch, count_max: int) -> list[ConsumerRecord]:
        """Make Python records; stops before one that cannot be deserialized."""
        chunk = fetch.chunk
        if fetch.row or count_max < len(chunk):
            chunk = chunk.part(fetch.row, min(fetch.row + count_max, len(chunk)))
        made: list[ConsumerRecord] = []
        try:
            for record in consumer_records(fetch.partition, chunk, self._to_key, self._to_value):
                made.append(record)
        except SerializationError:
            if not made:
                raise
        return made


def _place(error: LogstoreError, partition: TopicPartition, position: int) -> None:
    """Name the partition in an error of its read, and an offset that it helps to seek past.

    A batch that cannot be read begins before the position once the program has sought past its first record.
    """
    error.partitions = (partition,)
    if error.offset is not None:
        error.offset = max(error.offset, position)
