"""The open batches that `Producer.send` appends plain records to without a further look.

A batch is here only while it may take such records: it is open, it is its topic's sticky one, and it has neither keys
nor headers. Every other use of a batch takes it away first.
"""

from __future__ import annotations

from .producer_batch import ProducerBatch


class QuickBatches:
    """The batches by topic; used with the producer's mutex held.

    Attributes:
        by_topic: the batches.
    """

    def __init__(self) -> None:
        self.by_topic: dict[str, ProducerBatch] = {}

    def put(self, topic: str, batch: ProducerBatch) -> None:
        """Let plain records of the topic go into this open batch."""
        self.by_topic[topic] = batch

    def take(self, topic: str, batch: ProducerBatch) -> None:
        """Withdraw the batch, if it is here."""
        if self.by_topic.get(topic) is batch:
            del self.by_topic[topic]
