"""Which partition each row goes to: the one it names, its key's, or one for some of those without a key.

As the Java producer places records (`KafkaProducer.partition`, `BuiltInPartitioner`): the same key has the same
partition in both, and rows without a key stay together until they are a batch.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from logstore.columns.batch_table import Int64Array
from logstore.errors import UnknownTopicOrPartitionError

_JAVA_INT_MAX = 0x7FFFFFFF
_NOWHERE = -1


class Placing:
    """Of the rows of one topic, from its first to its last."""

    def __init__(
        self, topic: str, partition_count: int, batch_size: int, *, ignores_keys: bool, draw: Callable[[int], int]
    ) -> None:
        """`batch_size`: bytes after which rows without a key change; `draw`: random, from 0 to below its argument."""
        self._topic = topic
        self._partition_count = partition_count
        self._batch_size = max(1, batch_size)
        self._ignores_keys = ignores_keys
        self._draw = draw
        self._partition = draw(partition_count)
        self._placed_size = 0  # since the partition was drawn

    def partitions(self, rows: pa.Table) -> Int64Array:
        """int64[n]: of rows as they are staged.

        Raises:
            UnknownTopicOrPartitionError: a row names a partition that the topic does not have.
        """
        placed = np.full(rows.num_rows, _NOWHERE, np.int64)
        if "partition" in rows.column_names:
            placed[:] = pc.fill_null(rows["partition"], _NOWHERE).to_numpy()
            self._require_present(int(placed.max(initial=_NOWHERE)))
        if "key" in rows.column_names and not self._ignores_keys:
            is_keyed = (placed == _NOWHERE) & rows["key"].is_valid().to_numpy()
            hashes = rows["key_hash"].to_numpy()
            placed[is_keyed] = (hashes[is_keyed] & _JAVA_INT_MAX) % self._partition_count
        is_free = placed == _NOWHERE
        if is_free.any():
            placed[is_free] = self._sticky(_sizes(rows)[is_free])
        return placed

    def _require_present(self, partition: int) -> None:
        if partition >= self._partition_count:
            raise UnknownTopicOrPartitionError(
                f"Partition {partition} of topic {self._topic} with partition count {self._partition_count} is not "
                "present",
                found=f"{self._topic}-{partition}",
            )

    def _sticky(self, sizes: Int64Array) -> Int64Array:
        """One partition for each batch's worth of rows."""
        befores = np.cumsum(sizes) - sizes + self._placed_size
        turns, turn_of = np.unique(befores // self._batch_size, return_inverse=True)
        drawn = [self._draw(self._partition_count) if turn else self._partition for turn in turns.tolist()]
        self._partition = drawn[-1]
        self._placed_size = int(befores[-1] + sizes[-1] - turns[-1] * self._batch_size)
        return np.array(drawn, np.int64)[turn_of]


def _sizes(rows: pa.Table) -> Int64Array:
    """int64[n]: bytes of key, value and headers."""
    total = np.zeros(rows.num_rows, np.int64)
    for name in ("key", "value", "headers"):
        if name in rows.column_names:
            total += pc.fill_null(pc.binary_length(rows[name]), 0).to_numpy()
    return total
