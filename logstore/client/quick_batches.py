"""The batches that plain records go into at once, without the rest of what a `send` may have to see to.

A batch is here only while it may take such records: it is open, it is its topic's sticky one, and no other record came
into it. Whoever wants anything else of it takes it away first.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

from ..kernels.machine_function import Place, new_place
from ..kernels.send_slots import BATCH_SLOTS
from .producer_batch import ProducerBatch

_BLOCK = Struct(f"{len(BATCH_SLOTS)}q")
_SIZE = BATCH_SLOTS.index("size")
_NO_MS = -(1 << 63)


class QuickBatches:
    """For `Producer.send` in Python, and used with the producer's mutex held.

    Attributes:
        by_topic: the batches.
    """

    def __init__(self) -> None:
        self.by_topic: dict[str, Any] = {}

    def put(self, topic: str, batch: ProducerBatch) -> None:
        """From now on plain records of the topic go into this open batch."""
        self.by_topic[topic] = batch

    def take(self, topic: str, batch: ProducerBatch) -> None:
        """The batch is the caller's alone, if it was here or not."""
        if self.by_topic.get(topic) is batch:
            del self.by_topic[topic]


class NativeQuickBatches(QuickBatches):
    """For `send` in machine code (`kernels.send_steps`) without a mutex: a batch is its own while the dict has it.

    Attributes:
        by_topic: addresses of blocks, one a topic.
    """

    def __init__(self) -> None:
        super().__init__()
        self._places: dict[str, BatchPlace] = {}

    def put(self, topic: str, batch: ProducerBatch) -> None:
        """See `QuickBatches`; the topic is left out if it is no plain `str`, for to compare it could run anything."""
        if type(topic) is str:
            place = self._places.get(topic)
            if place is None:
                place = self._places[topic] = new_place(BatchPlace, BATCH_SLOTS)
            place.batch = batch
            addresses = id(batch), id(batch.values), id(batch.timestamps)
            _BLOCK.pack_into(place.block, 0, *addresses, batch.size, _NO_MS, 0)
            self.by_topic[topic] = place

    def take(self, topic: str, batch: ProducerBatch) -> None:
        """See `QuickBatches`."""
        place = self.by_topic.get(topic)
        if place is not None and place.batch is batch:
            del self.by_topic[topic]
            batch.size = place.block[_SIZE]
            place.batch = None


class BatchPlace(Place):
    """The address of a batch's block.

    Attributes:
        batch: whose it is, as long as it is in the dict.
    """

    batch: ProducerBatch | None
