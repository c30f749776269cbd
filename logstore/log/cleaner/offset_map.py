"""Map from key to last offset within a memory budget (`SkimpyOffsetMap`).

A key is known by a hash of 128 bits, two XXH64 with different seeds; two keys with the same hash count as one. By
chance that is one pair in 2^128; colliding keys can be constructed, as with Kafka's MD5.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ...columns.batch_table import BatchTable, BoolArray, Int64Array
from ...columns.record_table import RecordTable
from ...config.topic import DEDUPE_BUFFER_SIZE
from ...errors import UsageError
from ...kernels.table import offset_map as fields
from ...kernels.table.key_hashes import hash_keys
from ...kernels.table.offset_map import find_offsets, put_offsets
from ...layout.batch import MAGIC_V2

SLOT_SIZE = 24  # bytes, as in Kafka
LOAD_FACTOR = 0.9  # log.cleaner.io.buffer.load.factor
_ROOMY = 2  # slots for each key, where memory allows
_OFFSETS_A_RECORD_MAX = 4  # with larger gaps, left by earlier cleanings, no marks are used


class OffsetMap:
    """Keys, and the last offset of each.

    Attributes:
        entry_count_max: the number of keys it takes.
        latest_offset: the offset up to which the log is in the map; -1 for none.
    """

    def __init__(
        self,
        record_count: int,
        *,
        buffer_size: int = DEDUPE_BUFFER_SIZE,
        load_factor: float = LOAD_FACTOR,
        first_offset: int = 0,
        end_offset: int = 0,
    ) -> None:
        """Allocate an empty map.

        Args:
            record_count: upper bound of the records to be put; slots that they cannot need are not allocated.
            buffer_size: bytes of slots and marks together, `log.cleaner.dedupe.buffer.size`.
            load_factor: `log.cleaner.io.buffer.load.factor`.
            first_offset: records below are not put.
            end_offset: records from here on are not put. With it, and if the buffer has room, a mark of one byte for
                each offset in between answers `is_latest` without a search.

        Raises:
            UsageError: the buffer has no room for one key.
        """
        slot_count_max = min(buffer_size, 2**31 - 1) // SLOT_SIZE
        self.entry_count_max = int(slot_count_max * load_factor)
        if self.entry_count_max < 1 or self.entry_count_max >= slot_count_max:
            raise UsageError(
                "offset map is too small to fit in even a single message, so log cleaning will never make progress. "
                "You can increase log.cleaner.dedupe.buffer.size or decrease log.cleaner.threads",
                expected="room for a key and one to spare",
                found=f"{buffer_size} bytes at load factor {load_factor}",
                java_class="java.lang.AssertionError",
            )
        self.latest_offset = -1
        mark_count = end_offset - first_offset
        if first_offset < 0 or not 0 < mark_count <= _OFFSETS_A_RECORD_MAX * record_count:
            mark_count = 0
        key_count_max = min(record_count, self.entry_count_max)
        # where Kafka's map has room for a key, this one must too
        if (buffer_size - mark_count) // SLOT_SIZE <= key_count_max / load_factor:
            mark_count = 0
        slot_count_max = min(slot_count_max, (buffer_size - mark_count) // SLOT_SIZE)
        self._allocate(min(slot_count_max, _ROOMY * key_count_max + 1), mark_count)
        self._state[fields.OFFSET_MIN] = first_offset
        self._passed_offset = -1  # of the last table begun
        self._hashes = np.empty((2, 0), np.int64)

    def _allocate(self, slot_count: int, mark_count: int) -> None:
        # numpy asks for huge pages when it need not zero: page faults of 4 KiB cost more than all the puts
        self._table = np.empty((slot_count, fields.SLOT_WIDTH), np.int64)
        self._table.fill(0)
        self._state = np.zeros(fields.STATE_COUNT, np.int64)
        self._state[fields.SLOT_COUNT] = slot_count
        self._state[fields.ENTRY_COUNT_MAX] = min(self.entry_count_max, slot_count - 1)
        self._marks = np.zeros(max(mark_count, 1), np.uint8)
        self._state[fields.MARK_COUNT] = mark_count

    @property
    def entry_count(self) -> int:
        """Keys in the map."""
        return int(self._state[fields.ENTRY_COUNT])

    def put(self, records: RecordTable) -> int:
        """Put the offsets of all records with a key, in order; return how many were done before the map was full."""
        hashes, capacity = self._hash(records)
        return put_offsets(records.matrix, hashes, capacity, 0, records.count, self._state, self._table, self._marks)

    def begin_table(self, table: BatchTable) -> None:
        """Begin a table to be put; offsets that do not ascend cannot identify records, so they turn marks off."""
        if not len(table):
            return
        bases, lasts = table.base_offset, table.last_offset
        is_mixed = (table.magic < MAGIC_V2).any() or (lasts < bases).any() or (bases[1:] <= lasts[:-1]).any()
        if is_mixed or bases[0] <= self._passed_offset:
            self._state[fields.MARK_COUNT] = 0
        self._passed_offset = int(lasts[-1])

    @property
    def last_put(self) -> tuple[int, int] | None:
        """Row and offset of the last record that the last `put` put; None if there was none."""
        row = int(self._state[fields.LAST_ROW])
        return None if row < 0 else (row, int(self._state[fields.LAST_OFFSET]))

    def is_latest(self, records: RecordTable) -> BoolArray:
        """Return bool[len(records)]: whether the map has no later record of the key; arbitrary without a key."""
        marks = self._marks_of(records)
        is_latest: BoolArray = records.offset >= self.find(records) if marks is None else marks == fields.LATEST
        return is_latest

    def _marks_of(self, records: RecordTable) -> npt.NDArray[np.uint8] | None:
        """Return uint8[len(records)]; None unless all records with a key have been put."""
        mark_count = int(self._state[fields.MARK_COUNT])
        if not mark_count or not records.count:
            return None
        places = records.offset - self._state[fields.OFFSET_MIN]
        if places.min() < 0 or places.max() >= mark_count:
            return None
        marks = self._marks[places]
        is_put = (marks != fields.NOT_PUT) | (records.key_size < 0)
        return marks if is_put.all() else None

    def find(self, records: RecordTable) -> Int64Array:
        """Return int64[len(records)]: the offset in the map for each record's key; -1 without a key or an entry."""
        hashes, capacity = self._hash(records)
        offsets = np.empty(max(records.count, 1), np.int64)
        find_offsets(records.matrix, hashes, capacity, records.count, self._state, self._table, offsets)
        return offsets[: records.count]

    def _hash(self, records: RecordTable) -> tuple[Int64Array, int]:
        capacity = records.matrix.shape[1]
        if self._hashes.shape[1] != capacity:
            self._hashes = np.empty((2, capacity), np.int64)
        hash_keys(records.data, records.matrix, capacity, records.count, self._hashes)
        return self._hashes, capacity
