"""Producer ids: blocks of 1000, each handed out by one record of `__cluster_metadata` (`ProducerIdControlManager`).

A block belongs to the process that logged its record; ids that are left when that ends are never given.

>>> ids = ProducerIds()
>>> record = ids.block_record(broker_id=1, broker_epoch=0)
>>> ids.block_written()
>>> ids.take(), ids.take(), ids.left_count
(0, 1, 998)
>>> from logstore.topics.cluster_metadata import decode_value
>>> again = ProducerIds()
>>> again.replay(decode_value(record).fields)
>>> again.next_producer_id, again.left_count
(1000, 0)
"""

from __future__ import annotations

from collections import deque

from ..errors import CoordinatorLoadInProgressError, IllegalTransitionError, SchemaError
from ..messages.schema import Value
from ..topics.cluster_metadata import encode_value

BLOCK_SIZE = 1000
_LONG_MAX = 2**63 - 1


class ProducerIds:
    """The next block of producer ids, and what is left of this process's own blocks. Not thread-safe.

    `next_producer_id` begins the block that the next record hands out.
    """

    def __init__(self) -> None:
        self.next_producer_id = 0
        self._own: deque[range] = deque()

    @property
    def left_count(self) -> int:
        """Count the ids that `take` can give before another block is needed."""
        return sum(map(len, self._own))

    def replay(self, fields: Value) -> None:
        """Apply a `ProducerIdsRecord`: its block belongs to the process that wrote it.

        Raises SchemaError for one that hands out ids again.
        """
        following: int = fields["nextProducerId"]
        if self.next_producer_id and following <= self.next_producer_id:
            raise SchemaError(
                f"Next Producer ID from replayed record ({following}) is not greater than current next Producer ID "
                f"in block ({self.next_producer_id})",
                expected=f"above {self.next_producer_id}",
                found=following,
            )
        self.next_producer_id = following

    def block_record(self, *, broker_id: int, broker_epoch: int) -> bytes:
        """Return the record that hands out the next block; log it, then call `block_written`.

        Raises IllegalTransitionError when no block is left in 63 bits.
        """
        if self.next_producer_id > _LONG_MAX - BLOCK_SIZE:
            raise IllegalTransitionError(
                "Exhausted all producerIds as the next block's end producerId has exceeded the int64 type limit",
                java_class="org.apache.kafka.common.errors.UnknownServerException",
            )
        following = self.next_producer_id + BLOCK_SIZE
        fields = {"brokerId": broker_id, "brokerEpoch": broker_epoch, "nextProducerId": following}
        return encode_value("ProducerIdsRecord", fields)

    def block_written(self) -> None:
        """Own the next block, whose record is in the log."""
        first, self.next_producer_id = self.next_producer_id, self.next_producer_id + BLOCK_SIZE
        self._own.append(range(first, self.next_producer_id))

    def take(self) -> int:
        """Return a producer id that was never given; raises CoordinatorLoadInProgressError when no block is left."""
        while self._own and not self._own[0]:
            self._own.popleft()
        if not self._own:
            raise CoordinatorLoadInProgressError("Producer ID block is full. Waiting for next block")
        producer_id = self._own[0][0]
        self._own[0] = self._own[0][1:]
        return producer_id
