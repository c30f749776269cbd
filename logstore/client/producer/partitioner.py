"""Which partition of a topic a record goes to, as the Java producer chooses it (`BuiltInPartitioner`).

>>> partition_for_key(b"42", 12)
4
"""

from __future__ import annotations

from collections.abc import Callable

from ...columns.batch_table import Int64Array
from ...columns.record_columns import BytesColumn
from ...errors import UsageError
from ...kernels.table.key_hashes import murmur2_key

_hash = murmur2_key.bound().run


def murmur2(key: bytes) -> int:
    """The 32-bit hash of a key, as a signed int (`Utils.murmur2`).

    >>> murmur2(b"21"), murmur2(b"foobar")
    (-973932308, -790332482)
    """
    return _hash(key, len(key))


def partition_for_key(key: bytes, partition_count: int) -> int:
    """The partition of every record with this serialized key, as long as the topic keeps its size."""
    return (murmur2(key) & 0x7FFFFFFF) % partition_count


class StickyPartitioner:
    """The partition of records without a key: one until it got a batch's worth of bytes, then another at random.

    Not thread-safe. `draw` gives a random number from 0 to below its argument.

    Raises UsageError when `batch_size` (bytes, `batch.size`) is below 1.
    """

    def __init__(self, batch_size: int, draw: Callable[[int], int]) -> None:
        if batch_size < 1:
            raise UsageError(
                f"stickyBatchSize must be >= 1 but got {batch_size}", java_class="java.lang.IllegalArgumentException"
            )
        self._batch_size = batch_size
        self._draw = draw
        self._partition: int | None = None
        self._produced_size = 0

    def partition(self, partition_count: int) -> int:
        """The partition for the next record of a topic with so many partitions."""
        if self._partition is None or self._partition >= partition_count:
            self._partition, self._produced_size = self._draw(partition_count), 0
        return self._partition

    def appended(self, size: int, *, is_batch_full: bool) -> None:
        """A record of `size` bytes went to the partition; `is_batch_full`: it is a good moment to change.

        Without such a moment the partition changes when twice a batch's worth has gone there.
        """
        self._produced_size += size
        if self._produced_size >= self._batch_size * (1 if is_batch_full else 2):
            self._partition = None


def partitions_for_keys(keys: BytesColumn, partition_count: int) -> Int64Array:
    """`partition_for_key` of each: int64[n]; -1 for null.

    >>> partitions_for_keys(BytesColumn.of_values([b"42", None, b""]), 12).tolist()
    [4, -1, 9]
    """
    partitions = (keys.murmur2_hashes() & 0x7FFFFFFF) % partition_count
    partitions[keys.is_null] = -1
    return partitions
