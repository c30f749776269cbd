"""Producer ids: blocks of 1000, each handed out by one record of `__cluster_metadata` (`ProducerIdControlManager`).

A block belongs to the process that logged its record; the ids that are left when the process ends are never used.

>>> ids = ProducerIds()
>>> ids.add_block(5000)
>>> ids.take(), ids.take(), ids.left_count
(5000, 5001, 998)
>>> from logstore.topics.cluster_metadata import decode_value
>>> decode_value(block_record(6000, broker_id=1, broker_epoch=0)).fields["nextProducerId"]
7000
"""

from __future__ import annotations

from ..errors import CoordinatorLoadInProgressError, IllegalTransitionError
from ..topics.cluster_metadata import encode_value

BLOCK_SIZE = 1000
_LONG_MAX = 2**63 - 1


class ProducerIds:
    """The ids left of this process's last block. Not thread-safe."""

    def __init__(self) -> None:
        self._own = range(0)

    @property
    def left_count(self) -> int:
        """Count the ids left before another block is needed."""
        return len(self._own)

    def add_block(self, first: int) -> None:
        """Begin the block at `first`, whose record is in the log; ids left of the last block are never used."""
        self._own = range(first, first + BLOCK_SIZE)

    def take(self) -> int:
        """Return an unused producer id; raises CoordinatorLoadInProgressError when the block is used up."""
        if not self._own:
            raise CoordinatorLoadInProgressError("Producer ID block is full. Waiting for next block")
        producer_id, self._own = self._own[0], self._own[1:]
        return producer_id


def block_record(first: int, *, broker_id: int, broker_epoch: int) -> bytes:
    """Return the record of the block that begins with `first`; log it, then call `ProducerIds.add_block`.

    Raises IllegalTransitionError when no block is left in 63 bits.
    """
    if first > _LONG_MAX - BLOCK_SIZE:
        raise IllegalTransitionError(
            "Exhausted all producerIds as the next block's end producerId has exceeded the int64 type limit",
            java_class="org.apache.kafka.common.errors.UnknownServerException",
        )
    fields = {"brokerId": broker_id, "brokerEpoch": broker_epoch, "nextProducerId": first + BLOCK_SIZE}
    return encode_value("ProducerIdsRecord", fields)
